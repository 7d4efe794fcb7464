"""The Lease has one holder at a time, whatever becomes of networks, processes and the object itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agentjobs.cluster.lease import HELD_SECONDS, WEBHOOK_SECONDS
from agentjobs.cluster.leaseobject import LEASE_SECONDS
from deploy.local.cluster import ROOT
from tests.unit.cluster.candidates import Candidate, delete, released
from tests.unit.cluster.fake_api import FakeApi
from tests.unit.cluster.virtual import in_virtual_time


def test_the_last_answers_of_a_holder_are_over_before_the_next_ones_first() -> None:
    documents = yaml.safe_load_all((ROOT / "deploy" / "base" / "admission.yaml").read_text())
    hooks = [hook for document in documents for hook in document.get("webhooks", [])]
    assert {hook["timeoutSeconds"] for hook in hooks} == {WEBHOOK_SECONDS}
    assert HELD_SECONDS + WEBHOOK_SECONDS < LEASE_SECONDS


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
