"""What `agentjobs explain` shows of a run: everything that the books and the policy that decide can say."""

from __future__ import annotations

from typing import Any

from agentjobs.apis import times
from agentjobs.apis.records import AgentJobRecord
from agentjobs.controller.loop import Loop
from agentjobs.scheduling.explanation import Explanation


def explained(loop: Loop, namespace: str, name: str, now: int) -> dict[str, Any] | None:
    """Return what is known of an AgentJob, as JSON; None where there is none of that name.

    Args:
        now: microseconds since the epoch.
    """
    stored = loop.agentjobs.objects.values()
    record = next((each for each in stored if (each.namespace, each.name) == (namespace, name)), None)
    if record is None:
        return None
    run = loop.state.runs.get(record.uid)
    waits = loop.state.pool_of(run).explain(record.uid, now) if run is not None and run.waits else None
    return _run(record) | ({"waits": _waits(waits)} if waits is not None else {})


def _run(record: AgentJobRecord) -> dict[str, Any]:
    return {
        "namespace": record.namespace,
        "name": record.name,
        "team": record.team,
        "priority": record.priority,
        "pool": record.pool,
        "deleting": record.deleting,
        "phase": record.status.phase,
        "reason": record.status.reason,
    }


def _waits(said: Explanation) -> dict[str, Any]:
    before = said.starts_before
    return {
        "reason": said.wait.reason.value if said.wait is not None else None,
        "message": said.wait.message if said.wait is not None else None,
        "unblocks": said.unblocks,
        "placeInTeam": said.place_in_team,
        "place": said.place,
        "wentAhead": said.went_ahead or None,
        "startsBefore": times.text(before) if before is not None else None,
        "holeSeconds": said.hole_seconds,
    }
