"""A change of leader as users see it: creates at a steady pace across it, and what became of each."""

import time
from collections.abc import Callable
from functools import partial

from tests.live.api import AGENTS
from tests.live.callers import Callers, Outage
from tests.live.contenders import Contender, Contest
from tests.live.lab import Lab, unique
from tests.live.support import eventually

LEASE = "/apis/coordination.k8s.io/v1/namespaces/agentjobs-system/leases/agentjobs-operator"
DISTURBANCES = ("freeze", "kill", "cut", "terminate", "delete")
LIMIT = 5  # of the team that is at its limit
ROOM = 10_000
DELETIONS = 5
_AGENTJOBS = f"{AGENTS}/namespaces/default/agentjobs"


def outage(lab: Lab, disturb: Callable[[], None]) -> Outage:
    """Return what users see of a disturbance: creates of two teams, one with room, one at its limit.

    Whoever leads, and while nobody does, the team at its limit must get nothing more: that is asserted.

    Args:
        disturb: returns when there is a leader again.
    """
    room, full, pool = unique("room"), unique("full"), lab.pool(hold=True)
    lab.team(room, maxPending=ROOM)
    lab.team(full, maxPending=LIMIT)
    with Callers(lab.cluster, pool, [room, full]) as callers:
        eventually(lambda: any(each.code == 429 for each in callers.of(full)))
        eventually(lambda: any(each.allowed for each in callers.of(room)))
        before = len(callers.creates)
        disturb()
        after = time.monotonic()
        for team, code in ((room, 201), (full, 429)):
            eventually(partial(_answered, callers, team, code, after))
    assert {each.code for each in callers.creates[:before]} == {201, 429}
    refused = [each for each in callers.of(full) if not each.allowed]
    assert {each.code for each in refused} <= {429, 500, 503}, refused
    assert all("pending jobs; retry after" in each.message for each in refused if each.code == 429), refused
    stored = lab.api.items(f"{_AGENTJOBS}?fieldSelector=spec.teamId={full}")
    assert len(stored) == sum(each.allowed for each in callers.of(full)) == LIMIT
    assert not lab.metric("agentjobs_over_limit_runs_total")
    for team in (room, full):
        lab.api.delete(f"{_AGENTJOBS}?fieldSelector=spec.teamId={team}")
    return Outage.of(callers.of(room))


def _answered(callers: Callers, team: str, code: int, since: float) -> bool:
    return any(each.code == code and each.began > since for each in callers.of(team))


def disturbance(
    lab: Contest, kind: str, leader: Contender, standby: Contender, cut: Callable[[], None]
) -> Callable[[], None]:
    """Return what disturbs a leader, and returns when the other one leads, or it has not lost the Lease.

    Args:
        kind: one of `DISTURBANCES`.
        cut: cuts the leader off from the API server.
    """

    def takes_over() -> None:
        eventually(lambda: standby.leads, seconds=60, every=0.02)

    def freeze() -> None:
        leader.freeze()
        takes_over()
        leader.wake()
        eventually(lambda: leader.ended)

    def cut_off() -> None:
        cut()
        eventually(lambda: leader.ended, every=0.02)
        assert not standby.leads
        takes_over()

    def delete() -> None:
        for _ in range(DELETIONS):
            uid = lab.api.request("GET", LEASE)["metadata"]["uid"]
            lab.api.delete(LEASE)
            eventually(partial(_made_again, lab, uid))
        assert (leader.role, standby.role) == ("leader", "standby")

    def kill() -> None:
        leader.kill()
        takes_over()

    def terminate() -> None:
        leader.terminate()
        takes_over()

    return {"freeze": freeze, "cut": cut_off, "delete": delete, "kill": kill, "terminate": terminate}[kind]


def _made_again(lab: Lab, uid: str) -> bool:
    """Whether there is a Lease, and another one than that."""
    lease = lab.api.get(LEASE)
    return lease is not None and lease["metadata"]["uid"] != uid
