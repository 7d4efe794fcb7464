"""A change of leader as users see it: creates at a steady pace across it, and what became of each."""

from collections.abc import Callable

from tests.live.api import AGENTS
from tests.live.callers import Callers, Outage
from tests.live.contenders import Contender, Contest
from tests.live.lab import unique
from tests.live.support import eventually

LEASE = "/apis/coordination.k8s.io/v1/namespaces/agentjobs-system/leases/agentjobs-operator"
DISTURBANCES = ("freeze", "kill", "cut", "terminate", "delete")
LIMIT = 5  # of the team that is at its limit
ROOM = 10_000
_AGENTJOBS = f"{AGENTS}/namespaces/default/agentjobs"


def disturbed(
    lab: Contest, disturbance: str, leader: Contender, standby: Contender, cut: Callable[[], None]
) -> Outage:
    """Disturb the leader under creates of two teams, one with room, one at its limit; return what was seen.

    Whoever leads, and while nobody does, the team at its limit must get nothing more: that is asserted.

    Args:
        disturbance: one of `DISTURBANCES`.
        cut: cuts the leader off from the API server.
    """
    room, full, pool = unique("room"), unique("full"), lab.pool(hold=True)
    lab.team(room, maxPending=ROOM)
    lab.team(full, maxPending=LIMIT)
    with Callers(lab.cluster, pool, [room, full]) as callers:
        eventually(lambda: any(each.code == 429 for each in callers.of(full)))
        eventually(lambda: any(each.allowed for each in callers.of(room)))
        seen = len(callers.creates)
        match disturbance:
            case "freeze":
                leader.freeze()
            case "kill":
                leader.kill()
            case "cut":
                cut()
            case "terminate":
                leader.terminate()
            case "delete":
                lab.api.delete(LEASE)
        if disturbance != "delete":
            eventually(lambda: standby.leads, seconds=60)
        after = len(callers.creates)
        leader.wake()
        eventually(lambda: any(each.allowed for each in callers.creates[after + 20 :]))
        if disturbance in ("freeze", "cut"):
            eventually(lambda: leader.ended)
    refused = [each for each in callers.of(full) if not each.allowed]
    assert {each.code for each in refused} <= {429, 500, 503}, refused
    assert all("pending jobs; retry after" in each.message for each in refused if each.code == 429), refused
    stored = lab.api.items(f"{_AGENTJOBS}?fieldSelector=spec.teamId={full}")
    assert len(stored) == sum(each.allowed for each in callers.of(full)) == LIMIT
    assert not lab.metric("agentjobs_over_limit_runs_total")
    allowed = {each.code for each in callers.of(room)[: seen // 2]}
    assert allowed == {201}, allowed
    lab.api.delete(f"{_AGENTJOBS}?fieldSelector=spec.teamId={room}")
    lab.api.delete(f"{_AGENTJOBS}?fieldSelector=spec.teamId={full}")
    return Outage.of(callers.of(room))
