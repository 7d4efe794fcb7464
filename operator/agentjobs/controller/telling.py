"""What the status of a run should say now, and whether that is worth a write."""

from __future__ import annotations

from dataclasses import replace

from agentjobs.apis import times
from agentjobs.apis.records import Attempted
from agentjobs.apis.runstatus import ATTEMPTS_MAX, Phase
from agentjobs.controller.run import Run
from agentjobs.runs import identity
from agentjobs.runs.cancel import Cause
from agentjobs.runs.status import Facts, word
from agentjobs.scheduling.model import Wait

PATIENCE = 2 * times.SECOND  # a run that waits longer than this is told why
QUIET = 30 * times.SECOND  # and hears of another reason no sooner than after this


def news(run: Run, wait: Wait | None, promise: int | None, now: int) -> Facts | None:
    """Return what the status should say now; None when there is nothing new to say yet.

    Args:
        wait: why it waits, where it does.
        promise: when it starts at the latest, where that was promised.
        now: microseconds since the epoch.
    """
    facts = _facts(run, wait, promise, now)
    return facts if facts is not None and _worth_a_write(run, facts, now) else None


def next_word(run: Run, phase: Phase) -> int:
    """Return when the next change of reason alone may be written, microseconds since the epoch."""
    since = run.created
    if phase is not Phase.PENDING and run.decision is not None:
        since = run.decision.scheduled
    return max(since + PATIENCE, run.spoke + QUIET if run.spoke else 0)


def given_up(run: Run, now: int) -> Facts:
    """Return the status of a run whose attempt did not start in the hole that it was given."""
    assert run.record is not None
    assert run.decision is not None
    why = f"not started within {run.decision.start_seconds} s, all that a promise to another run left"
    over = Attempted(
        number=run.attempt,
        reason="BackfillMissed",
        message=why,
        k8s_job_name=run.job_name,
        scheduled_at=times.text(run.decision.scheduled),
        completed_at=times.text(now),
    )
    return Facts(
        job_id=run.record.status.job_id or identity.job_id(run.record.created, run.uid),
        generation=run.record.generation,
        phase=Phase.PENDING,
        reason="BackfillMissed",
        message=f"{why}; back in its old place",
        created=run.created,
        attempts=(*run.record.status.attempts, over)[-ATTEMPTS_MAX:],
    )


def _facts(run: Run, wait: Wait | None, promise: int | None, now: int) -> Facts | None:
    record = run.record
    assert record is not None
    base = Facts(
        job_id=identity.job_id(record.created, run.uid),
        generation=record.generation,
        phase=Phase.PENDING,
        reason=wait.reason.value if wait else "",
        message=wait.message if wait else "",
        created=run.created,
        scheduled=run.decision.scheduled if run.decision else times.parse(record.status.scheduled_at),
    )
    if run.cause is not None and not run.posted:
        return _canceled(run, base, run.cause, now)
    if run.failure is not None:
        reason, message = run.failure
        run.completed = run.completed or now
        return replace(
            base, phase=Phase.SCHEDULE_FAILED, reason=reason, message=message, completed=run.completed
        )
    outcome = run.outcome()
    if outcome is None:
        return replace(base, starts_before=promise) if wait is not None else None
    run.note_times(outcome, now)
    pod = outcome.pod
    return replace(
        base,
        phase=outcome.phase,
        reason=outcome.reason,
        message=outcome.message,
        started=run.started,
        completed=run.completed if outcome.phase.terminal else None,
        k8s_job_name=run.job_name,
        pod_name=pod.name if pod else record.status.pod_name,
        node_name=(pod.node or None) if pod else record.status.node_name,
        exit_code=outcome.exit_code,
        returned=outcome.returned,
    )


def _canceled(run: Run, base: Facts, cause: Cause, now: int) -> Facts:
    """Return the end of a run that waited; what a given-up attempt has left must end first."""
    if run.leftovers:
        return replace(base, phase=Phase.CANCELING, reason=cause.value, message=cause.stopping)
    if not run.unsure:
        run.completed = run.completed or now
    return replace(
        base,
        phase=Phase.CANCELED,
        reason=cause.value,
        message=f"{cause.words} while the run waited",
        scheduled=None,
        completed=run.completed or now,
    )


def _worth_a_write(run: Run, facts: Facts, now: int) -> bool:
    """Every change of phase is; a new reason is when the run has waited long enough to be told."""
    assert run.record is not None
    stored = run.record.status
    if facts.phase.value != stored.phase:
        return True
    if stored.observed_generation != -1 and stored.observed_generation != facts.generation:
        return True
    promise = None if facts.starts_before is None else times.text(facts.starts_before)
    other = word(facts.reason) != stored.reason or promise != stored.starts_before
    return other and now >= next_word(run, facts.phase)
