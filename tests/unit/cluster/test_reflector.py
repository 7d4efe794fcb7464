"""The reflector stays equal to what is stored, whatever becomes of its connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace

import msgspec
import pytest

from agentjobs.apis import names
from agentjobs.apis.records import JobRecord
from agentjobs.cluster import paths, reflector
from agentjobs.cluster.reflector import Reflector
from agentjobs.cluster.session import Session
from agentjobs.errors import ApiError
from tests.unit.cluster.fake_api import JSON, FakeApi, HungUpError, RefusedError, Request

EXPIRED = RefusedError(410, "Expired", "too old resource version")


class Followed:
    """A reflector of Jobs, and what it told, as `+name`, `~name`, `-name`."""

    def __init__(self, session: Session) -> None:
        self.told: list[str] = []
        self.reflector = Reflector(
            session, paths.JOBS, JobRecord, self._changed, selector=names.LABEL_RUN_UID
        )
        self._moved = asyncio.Event()

    def _changed(self, old: JobRecord | None, new: JobRecord | None) -> None:
        record = new or old
        assert record is not None
        self.told.append(("~" if old and new else "+" if new else "-") + record.name)
        self._moved.set()

    @property
    def names(self) -> set[str]:
        return {record.name for record in self.reflector.objects.values()}

    async def until(self, *told: str) -> None:
        """Return when exactly this was told, in this order."""
        async with asyncio.timeout(10):
            while len(self.told) < len(told):
                self._moved.clear()
                await self._moved.wait()
        assert self.told == list(told)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.reflector.run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


@pytest.fixture
def followed(session: Session) -> Followed:
    return Followed(session)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses before each connect, in seconds; none of them is waited for, and none is jittered."""
    paused: list[float] = []

    async def sleep(seconds: float) -> None:
        paused.append(seconds)
        await asyncio.sleep(0)

    monkeypatch.setattr(reflector, "asyncio", SimpleNamespace(sleep=sleep, Event=asyncio.Event))
    monkeypatch.setattr(reflector, "random", SimpleNamespace(uniform=lambda low, high: (low + high) / 2))
    return paused


def a_job(name: str, **metadata: object) -> JSON:
    return {"metadata": {"name": name, "labels": {names.LABEL_RUN_UID: name}, **metadata}}


async def synced(api: FakeApi, followed: Followed) -> None:
    async with asyncio.timeout(10):
        await followed.reflector.synced.wait()
    await api.until(lambda: api.watchers)


# -- what it is there for ------------------------------------------------------------------------------


async def test_what_is_stored_is_listed_and_then_watched(api: FakeApi, followed: Followed) -> None:
    api.put("jobs", a_job("a"))
    async with followed.running():
        await synced(api, followed)
        api.put("jobs", a_job("b"))
        api.put("jobs", a_job("b"))
        api.delete("jobs", "a")
        await followed.until("+a", "+b", "~b", "-a")
    assert followed.names == {"b"}
    assert [request.verb for request in api.requests] == ["list jobs", "watch jobs"]
    assert api.requests[1].params["allowWatchBookmarks"] == "true"


async def test_only_what_is_selected_is_asked_for(api: FakeApi, followed: Followed) -> None:
    api.put("jobs", {"metadata": {"name": "foreign"}})
    async with followed.running():
        await synced(api, followed)
        api.put("jobs", {"metadata": {"name": "foreign"}})
        api.put("jobs", a_job("ours"))
        await followed.until("+ours")


async def test_a_long_list_comes_in_pages(
    api: FakeApi, followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reflector, "LIST_CHUNK", 2)
    for number in range(5):
        api.put("jobs", a_job(f"job-{number}"))
    async with followed.running():
        await synced(api, followed)
    assert followed.names == {f"job-{number}" for number in range(5)}
    assert api.count("list jobs") == 3


# -- what it must survive ------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["http", "event"])
async def test_an_expired_version_leads_to_a_list_and_missed_deletes_are_told(
    api: FakeApi, followed: Followed, pauses: list[float], how: str
) -> None:
    for name in ("a", "b"):
        api.put("jobs", a_job(name))
    async with followed.running():
        await synced(api, followed)
        api.delete("jobs", "a", told=False)
        api.put("jobs", a_job("c"))
        await followed.until("+a", "+b", "+c")
        if how == "http":
            api.forget()
            api.say("jobs", HungUpError())
        else:
            api.say("jobs", {"type": "ERROR", "object": {"code": 410, "message": "too old"}})
        await followed.until("+a", "+b", "+c", "-a")
    assert followed.names == {"b", "c"}


async def test_a_page_that_expires_starts_the_list_anew(
    api: FakeApi, followed: Followed, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reflector, "LIST_CHUNK", 2)
    for number in range(3):
        api.put("jobs", a_job(f"job-{number}"))

    def forget_once(request: Request) -> None:
        if "continue" in request.params and len(pauses) == 1:
            api.forget()

    api.rules.append(forget_once)
    async with followed.running():
        await synced(api, followed)
    assert followed.names == {"job-0", "job-1", "job-2"}
    assert api.count("list jobs") == 4


