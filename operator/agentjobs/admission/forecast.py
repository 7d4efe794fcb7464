"""What a submitter can expect, in a sentence: the answer of the very policy that will decide."""

from __future__ import annotations

from agentjobs.apis.agentjob import AgentJobSpec, Priority
from agentjobs.apis.agentpool import AgentPoolSpec
from agentjobs.scheduling.model import Run, Wait, WaitReason
from agentjobs.scheduling.pool import Pool
from agentjobs.scheduling.resources import Amounts


def as_run(spec: AgentJobSpec, pool: AgentPoolSpec, uid: str, namespace: str, now: int) -> Run:
    """Return a run as the policy would see it if it were stored now, microseconds since the epoch."""
    asked = spec.resources
    return Run(
        uid=uid,
        namespace=namespace,
        team=spec.team_id,
        weight=getattr(pool.priority_weights, spec.priority.value),
        critical=spec.priority is Priority.CRITICAL,
        created=now,
        version=0,
        request=Amounts(1, asked.cpu_millicores, asked.memory_mb, asked.gpu_count),
        timeout_seconds=asked.timeout_seconds,
    )


def forecast(pool: Pool, run: Run, reserved: int, now: int) -> str:
    """Return what would become of a run now.

    Args:
        reserved: creates of its team that were allowed and are not in the books yet.
        now: microseconds since the epoch.
    """
    ahead, wait = pool.preview(run, now)
    ahead += reserved
    if wait is None:
        return "starts now" if not ahead else f"{ahead} ahead of it in its team"
    if wait.reason is WaitReason.NEVER_FITS:
        return f"never fits: {wait.message}; it waits until that is changed"
    first = f"{ahead} ahead of it in its team, " if ahead else ""
    return f"{first}waits: {_words(wait)}"


def _words(wait: Wait) -> str:
    return f"{wait.reason.value}: {wait.message}"
