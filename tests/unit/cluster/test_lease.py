"""The Lease: one holder at a time, whatever becomes of networks, clocks, processes and the object itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agentjobs.cluster.lease import HELD_SECONDS, WEBHOOK_SECONDS
from agentjobs.cluster.leaseobject import LEASE_SECONDS
from deploy.local.cluster import ROOT
from tests.unit.cluster.candidates import Candidate, delete, released, store, stored, until
from tests.unit.cluster.fake_api import FakeApi, HungUpError, RefusedError
from tests.unit.cluster.virtual import in_virtual_time


def test_the_last_answers_of_a_holder_are_over_before_the_next_ones_first() -> None:
    documents = yaml.safe_load_all((ROOT / "deploy" / "base" / "admission.yaml").read_text())
    hooks = [hook for document in documents for hook in document.get("webhooks", [])]
    assert {hook["timeoutSeconds"] for hook in hooks} == {WEBHOOK_SECONDS}
    assert HELD_SECONDS + WEBHOOK_SECONDS < LEASE_SECONDS


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
async def test_of_many_one_is_elected() -> None:
    api = FakeApi()
    released(api)
    candidates = [Candidate(api, name) for name in "abcde"]
    for _ in range(200):
        await asyncio.sleep(0.1)
        assert sum(candidate.lease.held for candidate in candidates) <= 1
    assert sum(candidate.term is not None for candidate in candidates) == 1
    assert not any(candidate.ended for candidate in candidates)


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


@given(st.data())
@settings(max_examples=60)
def test_there_are_never_two_holders(data: st.DataObject) -> None:
    """Deletions, cuts, kills and starts in any order: between two terms there is a webhook's time."""

    @in_virtual_time
    async def story() -> None:
        api = FakeApi()
        stopped_at: dict[int, float] = {}  # when a term's holder ceased to hold it

        def start(identity: str) -> Candidate:
            return Candidate(api, identity, floor=lambda: max(stopped_at, default=0))

        candidates = [start(name) for name in "abc"]
        for _ in range(data.draw(st.integers(5, 25))):
            await _disturb(data, api, candidates, start)
            for _ in range(data.draw(st.integers(1, 60))):
                await asyncio.sleep(0.1)
                now = asyncio.get_running_loop().time()
                holders = [candidate.lease for candidate in candidates if candidate.lease.held]
                assert len(holders) <= 1
                for lease in holders:
                    stopped_at[lease.epoch] = now
                    before = [at for epoch, at in stopped_at.items() if epoch < lease.epoch]
                    assert max(stopped_at) == lease.epoch
                    opens = next(c.term for c in candidates if c.lease is lease)
                    assert opens is not None
                    if before:
                        assert opens.opens_at - max(before) >= WEBHOOK_SECONDS - 0.1
        for candidate in candidates:
            await candidate.kill()

    story()


async def _disturb(
    data: st.DataObject, api: FakeApi, candidates: list[Candidate], start: Callable[[str], Candidate]
) -> None:
    one = data.draw(st.integers(0, len(candidates) - 1))
    match data.draw(st.sampled_from(["delete", "cut", "heal", "kill", "restart", "lose", "nothing"])):
        case "delete" if api.objects.get("leases"):
            delete(api)
        case "cut":
            candidates[one].cut()
        case "heal":
            for gate in candidates[one].session.gates.values():
                gate.set()
            candidates[one].session.gates.clear()
        case "kill":
            await candidates[one].kill()
            candidates[one] = start(f"another-{id(candidates[one])}")
        case "restart":
            identity = candidates[one].lease.identity
            await candidates[one].kill()
            candidates[one] = start(identity)
        case "lose":
            candidates[one].session.lost.append("update leases")


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
