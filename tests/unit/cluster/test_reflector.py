"""The reflector stays equal to what is stored, whatever becomes of its connection."""

from __future__ import annotations

import pytest

from agentjobs.apis import names
from agentjobs.cluster import reflector
from tests.unit.cluster.fake_api import JSON, FakeApi, HungUpError, Request
from tests.unit.cluster.followed import Followed, a_job, encoded, synced

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
        api.say("jobs", encoded(event).replace(b'{"a":0}', b'{"a":' + deep + b"}"))
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


async def test_listed_again_beside_the_watch_it_knows_what_nobody_told(
    api: FakeApi, followed: Followed
) -> None:
    for name in ("a", "b"):
        api.put("jobs", a_job(name))
    async with followed.running():
        await synced(api, followed)
        api.delete("jobs", "a", told=False)
        api.put("jobs", a_job("c"), told=False)
        api.refuse("list jobs", HungUpError())
        await followed.reflector.relist()
        assert followed.names == {"b", "c"}
        api.put("jobs", a_job("d"))
        await followed.until("+a", "+b", "+c", "-a", "+d")
    assert api.count("watch jobs") == 1