async def test_a_broken_connection_is_taken_up_where_it_was(
    api: FakeApi, followed: Followed, pauses: list[float]
) -> None:
    async with followed.running():
        await synced(api, followed)
        api.put("jobs", a_job("a"))
        await followed.until("+a")
        api.say("jobs", HungUpError())
        api.put("jobs", a_job("b"))
        await followed.until("+a", "+b")
    assert api.count("list jobs") == 1


async def test_half_a_line_before_the_end_is_no_event(
    api: FakeApi, followed: Followed, pauses: list[float]
) -> None:
    async with followed.running():
        await synced(api, followed)
        api.say("jobs", b'{"type":"ADDED","object":{"meta')
        api.put("jobs", a_job("a"))
        await followed.until("+a")
    assert api.count("watch jobs") == 2


async def test_silence_is_taken_for_a_broken_connection(
    api: FakeApi, followed: Followed, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reflector, "SILENCE_SECONDS", 0.02)
    async with followed.running():
        await api.until(lambda: api.count("watch jobs") >= 3)
        api.put("jobs", a_job("a"))
        await followed.until("+a")
    assert api.count("list jobs") == 1


async def test_a_bookmark_moves_the_version_on(api: FakeApi, followed: Followed, pauses: list[float]) -> None:
    async with followed.running():
        await synced(api, followed)
        api.say("jobs", {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "900"}}})
        api.say("jobs", None)
        await api.until(lambda: api.count("watch jobs") == 2)
    assert api.requests[-1].params["resourceVersion"] == "900"


@pytest.mark.parametrize(
    "line",
    [
        b"<html>",
        {"type": "BOOKMARK", "object": {}},
        {"type": "ERROR", "object": 7},
        {"type": "ERROR", "object": {"code": 500, "message": "etcdserver: leader changed"}},
        {"type": "DELETED", "object": {"metadata": {}}},
    ],
)
async def test_what_is_not_understood_leads_to_a_reconnect(
    api: FakeApi, followed: Followed, pauses: list[float], line: JSON | bytes
) -> None:
    async with followed.running():
        await synced(api, followed)
        api.say("jobs", line)
        await api.until(lambda: api.count("watch jobs") == 2)
        api.put("jobs", a_job("a"))
        await followed.until("+a")


async def test_an_object_may_be_nested_as_deeply_as_the_server_takes_it(
    api: FakeApi, followed: Followed
) -> None:
    deep = b"[" * 9_000 + b"]" * 9_000
    event = {
        "type": "ADDED",
        "object": {**a_job("deep", uid="deep", resourceVersion="999"), "spec": {"a": 0}},
    }
    async with followed.running():
        await synced(api, followed)
        api.say("jobs", _encoded(event).replace(b'{"a":0}', b'{"a":' + deep + b"}"))
        await followed.until("+deep")


async def test_an_object_that_cannot_be_read_does_not_hide_the_others(
    api: FakeApi, followed: Followed, pauses: list[float]
) -> None:
    broken = {"labels": {names.LABEL_RUN_UID: "b", "number": 1}}
    api.put("jobs", a_job("a"))
    api.put("jobs", a_job("b"))
    async with followed.running():
        await synced(api, followed)
        api.put("jobs", a_job("b", **broken))
        api.put("jobs", a_job("c"))
        await followed.until("+a", "+b", "+c")
        # A list that shows it again in this form does not make it a deleted one,
        api.say("jobs", {"type": "ERROR", "object": {"code": 410}})
        await api.until(lambda: api.count("watch jobs") == 2)
        assert followed.names == {"a", "b", "c"}
        # and its end is understood all the same.
        api.delete("jobs", "b")
        await followed.until("+a", "+b", "+c", "-b")


# -- what came twice, late, or in the wrong order ----------------------------------------------------


async def test_events_that_come_twice_or_late_change_nothing(api: FakeApi, followed: Followed) -> None:
    old = api.put("jobs", a_job("a"))
    new = api.put("jobs", a_job("a"))
    async with followed.running():
        await synced(api, followed)
        api.say("jobs", {"type": "MODIFIED", "object": old})
        api.say("jobs", {"type": "MODIFIED", "object": new})
        api.say("jobs", {"type": "ADDED", "object": new})
        api.delete("jobs", "a")
        api.say("jobs", {"type": "DELETED", "object": new})
        api.say("jobs", {"type": "MODIFIED", "object": new})
        api.put("jobs", a_job("b"))
        await followed.until("+a", "-a", "+b")


async def test_an_answer_older_than_the_watch_is_ignored(api: FakeApi, followed: Followed) -> None:
    old = JobRecord(_encoded(api.put("jobs", a_job("a"))))
    api.put("jobs", a_job("a"))
    async with followed.running():
        await synced(api, followed)
        assert not followed.reflector.upsert(old)
        newer = JobRecord(_encoded(a_job("a", uid=old.uid, resourceVersion="999")))
        assert followed.reflector.upsert(newer)
        assert followed.told == ["+a", "~a"]


