"""The session: every failure is one exception, and a token may run out."""

from __future__ import annotations

import pytest

from agentjobs.cluster import paths
from agentjobs.cluster.session import Session
from agentjobs.errors import ApiError
from tests.unit.cluster.fake_api import FakeApi, HungUpError, RefusedError
from tests.unit.cluster.followed import a_job


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


async def test_a_write_that_may_not_be_sent_is_not_sent(api: FakeApi, session: Session) -> None:
    leads = Session(lambda: False)
    with pytest.raises(ApiError, match="this operator is not the leader") as caught:
        await leads.write("create", "jobs", "POST", paths.jobs("agents"), body=a_job("a"))
    assert (caught.value.status, caught.value.reason, caught.value.transient) == (0, "NotLeader", True)
    assert api.requests == []
