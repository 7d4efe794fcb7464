"""A run as the books of its pool have it: waiting, or holding."""

from __future__ import annotations

from agentjobs.apis.agentjob import Priority
from agentjobs.apis.sharing import policy_run
from agentjobs.controller.catalogue import Catalogue
from agentjobs.controller.run import Run
from agentjobs.errors import InvalidRunError
from agentjobs.runs import spec as specs
from agentjobs.scheduling import model
from agentjobs.scheduling.model import Holding
from agentjobs.scheduling.reservation import latest_end
from agentjobs.scheduling.resources import Amounts

_ONE_SLOT = Amounts(slots=1)


def as_waiting(run: Run, catalogue: Catalogue) -> model.Run | None:
    """Return a run as the policy sees it; a spec that cannot be read ends the run instead."""
    record = run.record
    assert record is not None
    if run.request is None:
        try:
            run.request = specs.read(record.spec).resources
        except InvalidRunError as error:
            run.failure = (error.reason, str(error))
            return None
    return policy_run(
        uid=record.uid,
        namespace=record.namespace,
        team=record.team,
        priority=record.priority,
        asked=run.request,
        pool=catalogue.pools.get(record.pool),
        created=run.created,
        version=run.version,
        name=f"{record.name} ({record.priority})",
    )


def as_holding(run: Run) -> Holding:
    """Return what a run holds; of one whose decision cannot be read, one slot without a known end."""
    decision = run.decision or run.given_up
    if decision is None:
        team = run.record.team if run.record is not None else ""
        return Holding(run.uid, team, False, _ONE_SLOT, None)
    until = decision.until
    if run.started is not None:
        until = latest_end(run.started, 0, decision.timeout_seconds)
    node = next((pod.node for pod in run.live_pods() if pod.node), None)
    critical = decision.priority == Priority.CRITICAL
    return Holding(run.uid, decision.team, critical, decision.request, until, node)
