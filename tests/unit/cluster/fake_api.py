"""A small API server: objects with versions, lists in pages, watches, refusals on demand.

It does what clients may rely on and can be told to do what they must survive: to refuse, to forget old
versions, to hang up, to say a thing twice or too late.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

JSON = dict[str, Any]

_PATH = re.compile(
    r"/(?:api|apis/[^/]+)/[^/]+(?:/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<plural>[a-z]+)(?:/(?P<name>[^/]+))?(?:/(?P<part>status))?"
)
EPOCH = "2026-03-02T12:00:00Z"


@dataclass
class Request:
    """One request as it arrived."""

    method: str
    path: str
    params: dict[str, str] = field(default_factory=dict)
    body: Any = None

    @property
    def verb(self) -> str:
        """What the audit log would say, such as `list jobs` or `patch agentjobs/status`."""
        place = self.place
        verbs = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
        read = "get" if place["name"] else "watch" if "watch" in self.params else "list"
        part = f"/{place['part']}" if place["part"] else ""
        return f"{verbs.get(self.method, read)} {place['plural']}{part}"

    @property
    def place(self) -> dict[str, str | None]:
        found = _PATH.fullmatch(self.path)
        assert found, self.path
        return found.groupdict()


@dataclass
class RefusedError(Exception):
    """An answer of 400 or more."""

    status: int
    reason: str = ""
    message: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def content(self) -> bytes:
        return msgspec.json.encode({"kind": "Status", "message": self.message, "reason": self.reason})


class HungUpError(Exception):
    """The server breaks the connection off."""


class Watcher:
    """One open watch and the lines that are still to be sent to it."""

    def __init__(self, plural: str, selector: str) -> None:
        self.plural = plural
        self.selector = selector
        self.lines: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()

    async def run(self) -> AsyncIterator[bytes]:
        while (line := await self.lines.get()) is not None:
            if isinstance(line, Exception):
                raise line
            yield line


class FakeApi:
    """The server itself; `answer` and `watch` are what a transport calls.

    Attributes:
        objects: what is stored, by plural and then by namespace/name.
        requests: every request so far, those that were refused as well.
        rules: asked with each request before it is served; what one of them raises is the answer.
    """

    def __init__(self) -> None:
        self.version = 100
        self.objects: dict[str, dict[str, JSON]] = {}
        self.requests: list[Request] = []
        self.rules: list[Callable[[Request], None]] = []
        self.watchers: list[Watcher] = []
        self.oldest = 0  # version before which nothing is remembered
        self.clock: Callable[[], str] = lambda: EPOCH
        self._history: list[tuple[int, str, str, JSON]] = []
        self._pages: dict[str, tuple[list[JSON], int]] = {}
        self._uids = 0
        self._moved = asyncio.Event()

    # -- what tests do ---------------------------------------------------------------------------

    def put(self, plural: str, body: JSON, *, namespace: str = "agents", told: bool = True) -> JSON:
        """Store an object, new or changed, as if another client had written it.

        Args:
            told: whether watches hear of it; if not, they are behind for good.
        """
        name = body["metadata"]["name"]
        known = self.objects.get(plural, {}).get(f"{namespace}/{name}")
        metadata = {"namespace": namespace, **(known or self._fresh())["metadata"], **body["metadata"]}
        if known and body.get("spec", known.get("spec")) != known.get("spec"):
            metadata["generation"] = known["metadata"]["generation"] + 1
        event = "MODIFIED" if known else "ADDED"
        return self._store(event, plural, {**(known or {}), **body, "metadata": metadata}, told=told)

    def delete(self, plural: str, name: str, *, namespace: str = "agents", told: bool = True) -> None:
        """Delete an object; `told` says whether watches hear of it."""
        gone = self.objects[plural].pop(f"{namespace}/{name}")
        self._record("DELETED", plural, gone, told=told)

    def get(self, plural: str, name: str, *, namespace: str = "agents") -> JSON:
        return self.objects[plural][f"{namespace}/{name}"]

    def refuse(self, verb: str, refusal: Exception, *, times: int = 1) -> None:
        """Answer the next requests of a verb, such as `create jobs`, with a refusal."""
        left = times

        def rule(request: Request) -> None:
            nonlocal left
            if request.verb == verb and left > 0:
                left -= 1
                raise refusal

        self.rules.append(rule)

    def forget(self) -> None:
        """Forget every version but the present one: watches and pages from before are refused."""
        self.version += 1
        self.oldest = self.version
        self._pages.clear()

    def say(self, plural: str, line: JSON | bytes | Exception | None) -> None:
        """Send a line to every watch of a kind as it is; an exception breaks it off, None ends it."""
        for watcher in self.watchers:
            if watcher.plural == plural:
                watcher.lines.put_nowait(msgspec.json.encode(line) if isinstance(line, dict) else line)
        self._notify()

    def count(self, verb: str) -> int:
        """How many requests of a verb have arrived."""
        return sum(request.verb == verb for request in self.requests)

    async def until(self, condition: Callable[[], object]) -> None:
        """Return when a condition holds; it is looked at after every request and every change."""
        async with asyncio.timeout(10):
            while not condition():
                await self._moved.wait()

    # -- what clients do -------------------------------------------------------------------------

    def answer(self, request: Request) -> bytes:
        """Serve a request that is no watch."""
        self._arrived(request)
        place = request.place
        # What is cluster-scoped lies in the namespace that `put` has by default.
        plural, namespace, name = str(place["plural"]), place["namespace"] or "agents", place["name"]
        match request.method:
            case "GET" if name is None:
                return self._list(plural, request.params)
            case "POST":
                return msgspec.json.encode(self._create(plural, str(namespace), request.body))
        stored = self.objects.get(plural, {}).get(f"{namespace}/{name}")
        if stored is None:
            raise RefusedError(404, "NotFound", f'{plural} "{name}" not found')
        match request.method:
            case "GET":
                return msgspec.json.encode(stored)
            case "DELETE":
                self._check((request.body or {}).get("preconditions", {}), stored)
                self.delete(plural, str(name), namespace=str(namespace))
                return b"{}"
        body = request.body
        self._check(body.get("metadata", {}), stored)
        if request.method == "PATCH":
            if place["part"]:
                body = {part: value for part, value in body.items() if part == place["part"]}
            body = _merged(stored, {**body, "metadata": {}})
        if body != stored:
            if body.get("spec") != stored.get("spec"):
                body["metadata"]["generation"] = body["metadata"].get("generation", 1) + 1
            stored = self._store("MODIFIED", plural, body)
        return msgspec.json.encode(stored)

    def watch(self, request: Request) -> Watcher:
        """Open a watch; what happened since the version it names comes first."""
        self._arrived(request)
        plural, version = str(request.place["plural"]), int(request.params["resourceVersion"])
        if version < self.oldest:
            raise RefusedError(410, "Expired", f"too old resource version: {version} ({self.oldest})")
        watcher = Watcher(plural, request.params.get("labelSelector", ""))
        for at, kind, event, body in self._history:
            if at > version and kind == plural and _selected(body, watcher.selector):
                watcher.lines.put_nowait(msgspec.json.encode({"type": event, "object": body}))
        self.watchers.append(watcher)
        self._notify()
        return watcher

    def close(self, watcher: Watcher) -> None:
        self.watchers.remove(watcher)
        self._notify()

    # -- details ---------------------------------------------------------------------------------

    def _arrived(self, request: Request) -> None:
        self.requests.append(request)
        self._notify()
        for rule in self.rules:
            rule(request)

    def _notify(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    def _fresh(self) -> JSON:
        self._uids += 1
        uid = f"00000000-0000-4000-8000-{self._uids:012x}"
        return {"metadata": {"uid": uid, "creationTimestamp": self.clock(), "generation": 1}}

    def _store(self, event: str, plural: str, body: JSON, *, told: bool = True) -> JSON:
        metadata = {**body["metadata"], "resourceVersion": str(self.version + 1)}
        stored: JSON = {**body, "metadata": metadata}
        self.objects.setdefault(plural, {})[f"{metadata['namespace']}/{metadata['name']}"] = stored
        self._record(event, plural, stored, told=told)
        return stored

    def _record(self, event: str, plural: str, body: JSON, *, told: bool = True) -> None:
        self.version += 1
        body = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        if told:
            self._history.append((self.version, plural, event, body))
            line = msgspec.json.encode({"type": event, "object": body})
            for watcher in self.watchers:
                if watcher.plural == plural and _selected(body, watcher.selector):
                    watcher.lines.put_nowait(line)
        self._notify()

    def _create(self, plural: str, namespace: str, body: JSON) -> JSON:
        name = body["metadata"]["name"]
        if f"{namespace}/{name}" in self.objects.get(plural, {}):
            raise RefusedError(409, "AlreadyExists", f'{plural} "{name}" already exists')
        return self.put(plural, body, namespace=namespace)

    def _list(self, plural: str, params: dict[str, str]) -> bytes:
        if token := params.get("continue"):
            if token not in self._pages:
                raise RefusedError(410, "Expired", "The provided continue parameter is too old")
            items, version = self._pages.pop(token)
        else:
            selector = params.get("labelSelector", "")
            stored = self.objects.get(plural, {}).values()
            items, version = [body for body in stored if _selected(body, selector)], self.version
        limit = int(params.get("limit", len(items) or 1))
        metadata = {"resourceVersion": str(version)}
        if len(items) > limit:
            metadata["continue"] = token = f"{version}-{len(items)}"
            self._pages[token] = (items[limit:], version)
        return msgspec.json.encode({"metadata": metadata, "items": items[:limit]})

    def _check(self, wanted: JSON, stored: JSON) -> None:
        for part in ("uid", "resourceVersion"):
            if part in wanted and wanted[part] != stored["metadata"][part]:
                raise RefusedError(409, "Conflict", f"the object has been modified ({part})")


def _merged(old: Any, new: Any) -> Any:
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return new
    kept = {key: value for key, value in old.items() if new.get(key, value) is not None}
    return {
        **kept,
        **{key: _merged(old.get(key), value) for key, value in new.items() if value is not None},
    }


def _selected(body: JSON, selector: str) -> bool:
    if selector.startswith("!"):
        return selector[1:] not in body["metadata"].get("labels", {})
    key, equal, value = selector.partition("=")
    labels = body["metadata"].get("labels", {})
    return not key or (labels.get(key) == value if equal else key in labels)