async def test_what_was_deleted_does_not_come_back_with_a_late_answer(
    api: FakeApi, followed: Followed
) -> None:
    api.put("jobs", a_job("a"))
    async with followed.running():
        await synced(api, followed)
        late = next(iter(followed.reflector.objects.values()))
        api.delete("jobs", "a")
        await followed.until("+a", "-a")
        assert not followed.reflector.upsert(late)
        # Another object of the same name is another one.
        api.put("jobs", a_job("a"))
        await followed.until("+a", "-a", "+a")


async def test_a_write_during_a_list_survives_it(
    api: FakeApi, followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What our own writes tell of while pages come in may be missing in them: it is newer than they are."""
    monkeypatch.setattr(reflector, "LIST_CHUNK", 1)
    for name in ("a", "b"):
        api.put("jobs", a_job(name))

    def write(request: object) -> None:
        if api.count("list jobs") == 2:
            followed.reflector.upsert(JobRecord(_encoded(api.put("jobs", a_job("c")))))

    api.rules.append(write)
    async with followed.running():
        await synced(api, followed)
    assert followed.names == {"a", "b", "c"}
    assert "-c" not in followed.told


# -- how often it asks -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "refusal",
    [
        RefusedError(500, "InternalError", "etcdserver: request timed out"),
        RefusedError(403, "Forbidden", "not yours"),
        EXPIRED,
        HungUpError(),
    ],
    ids=["error", "forbidden", "expired", "hung up"],
)
@pytest.mark.parametrize("verb", ["list jobs", "watch jobs"])
async def test_refusals_are_answered_by_longer_and_longer_pauses(
    api: FakeApi, followed: Followed, pauses: list[float], verb: str, refusal: Exception
) -> None:
    # The client itself asks twice before it takes a connection for broken.
    api.refuse(verb, refusal, times=16 if isinstance(refusal, HungUpError) else 8)
    async with followed.running():
        await synced(api, followed)
    assert pauses == [0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5]


async def test_a_watch_that_ends_at_once_is_not_begun_at_once(
    api: FakeApi, followed: Followed, pauses: list[float]
) -> None:
    async with followed.running():
        for number in range(1, 5):
            await api.until(lambda number=number: api.count("watch jobs") == number)  # type: ignore[misc]
            api.say("jobs", None)
        await api.until(lambda: api.count("watch jobs") == 5)
    assert pauses == [0, 0.1, 0.2, 0.4, 0.8]


async def test_after_a_good_connection_the_pause_is_short_again(
    api: FakeApi, followed: Followed, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(reflector, "time", SimpleNamespace(monotonic=lambda: now))
    api.refuse("list jobs", RefusedError(500), times=5)
    async with followed.running():
        await synced(api, followed)
        now = 300.0
        api.say("jobs", None)
        await api.until(lambda: api.count("watch jobs") == 2)
    assert pauses == [0, 0.1, 0.2, 0.4, 0.8, 1.6, 0.1]


async def test_what_the_server_asks_to_wait_is_waited(
    api: FakeApi, followed: Followed, pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reflector, "random", SimpleNamespace(uniform=min))
    api.refuse("list jobs", RefusedError(429, "TooManyRequests", "later", {"Retry-After": "7"}))
    async with followed.running():
        await synced(api, followed)
    assert pauses == [0, 7]


# -- the session -----------------------------------------------------------------------------------


async def test_a_refusal_tells_status_reason_message_and_when_to_try_again(
    api: FakeApi, session: Session
) -> None:
    api.refuse("get jobs", RefusedError(429, "TooManyRequests", "later", {"Retry-After": "7"}))
    path = f"{paths.jobs('agents')}/a"
    with pytest.raises(ApiError) as caught:
        await session.request("GET", path)
    error = caught.value
    assert (error.status, error.reason, error.message) == (429, "TooManyRequests", "later")
    assert (error.retry_after, error.transient) == (7, True)
    with pytest.raises(ApiError, match="not found") as caught:
        await session.request("GET", path)
    assert not caught.value.transient


async def test_no_answer_is_an_error_like_any_other(api: FakeApi, session: Session) -> None:
    api.refuse("get jobs", HungUpError(), times=2)
    with pytest.raises(ApiError) as caught:
        await session.request("GET", f"{paths.jobs('agents')}/a")
    assert (caught.value.status, caught.value.transient) == (0, True)


async def test_a_token_that_is_no_longer_good_leads_to_a_new_login(api: FakeApi, session: Session) -> None:
    api.put("jobs", a_job("a"))
    api.refuse("get jobs", RefusedError(401, "Unauthorized"))
    path = f"{paths.jobs('agents')}/a"
    with pytest.raises(ApiError) as caught:
        await session.request("GET", path)
    assert caught.value.transient
    assert b'"a"' in await session.request("GET", path)


def _encoded(body: JSON) -> bytes:
    return msgspec.json.encode(body)
