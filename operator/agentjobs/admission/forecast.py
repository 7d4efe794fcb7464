"""What a submitter can expect, in a sentence: the answer of the very policy that will decide."""

from __future__ import annotations

from agentjobs.scheduling.model import Run, WaitReason
from agentjobs.scheduling.pool import Pool


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
    return f"{first}waits: {wait.reason.value}: {wait.message}"
