"""Who takes the Lease, when and with which epoch, and how it is given back to the next."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentjobs.cluster.lease import WEBHOOK_SECONDS
from agentjobs.cluster.leaseobject import LEASE_SECONDS
from tests.unit.cluster.candidates import Candidate, released, store, stored
from tests.unit.cluster.fake_api import FakeApi, HungUpError, RefusedError
from tests.unit.cluster.virtual import in_virtual_time

# -- taking it ----------------------------------------------------------------------------------------


@in_virtual_time
async def test_a_lease_that_was_given_back_is_taken_at_once() -> None:
    api = FakeApi()
    released(api, leaseTransitions=6)
    a = Candidate(api, "a")
    term = await a.elected(within=0.1)
    assert term.epoch == a.lease.epoch == 8
    assert term.opens_at <= a.clock()
    assert a.lease.held
    spec = stored(api)
    assert (spec["holderIdentity"], spec["leaseTransitions"], spec["leaseDurationSeconds"]) == ("a", 7, 8)


@pytest.mark.parametrize(
    "spec",
    [
        None,
        {},
        {"holderIdentity": ""},
        {"holderIdentity": None, "renewTime": None},
        {"holderIdentity": "", "leaseDurationSeconds": 1},
        {"holderIdentity": "", "leaseDurationSeconds": 8, "renewTime": "2026-03-02T12:00:00.000000Z"},
        {"holderIdentity": "b", "leaseDurationSeconds": 8, "renewTime": "2026-03-02T12:00:00.000000Z"},
        {"holderIdentity": "b", "leaseDurationSeconds": 1, "renewTime": "1999-03-02T12:00:00.000000Z"},
    ],
)
@in_virtual_time
async def test_any_other_lease_counts_as_held_for_its_duration(spec: dict[str, Any] | None) -> None:
    api = FakeApi()
    if spec is not None:
        store(api, **spec)
    a = Candidate(api, "a")
    await asyncio.sleep(LEASE_SECONDS - 0.01)
    assert not a.lease.held
    assert a.term is None
    term = await a.elected(within=0.1)
    assert term.opens_at <= a.clock()  # whoever held it stopped answering long ago


@in_virtual_time
async def test_a_longer_duration_of_another_version_is_respected() -> None:
    api = FakeApi()
    store(api, holderIdentity="b", leaseDurationSeconds=20)
    a = Candidate(api, "a")
    await asyncio.sleep(19.9)
    assert a.term is None
    await a.elected(within=0.2)


@in_virtual_time
async def test_who_does_not_stand_only_looks_but_knows_when_it_is_ripe() -> None:
    api = FakeApi()
    store(api, holderIdentity="b")
    a = Candidate(api, "a", stands=False)
    await asyncio.sleep(60)
    assert stored(api) == {"holderIdentity": "b"}
    a.stand()
    await a.elected(within=0.1)


@in_virtual_time
async def test_ones_own_lease_is_taken_at_once_but_answers_wait_for_those_of_the_former_process() -> None:
    api = FakeApi()
    released(api)
    former = Candidate(api, "a")
    first = await former.elected(within=0.1)
    await former.kill()
    term = await (a := Candidate(api, "a")).elected(within=0.1)
    assert term.epoch == first.epoch + 1
    assert term.opens_at == pytest.approx(a.clock() + WEBHOOK_SECONDS, abs=0.1)
    await a.kill()
    late = Candidate(api, "a", stands=False)
    await asyncio.sleep(WEBHOOK_SECONDS + 1)  # its start took long
    late.stand()
    assert (await late.elected(within=0.1)).opens_at <= late.clock()


@in_virtual_time
async def test_an_epoch_is_never_smaller_than_one_that_is_stored_elsewhere() -> None:
    a = Candidate(FakeApi(), "a", floor=lambda: 41)
    assert (await a.elected(within=9)).epoch == 42


@in_virtual_time
async def test_a_lease_that_cannot_be_read_or_written_is_tried_again() -> None:
    api = FakeApi()
    released(api)
    api.refuse("get leases", RefusedError(403, "Forbidden", "no right"))
    api.refuse("get leases", HungUpError())
    api.refuse("update leases", RefusedError(500, "InternalError", "etcd is away"))
    a = Candidate(api, "a")
    await a.elected(within=2)
    assert a.lease.held


# -- giving it back -----------------------------------------------------------------------------------


@in_virtual_time
async def test_given_back_it_is_the_next_ones_within_a_second() -> None:
    api = FakeApi()
    released(api)
    a, b = Candidate(api, "a"), Candidate(api, "b")
    first = await a.elected(within=1)
    await a.lease.release()
    assert not a.lease.held
    assert not a.ended
    term = await b.elected(within=0.6)
    assert term.epoch == first.epoch + 1
    assert term.opens_at <= b.clock()
    await asyncio.sleep(20)
    assert b.lease.held
    assert a.running.done()


@in_virtual_time
async def test_a_standby_that_leaves_touches_nothing() -> None:
    api = FakeApi()
    released(api)
    a, b = Candidate(api, "a"), Candidate(api, "b")
    await a.elected(within=1)
    await b.lease.release()
    await asyncio.sleep(20)
    assert a.lease.held
    assert b.running.done()


@in_virtual_time
async def test_giving_back_takes_bounded_time_where_nobody_answers() -> None:
    api = FakeApi()
    released(api)
    a = Candidate(api, "a")
    await a.elected(within=1)
    a.cut()
    async with asyncio.timeout(5):
        await a.lease.release()
    assert not a.lease.held


@in_virtual_time
async def test_what_another_took_meanwhile_is_not_given_back() -> None:
    api = FakeApi()
    released(api)
    a = Candidate(api, "a")
    await a.elected(within=1)
    store(api, **{**stored(api), "holderIdentity": "b"})
    await a.lease.release()
    assert stored(api)["holderIdentity"] == "b"
