"""A reflector: one kind of object, listed once and then watched, kept in memory and true again after any gap.

Events may be lost, doubled or late. So each object is taken only when its resourceVersion is newer
than the one known, a list makes up for deletions nobody told of, and an object that was seen deleted
does not come back with an answer that was under way.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import msgspec

from agentjobs import metrics
from agentjobs.apis import nesting
from agentjobs.apis.records import Record
from agentjobs.cluster.session import Session
from agentjobs.errors import ApiError

_log = logging.getLogger(__name__)

R = TypeVar("R", bound=Record)

LIST_CHUNK = 500
WATCH_SECONDS = 300  # after which the server ends a watch by itself
SILENCE_SECONDS = 75.0  # the server sends a bookmark about once a minute
_BACKOFF_SECONDS = (0.1, 5.0)  # first and longest pause before a reconnect, before jitter
_TOMBSTONES = 10_000


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = "0"
    continue_: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Bookmark(msgspec.Struct):
    metadata: _ListMeta


class _Name(msgspec.Struct):
    uid: str


class _Named(msgspec.Struct):
    """What even an object that cannot be read has."""

    metadata: _Name


class _Failure(msgspec.Struct):
    code: int = 0
    message: str = ""


_LIST = msgspec.json.Decoder(_List)
_EVENT = msgspec.json.Decoder(_Event)
_NAMED = msgspec.json.Decoder(_Named)
_BOOKMARK = msgspec.json.Decoder(_Bookmark)
_FAILURE = msgspec.json.Decoder(_Failure)
# The levels of the fields of an object's spec in a watch event and in a list.
_IN_EVENT, _IN_LIST = 4, 5


class _ExpiredError(Exception):
    """The resourceVersion to watch from is too old (410): a list is needed."""


class Reflector(Generic[R]):
    """Keeps `objects` (by uid) equal to what the API server stores, and tells of each change.

    Attributes:
        kind: the plural that its path ends with, such as `jobs`.
        synced: set once everything was listed.
        heard: when the server said something last, by the monotonic clock.

    Args:
        session: where to ask.
        path: of the collection over all namespaces, such as `/apis/batch/v1/jobs`.
        decode: makes a record of one object's JSON.
        changed: called with the old and the new record; None for one that was not or is no longer there.
            It must not block and must not raise.
        selector, fields: a label and a field selector, "" for everything.
    """

    def __init__(
        self,
        session: Session,
        path: str,
        decode: Callable[[bytes | msgspec.Raw], R],
        changed: Callable[[R | None, R | None], None],
        *,
        selector: str = "",
        fields: str = "",
    ) -> None:
        self.objects: dict[str, R] = {}
        self.synced = asyncio.Event()
        self.heard = time.monotonic()
        self._session = session
        self._path = path
        self.kind = path.rsplit("/", 1)[-1]
        self._decode = decode
        self._changed = changed
        asked = {"labelSelector": selector, "fieldSelector": fields}
        self._params = {name: value for name, value in asked.items() if value}
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._version = ""  # what the watch goes on from; "" when a list is needed

    async def run(self) -> None:
        """List and watch until cancelled; every failure leads to a reconnect after a jittered pause."""
        pause = asked = 0.0
        while True:
            # Jitter spreads what many clients do, and never undercuts what the server asked for.
            jitter = random.uniform(0.5, 1.5)  # noqa: S311
            await asyncio.sleep(max(pause * jitter, asked * max(1.0, jitter)))
            began, asked = time.monotonic(), 0.0
            try:
                if not self._version:
                    self._version = await self._read_all()
                    self.synced.set()
                await self._watch()
            except _ExpiredError:
                self._version = ""
            except ApiError as error:
                _log.warning("%s: %s; reconnecting", self.kind, error)
                asked = error.retry_after or 0.0
                if not error.transient:
                    self._version = ""
            metrics.RECONNECTS.labels(self.kind).inc()
            first, longest = _BACKOFF_SECONDS
            # A connection that held for a while was a good one: the next pause is short again.
            held = time.monotonic() - began > longest
            pause = first if held else min(longest, pause * 2 or first)

    async def relist(self) -> None:
        """Read everything once more, beside the watch: all that is stored when it begins is known then."""
        pause, longest = _BACKOFF_SECONDS
        while True:
            try:
                await self._read_all()
                return
            except ApiError as error:
                _log.warning("%s: %s; listed again", self.kind, error)
                await asyncio.sleep(max(pause, error.retry_after or 0.0))
                pause = min(longest, pause * 2)

    def upsert(self, record: R) -> bool:
        """Take a record, also one from a write's answer, if it is newer than the known one; say whether."""
        known = self.objects.get(record.uid)
        if record.uid in self._gone or (known is not None and known.version >= record.version):
            return False
        self.objects[record.uid] = record
        self._changed(known, record)
        return True

    def take(self, raw: bytes) -> None:
        """Take an object as a request has answered it; one that cannot be read is left alone."""
        if (record := self._read(msgspec.Raw(raw))) is not None:
            self.upsert(record)

    def remove(self, uid: str) -> None:
        """Forget an object that is deleted; its uid never comes back."""
        self._gone[uid] = None
        if len(self._gone) > _TOMBSTONES:
            self._gone.popitem(last=False)
        known = self.objects.pop(uid, None)
        if known is not None:
            self._changed(known, None)

    async def _read_all(self) -> str:
        """List everything, make up for deletions, and return the version of the list."""
        params, seen, version = {**self._params, "limit": str(LIST_CHUNK)}, set[str](), ""
        while True:
            content = await self._session.request("GET", self._path, params=params)
            self.heard = time.monotonic()
            with self._understood("list"):
                page = nesting.decode(content, _LIST, _IN_LIST)
                for raw in page.items or ():
                    # Seen is also what cannot be read: it is there.
                    seen.add(_NAMED.decode(raw).metadata.uid)
                    if (record := self._read(raw)) is not None:
                        self.upsert(record)
            # Every page is read at the version of the first one.
            version = version or page.metadata.resource_version
            if not page.metadata.continue_:
                break
            params["continue"] = page.metadata.continue_
        at = int(version)
        for uid in [uid for uid, known in self.objects.items() if uid not in seen and known.version <= at]:
            self.remove(uid)
        return version

    async def _watch(self) -> None:
        params = {
            **self._params,
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            # Not all at once: watches of many operators must not end in the same second.
            "timeoutSeconds": str(int(WATCH_SECONDS * random.uniform(0.8, 1.2))),  # noqa: S311
        }
        async for line in self._session.watch(self._path, params, silence=SILENCE_SECONDS):
            self.heard = time.monotonic()
            with self._understood("watch"):
                self._take(nesting.decode(line, _EVENT, _IN_EVENT))

    def _take(self, event: _Event) -> None:
        match event.type:
            case "BOOKMARK":
                self._version = _BOOKMARK.decode(event.object).metadata.resource_version
            case "ERROR":
                failure = _FAILURE.decode(event.object)
                if failure.code == 410:
                    raise _ExpiredError
                raise ApiError(failure.code, "WatchError", failure.message)
            case "ADDED" | "MODIFIED" if (record := self._read(event.object)) is not None:
                self._version = str(max(record.version, int(self._version)))
                self.upsert(record)
            case "DELETED":
                self.remove(_NAMED.decode(event.object).metadata.uid)

    @contextmanager
    def _understood(self, what: str) -> Iterator[None]:
        try:
            yield
        except (msgspec.DecodeError, RecursionError) as error:
            raise ApiError(0, "BadAnswer", f"{what} {self._path}: {error}") from error

    def _read(self, raw: msgspec.Raw) -> R | None:
        try:
            return self._decode(raw)
        except (ValueError, TypeError, RecursionError):
            # One object that cannot be read must not blind us to all the others.
            _log.exception("%s: an object cannot be read; it is left alone", self.kind)
            metrics.UNREADABLE.labels(self.kind).inc()
            return None
