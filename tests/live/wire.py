"""The API server as it answers: status code and JSON of any request, errors included.

Built from any kubeconfig, for tests of what the server says; see ``api.py`` for tests of what it does.
"""

import base64
import json
import ssl
import tempfile
import time
from http.client import HTTPSConnection
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

import yaml

TRIES = 20
LONGEST_PAUSE = 2.0


class Kubeconfig:
    """The current context of a kubeconfig: address, how to trust it, and who one is."""

    def __init__(self, path: Path) -> None:
        self._folder = path.parent
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        context = _named(document["contexts"], document["current-context"])["context"]
        self._cluster = _named(document["clusters"], context["cluster"])["cluster"]
        self._user = _named(document["users"], context["user"])["user"]
        self.server: str = self._cluster["server"]
        self.token: str | None = self._user.get("token")

    def tls(self) -> ssl.SSLContext:
        """Return how to trust the server and to show the client's certificate, if there is one."""
        context = ssl.create_default_context()
        if self._cluster.get("insecure-skip-tls-verify"):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if authority := self._bytes(self._cluster, "certificate-authority"):
            context.load_verify_locations(cadata=authority.decode())
        if certificate := self._bytes(self._user, "client-certificate"):
            key = self._bytes(self._user, "client-key")
            with tempfile.NamedTemporaryFile() as file:  # ssl takes these from a file alone
                file.write(certificate + b"\n" + key)
                file.flush()
                context.load_cert_chain(file.name)
        return context

    def _bytes(self, entry: dict[str, Any], name: str) -> bytes:
        """Return what is inlined as base64, or is in the file that is named; nothing when neither is."""
        if data := entry.get(f"{name}-data"):
            return base64.b64decode(data)
        return (self._folder / entry[name]).read_bytes() if name in entry else b""


class Wire:
    """Requests one after the other over one connection."""

    def __init__(self, kubeconfig: Kubeconfig) -> None:
        where = urlsplit(kubeconfig.server)
        assert where.hostname is not None
        self._connection = HTTPSConnection(where.hostname, where.port, timeout=30, context=kubeconfig.tls())
        self._headers = {"Content-Type": "application/json"}
        if kubeconfig.token:
            self._headers["Authorization"] = f"Bearer {kubeconfig.token}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: dict[str, str] | None = None,
        *,
        accept: str = "application/json",
    ) -> tuple[int, Any]:
        """Return status code and decoded answer. A server that asks for patience gets it.

        The storage of a new resource answers 429 until it is ready, and says for how long to wait.
        """
        target = f"{path}?{urlencode(query)}" if query else path
        data = None if body is None else json.dumps(body).encode()
        for _ in range(TRIES):
            self._connection.request(method, target, data, {**self._headers, "Accept": accept})
            response = self._connection.getresponse()
            answer = response.read()
            pause = response.headers.get("Retry-After")
            if response.status != 429 or pause is None:
                break
            time.sleep(min(float(pause), LONGEST_PAUSE))
        return response.status, json.loads(answer)


def _named(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    entry: dict[str, Any] = next(entry for entry in entries if entry["name"] == name)
    return entry
