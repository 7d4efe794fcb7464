"""Events that come twice, late or in the wrong order, and answers that come beside them."""

from __future__ import annotations

import pytest

from agentjobs.apis.jobrecords import JobRecord
from agentjobs.cluster import reflector
from tests.unit.cluster.fake_api import FakeApi
from tests.unit.cluster.followed import Followed, a_job, encoded, synced


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
    old = JobRecord(encoded(api.put("jobs", a_job("a"))))
    api.put("jobs", a_job("a"))
    async with followed.running():
        await synced(api, followed)
        assert not followed.reflector.upsert(old)
        newer = JobRecord(encoded(a_job("a", uid=old.uid, resourceVersion="999")))
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
            followed.reflector.upsert(JobRecord(encoded(api.put("jobs", a_job("c")))))

    api.rules.append(write)
    async with followed.running():
        await synced(api, followed)
    assert followed.names == {"a", "b", "c"}
    assert "-c" not in followed.told
