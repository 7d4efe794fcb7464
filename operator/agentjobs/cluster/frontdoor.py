"""The front door: how API servers reach the leader's admission server, and no other's.

API servers keep connections open, so an address alone would not cut off a leader that lost the Lease while it
was frozen. The path says which term is meant: a secret of the process and the epoch. Whoever leads writes it
into the webhook configuration, and looks after it: an administrator or a GitOps tool may have put it back.
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import logging
import secrets
from dataclasses import dataclass
from typing import Any

import msgspec

from agentjobs import metrics
from agentjobs.apis import names
from agentjobs.cluster import paths
from agentjobs.cluster.certificates import Certificates
from agentjobs.cluster.lease import Lease
from agentjobs.cluster.session import Session
from agentjobs.errors import ApiError

_log = logging.getLogger(__name__)

CONFIGURATION = "agentjobs"
SERVICE = "agentjobs-admission"
HOST = f"{SERVICE}.{names.SYSTEM_NAMESPACE}.svc"
LOOK_SECONDS = 2.0
_REQUEST_SECONDS = 5.0
_LARGEST_EPOCH = 2**31 - 1  # of a Lease; what is larger no leader has written
_CONFIGURATION = paths.webhook_configuration(CONFIGURATION)
_SLICE = paths.endpoint_slice(names.SYSTEM_NAMESPACE, SERVICE)

JSON = dict[str, Any]


@dataclass(frozen=True)
class Address:
    """Where the admission server listens.

    Attributes:
        host, port: as API servers dial them.
        pod: whether that is a pod, reached through the Service; else by URL.
    """

    host: str
    port: int
    pod: bool


class FrontDoor:
    """The leader's; `run` is to be started when the Lease is held.

    Attributes:
        written: set once the configuration leads here, or there is none.
    """

    def __init__(self, session: Session, lease: Lease, certificates: Certificates, address: Address) -> None:
        self._session = session
        self._lease = lease
        self._certificates = certificates
        self._address = address
        self._secret = secrets.token_hex(24)  # a path to a Service takes no upper-case letters
        self._open = False
        self._problem = ""
        self._writing = asyncio.Lock()
        self.written = asyncio.Event()

    @property
    def prefix(self) -> str:
        """The path that requests to this term begin with, `/secret/epoch`; "" when this is not the leader."""
        return self._path if self._open and self._lease.held else ""

    @property
    def _path(self) -> str:
        return f"/{self._secret}/{self._lease.epoch}"

    async def run(self) -> None:
        """Write the door and look after it until cancelled; a leader of a later epoch ends the process."""
        self._open = True
        while True:
            async with self._writing:
                if not self._open:
                    return
                await self._look()
            await asyncio.sleep(LOOK_SECONDS)

    async def leave(self) -> None:
        """Answer no longer; a pod's address is taken out, so that nobody waits for a pod that is gone."""
        async with self._writing:
            self._open = False
            try:
                if self._address.pod:
                    await self._write_slice([])
            except ApiError as error:
                _log.warning("the endpoint of the admission server stays: %s", error)

    async def _look(self) -> None:
        try:
            if self._address.pod:
                await self._write_slice([self._address.host])
            await self._write_configuration()
            self._problem = ""
            metrics.REACHABLE.set(1)
        except ApiError as error:
            self._tell(str(error))
            metrics.REACHABLE.set(0)
            if not error.absent:
                return
        self.written.set()

    def _tell(self, problem: str) -> None:
        """Log a problem once, not at every look."""
        if problem != self._problem:
            _log.warning("API servers are not led here yet: %s", problem)
        self._problem = problem

    # -- the two objects -------------------------------------------------------------------------

    async def _write_configuration(self) -> None:
        stored = await _read(self._session, _CONFIGURATION)
        self._check(stored)
        hooks = [self._led_here(hook) for hook in stored.get("webhooks") or ()]
        wanted = {**stored, "metadata": self._marked(stored), "webhooks": hooks}
        if wanted != stored:
            await self._replace("validatingwebhookconfigurations", _CONFIGURATION, wanted)
            _log.info("the webhook configuration leads here, epoch %d", self._lease.epoch)

    def _led_here(self, hook: JSON) -> JSON:
        """Return a webhook with this process as its client; one that is not ours stays as it is."""
        plural, _, domain = hook["name"].partition(".")
        if domain != names.GROUP:
            return hook
        path = f"{self._path}/{plural}"
        bundle = base64.b64encode(self._certificates.bundle).decode()
        if self._address.pod:
            service = {"namespace": names.SYSTEM_NAMESPACE, "name": SERVICE, "port": 443, "path": path}
            return {**hook, "clientConfig": {"service": service, "caBundle": bundle}}
        url = f"https://{_bracketed(self._address.host)}:{self._address.port}{path}"
        return {**hook, "clientConfig": {"url": url, "caBundle": bundle}}

    async def _write_slice(self, hosts: list[str]) -> None:
        wanted = self._slice(hosts)
        try:
            stored = await _read(self._session, _SLICE)
        except ApiError as error:
            if not error.absent:
                raise
            body = {**wanted, "metadata": self._marked(wanted)}
            collection = _SLICE.rpartition("/")[0]
            await self._session.write("create", "endpointslices", "POST", collection, body=body)
            return
        self._check(stored)
        metadata = self._marked(stored)
        metadata["labels"] = {**(metadata.get("labels") or {}), **wanted["metadata"]["labels"]}
        whole = {**stored, **wanted, "metadata": metadata}
        if whole != stored:
            await self._replace("endpointslices", _SLICE, whole)

    def _slice(self, hosts: list[str]) -> JSON:
        version = ipaddress.ip_address(self._address.host).version
        return {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": SERVICE,
                "namespace": names.SYSTEM_NAMESPACE,
                "labels": {
                    "kubernetes.io/service-name": SERVICE,
                    "endpointslice.kubernetes.io/managed-by": "agentjobs-operator",
                },
            },
            "addressType": f"IPv{version}",
            "endpoints": [{"addresses": [host], "conditions": {"ready": True}} for host in hosts],
            "ports": [{"name": "https", "port": self._address.port, "protocol": "TCP"}],
        }

    # -- epochs ----------------------------------------------------------------------------------

    def _marked(self, stored: JSON) -> JSON:
        """Return an object's metadata with our epoch on it."""
        metadata = stored["metadata"]
        annotations = {**(metadata.get("annotations") or {}), names.ANNOTATION_EPOCH: str(self._lease.epoch)}
        return {**metadata, "annotations": annotations}

    def _check(self, stored: JSON) -> None:
        later = _epoch(stored)
        if later > self._lease.epoch:
            self._lease.end(f"superseded: epoch {later} leads, this is {self._lease.epoch}")

    async def _replace(self, resource: str, path: str, body: JSON) -> None:
        # It carries the resourceVersion of what was read: a successor's is never overwritten.
        await self._session.write("update", resource, "PUT", path, body=body, seconds=_REQUEST_SECONDS)


async def last_epoch(session: Session) -> int:
    """Return the epoch of the leader that wrote the webhook configuration last; 0 where none has.

    Raises:
        ApiError: it cannot be read.
    """
    try:
        return _epoch(await _read(session, _CONFIGURATION))
    except ApiError as error:
        if error.absent:
            return 0
        raise


async def _read(session: Session, path: str) -> JSON:
    content = await session.request("GET", path, seconds=_REQUEST_SECONDS)
    try:
        return msgspec.json.decode(content, type=JSON)
    except msgspec.DecodeError as error:
        raise ApiError(0, "BadAnswer", f"{path}: {error}") from error


def _epoch(stored: JSON) -> int:
    """Return the epoch that an object carries; 0 for none, and for what no leader has written."""
    text = (stored["metadata"].get("annotations") or {}).get(names.ANNOTATION_EPOCH, "")
    epoch = int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else 0
    return epoch if epoch < _LARGEST_EPOCH else 0


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
