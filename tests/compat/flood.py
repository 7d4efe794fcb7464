"""Many requests at once, as a fleet of clients would send them: none waits for the answer to another."""

import asyncio
import json
import ssl
from typing import Any

import aiohttp

from deploy.local.local import LocalCluster

Answer = tuple[int, dict[str, Any]]


def flood(cluster: LocalCluster, path: str, manifests: list[dict[str, Any]]) -> list[Answer]:
    """Create every manifest at the same time; return code and decoded body of each answer, in their order."""
    return asyncio.run(_create_all(cluster, path, manifests))


async def _create_all(cluster: LocalCluster, path: str, manifests: list[dict[str, Any]]) -> list[Answer]:
    certificates = cluster.cluster.certificates
    tls = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
    tls.load_cert_chain(certificates / "admin.crt", certificates / "admin.key")
    connector = aiohttp.TCPConnector(ssl=tls, limit=0)
    async with aiohttp.ClientSession(connector=connector) as http:

        async def create(manifest: dict[str, Any]) -> Answer:
            async with http.post(cluster.cluster.server + path, json=manifest) as answer:
                return answer.status, json.loads(await answer.read())

        return await asyncio.gather(*(create(manifest) for manifest in manifests))
