"""The status of an AgentJob, worked out whole from what is known now: level-based, never a step."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from agentjobs.apis import times
from agentjobs.apis.conditions import ConditionType
from agentjobs.apis.records import Attempted
from agentjobs.apis.runstatus import ERROR_MAX_LENGTH, MESSAGE_MAX_LENGTH, TRACEBACK_MAX_LENGTH, Phase
from agentjobs.runs.cancel import Cause
from agentjobs.runs.result import Returned

_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_]{0,126}[A-Za-z0-9])?\Z")


@dataclass(frozen=True, slots=True)
class Facts:
    """What a status follows from. Times in microseconds since the epoch, None while it has not happened.

    Attributes:
        reason: CamelCase cause of the present phase.
        created: when the run was first seen, within its creation second.
        scheduled: when its Job was decided.
        completed: when the agent ended, or when it was seen that it never will.
        starts_before: the promise of a run that waits.
        attempts: those that are over; empty when nothing is to be changed.
    """

    job_id: str
    generation: int
    phase: Phase
    reason: str
    message: str
    created: int
    scheduled: int | None = None
    started: int | None = None
    completed: int | None = None
    starts_before: int | None = None
    k8s_job_name: str | None = None
    pod_name: str | None = None
    node_name: str | None = None
    exit_code: int | None = None
    returned: Returned = field(default_factory=Returned)
    attempts: tuple[Attempted, ...] = ()


def status_of(facts: Facts) -> dict[str, Any]:
    """Return the whole status as JSON; what is not known yet is left out.

    The four times never decrease, whatever the clocks of the node and of this machine say.
    """
    created = facts.created
    scheduled = _not_before(facts.scheduled, created)
    started = _not_before(facts.started, scheduled or created)
    completed = _not_before(facts.completed, started or scheduled or created)
    reason = word(facts.reason)
    status: dict[str, Any] = {
        "observedGeneration": facts.generation,
        "phase": facts.phase.value,
        "reason": reason,
        "message": facts.message[:MESSAGE_MAX_LENGTH],
        "jobId": facts.job_id,
        "createdAt": times.text(created),
        "scheduledAt": times.text(scheduled) if scheduled is not None else None,
        "startedAt": times.text(started) if started is not None else None,
        "completedAt": times.text(completed) if completed is not None else None,
        "startsBefore": times.text(facts.starts_before) if facts.starts_before is not None else None,
        "k8sJobName": facts.k8s_job_name,
        "podName": facts.pod_name,
        "nodeName": facts.node_name,
        "exitCode": facts.exit_code,
        "attempts": list(facts.attempts) or None,
        **_last_words(facts),
        "conditions": _conditions(facts, reason, created, scheduled, started, completed),
    }
    if completed is not None and started is not None:
        status["duration"] = f"{(completed - started + times.SECOND // 2) // times.SECOND}s"
    return {name: value for name, value in status.items() if value is not None}


def word(reason: str) -> str:
    """Return a reason as it can be stored: what a runtime says need not be one word."""
    return reason if _REASON.match(reason) else "Unknown"


def _not_before(moment: int | None, earlier: int) -> int | None:
    return None if moment is None else max(moment, earlier)


def _last_words(facts: Facts) -> dict[str, Any]:
    """What the agent returned where the run succeeded; why it did not, where it did not."""
    traceback = facts.returned.traceback
    match facts.phase:
        case Phase.SUCCEEDED:
            return {"result": facts.returned.result}
        case Phase.FAILED:
            error = facts.returned.error or facts.message
        case Phase.TIMED_OUT:
            error = f"DeadlineExceeded: {facts.message}"
        case Phase.SCHEDULE_FAILED:
            error, traceback = f"ScheduleFailed: {facts.reason}: {facts.message}", None
        case _:
            return {}
    return {
        "error": error[:ERROR_MAX_LENGTH],
        "errorTraceback": traceback[-TRACEBACK_MAX_LENGTH:] if traceback is not None else None,
    }


def _conditions(
    facts: Facts, reason: str, created: int, scheduled: int | None, started: int | None, completed: int | None
) -> list[dict[str, Any]]:
    """The conditions of `kubectl wait` and of kstatus.

    Each one's last transition follows from the four times, so nothing needs to be read back. The
    abnormal ones, Reconciling and Stalled, are left out where they are false: that is kstatus' rule.
    """
    phase, done = facts.phase, facts.phase.terminal
    # A cancel that the spec asks for is fulfilled; one that it does not ask for is a failure to GitOps tools.
    good = phase is Phase.SUCCEEDED or (phase is Phase.CANCELED and facts.reason == Cause.REQUESTED)
    end = completed if completed is not None else created

    def condition(kind: ConditionType, state: str, since: int | None, message: str = "") -> dict[str, Any]:
        return {
            "type": kind.value,
            "status": state,
            "reason": reason,
            "message": message[:MESSAGE_MAX_LENGTH],
            "lastTransitionTime": times.second(created if since is None else since),
            "observedGeneration": facts.generation,
        }

    admitted = scheduled is not None
    running = phase is Phase.RUNNING
    verdict = "Unknown" if not done else "True" if phase is Phase.SUCCEEDED else "False"
    conditions = [
        condition(ConditionType.ADMITTED, _truth(admitted), scheduled, "" if admitted else facts.message),
        condition(ConditionType.RUNNING, _truth(running), started if running else end if done else created),
        condition(ConditionType.FINISHED, _truth(done), end if done else created),
        condition(ConditionType.SUCCEEDED, verdict, end if done else created, facts.message if done else ""),
        condition(ConditionType.READY, _truth(good), end if good else created),
    ]
    if not done:
        conditions.append(condition(ConditionType.RECONCILING, "True", created))
    elif not good:
        conditions.append(condition(ConditionType.STALLED, "True", end, facts.message))
    return conditions


def _truth(value: bool) -> str:
    return "True" if value else "False"
