"""Keeping the Lease while requests fail, clocks stand still and hands edit it, and when it is lost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentjobs.cluster.lease import HELD_SECONDS
from agentjobs.cluster.leaseobject import LEASE_SECONDS
from tests.unit.cluster.candidates import Candidate, delete, released, store, stored, until
from tests.unit.cluster.fake_api import FakeApi, HungUpError, RefusedError
from tests.unit.cluster.virtual import in_virtual_time

# -- keeping it ---------------------------------------------------------------------------------------


@in_virtual_time
async def test_it_is_renewed_for_as_long_as_the_process_lives() -> None:
    api = FakeApi()
    released(api)
    a, b = Candidate(api, "a"), Candidate(api, "b")
    await a.elected(within=1)
    for _ in range(36_000):
        await asyncio.sleep(0.1)
        assert a.lease.held
    assert b.term is None
    assert stored(api)["leaseTransitions"] == a.lease.epoch - 1
    assert api.count("update leases") < 3700


@pytest.mark.parametrize(
    "refusal",
    [
        HungUpError(),
        RefusedError(429),
        RefusedError(500),
        RefusedError(401),
        RefusedError(403),
        RefusedError(409),
    ],
)
@in_virtual_time
async def test_a_renewal_that_fails_is_tried_again_while_there_is_time(refusal: Exception) -> None:
    api = FakeApi()
    released(api)
    a = Candidate(api, "a")
    await a.elected(within=1)
    api.refuse("update leases", refusal, times=10)
    await asyncio.sleep(30)
    assert a.lease.held
    assert not a.ended


@in_virtual_time
async def test_a_renewal_whose_answer_was_lost_is_found() -> None:
    api = FakeApi()
    released(api)
    a = Candidate(api, "a")
    await a.elected(within=1)
    a.session.lost += ["update leases"] * 3
    await asyncio.sleep(30)
    assert a.lease.held
    assert a.session.lost == []


@in_virtual_time
async def test_a_leader_that_is_cut_off_ends_before_another_is_elected() -> None:
    api = FakeApi()
    released(api)
    a, b = Candidate(api, "a"), Candidate(api, "b")
    await a.elected(within=1)
    await asyncio.sleep(10.3)
    a.cut()
    cut = a.clock()
    await until(lambda: not a.lease.held, HELD_SECONDS)
    await asyncio.sleep(0.3)
    assert a.ended.startswith("the Lease was not renewed for 4.5 s: update leases: no answer within")
    assert not b.lease.held
    term = await b.elected(within=5)
    assert b.clock() - cut <= LEASE_SECONDS + 1
    assert term.epoch == a.lease.epoch + 1
    assert term.opens_at <= b.clock()


@in_virtual_time
async def test_a_leader_that_stood_still_holds_nothing_the_moment_it_wakes() -> None:
    api = FakeApi()
    released(api)
    a = Candidate(api, "a")
    await a.elected(within=1)
    await asyncio.sleep(2)
    a.asleep = 20
    assert not a.lease.held
    await asyncio.sleep(2)
    assert a.ended == "the Lease was not renewed for 4.5 s: this process stood still"
    assert api.requests[-1].body["spec"]["holderIdentity"] == "a"  # and nothing was sent after that


@in_virtual_time
async def test_a_leader_asleep_while_its_renewal_was_answered_has_lost_it() -> None:
    api = FakeApi()
    released(api)
    a = Candidate(api, "a")
    await a.elected(within=1)
    gate = a.session.gates["update leases"] = asyncio.Event()
    await asyncio.sleep(1)
    a.asleep = 10
    gate.set()
    await asyncio.sleep(0.1)
    assert not a.lease.held
    await asyncio.sleep(2)
    assert a.ended


@in_virtual_time
async def test_a_standby_asleep_for_long_does_not_take_what_was_renewed_meanwhile() -> None:
    api = FakeApi()
    released(api)
    a, b = Candidate(api, "a"), Candidate(api, "b")
    await a.elected(within=1)
    gate = b.session.gates["update leases"] = asyncio.Event()  # it hangs between its look and its write
    b.asleep = 100
    await asyncio.sleep(0.6)
    gate.set()
    await asyncio.sleep(20)
    assert a.lease.held
    assert not b.lease.held


@pytest.mark.parametrize(
    "spec", [{"holderIdentity": "b"}, {"holderIdentity": "a", "leaseTransitions": 9}, {"leaseTransitions": 9}]
)
@in_virtual_time
async def test_a_lease_that_another_has_ends_the_process(spec: dict[str, Any]) -> None:
    api = FakeApi()
    released(api)
    a = Candidate(api, "a")
    await a.elected(within=1)
    store(api, **{**stored(api), **spec})
    await asyncio.sleep(2)
    assert a.ended.startswith("the Lease is held by")


@in_virtual_time
async def test_two_processes_of_one_identity_do_not_both_hold_it_for_long() -> None:
    api = FakeApi()
    released(api)
    a = Candidate(api, "a")
    await a.elected(within=1)
    twin = Candidate(api, "a")
    await twin.elected(within=1)
    await asyncio.sleep(2)
    assert a.ended
    assert twin.lease.held


# -- deleted and edited by hand -----------------------------------------------------------------------


@in_virtual_time
async def test_deleted_by_hand_it_is_made_again_by_its_holder() -> None:
    api = FakeApi()
    released(api)
    a, b = Candidate(api, "a"), Candidate(api, "b")
    await a.elected(within=1)
    delete(api)
    for _ in range(200):
        await asyncio.sleep(0.1)
        assert a.lease.held
        assert not b.lease.held
    assert stored(api)["leaseTransitions"] == a.lease.epoch - 1


@in_virtual_time
async def test_deleted_after_its_holder_died_it_is_taken_with_a_later_epoch() -> None:
    api = FakeApi()
    released(api, leaseTransitions=5)
    a, b = Candidate(api, "a"), Candidate(api, "b")
    await a.elected(within=1)
    await asyncio.sleep(3)
    await a.kill()
    delete(api)
    term = await b.elected(within=LEASE_SECONDS + 1)
    assert term.epoch == a.lease.epoch + 1


@in_virtual_time
async def test_emptied_by_hand_it_is_not_given_back() -> None:
    api = FakeApi()
    released(api)
    a, b = Candidate(api, "a"), Candidate(api, "b")
    await a.elected(within=1)
    store(api, **{**stored(api), "holderIdentity": ""})
    await asyncio.sleep(3)
    assert a.lease.held
    assert not b.lease.held
    assert stored(api)["holderIdentity"] == "a"
