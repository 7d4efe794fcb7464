"""The API server as tests talk to it: JSON over one connection that is kept, as whoever is meant."""

import http.client
import json
import ssl
from types import TracebackType
from typing import Any, Self

from deploy.local.local import LocalCluster
from deploy.local.ports import LOOPBACK

MERGE_PATCH = "application/merge-patch+json"
AGENTS = "/apis/agentjobs.dev/v1alpha1"
_SECONDS = 10

Object = dict[str, Any]


class NoAnswerError(AssertionError):
    """The server is not there, or silent; an AssertionError, so that `eventually` goes on looking."""


class RefusedError(Exception):
    """The server answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class Api:
    """Requests to a cluster's API server.

    Args:
        user: whom the administrator plays, with that user's rights alone; himself when empty.
        group: of that user; those of a service account follow from its name.
    """

    def __init__(self, cluster: LocalCluster, user: str = "", group: str = "") -> None:
        certificates = cluster.cluster.certificates
        tls = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
        tls.load_cert_chain(certificates / "admin.crt", certificates / "admin.key")
        self._connection = http.client.HTTPSConnection(
            LOOPBACK, cluster.record.port, timeout=_SECONDS, context=tls
        )
        played = {"Impersonate-User": user, "Impersonate-Group": group}
        self._played = {name: value for name, value in played.items() if value}
        self.headers: http.client.HTTPMessage = http.client.HTTPMessage()
        """Of the last answer."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def request(
        self, method: str, path: str, body: object = None, content: str = "application/json"
    ) -> Object:
        """Send one request and return the answer's object. A text as `body` is sent as it is.

        Raises:
            NoAnswerError: none came, or one of a server that cannot answer now (429 and from 500 on);
                whether the request was carried out is not known.
            RefusedError: any other status of 400 or more.
        """
        data = body if body is None or isinstance(body, str) else json.dumps(body)
        try:
            self._connection.request(method, path, data, {"Content-Type": content, **self._played})
            answer = self._connection.getresponse()
            text, self.headers = answer.read(), answer.headers
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()  # the next request connects anew
            raise NoAnswerError(f"{method} {path}: {error!r}") from error
        found: Object = json.loads(text) if text[:1] == b"{" else {"message": text.decode()}
        if answer.status == 429 or answer.status >= 500:
            raise NoAnswerError(f"{method} {path}: {answer.status} {found['message']}")
        if answer.status >= 400:
            raise RefusedError(answer.status, found["message"])
        return found

    def get(self, path: str) -> Object | None:
        """Return an object, None when there is none."""
        try:
            return self.request("GET", path)
        except RefusedError as error:
            if error.code == 404:
                return None
            raise

    def items(self, path: str) -> list[Object]:
        """Return the objects of a collection."""
        items: list[Object] = self.request("GET", path)["items"]
        return items

    def create(self, path: str, body: Object | str) -> Object:
        """Create an object in a collection."""
        return self.request("POST", path, body)

    def patch(self, path: str, body: Object) -> Object:
        """Change an object by a merge patch."""
        return self.request("PATCH", path, body, MERGE_PATCH)

    def delete(self, path: str, propagation: str = "Background") -> None:
        """Delete an object or a collection; an absent one is no error."""
        try:
            self.request("DELETE", path, {"propagationPolicy": propagation})
        except RefusedError as error:
            if error.code != 404:
                raise
