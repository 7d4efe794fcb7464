"""Runs that are set aside (rules 3 and 8): they may not be in line at all, and return to their old place."""

from __future__ import annotations

from collections import Counter

from agentjobs.scheduling import rules
from agentjobs.scheduling.model import PoolSettings, Run, Wait, WaitReason


class Aside:
    """What one pool has set aside, and until when.

    Attributes:
        runs: by uid, each with why.
        of: how many there are, by team.
        not_before: by uid, the end of a run's back-off, microseconds since the epoch.
        closed_until: by namespace, the same for one whose quota is full.
    """

    def __init__(self, pool: str) -> None:
        self.runs: dict[str, tuple[Run, Wait]] = {}
        self.of: Counter[str] = Counter()
        self.not_before: dict[str, int] = {}
        self.closed_until: dict[str, int] = {}
        self._pool = pool

    def put(self, run: Run, wait: Wait) -> None:
        """Set a run aside."""
        self.runs[run.uid] = (run, wait)
        self.of[run.team] += 1

    def take(self, uid: str) -> Run | None:
        """Return a run that was set aside, which it is no more; None where it was not."""
        run, _ = self.runs.pop(uid, (None, None))
        if run is not None:
            self.of[run.team] -= 1
        return run

    def why(self, settings: PoolSettings, run: Run) -> Wait | None:
        """Return why a run may not be in line; None when it may."""
        if settings.admitted is not None and run.team not in settings.admitted:
            return Wait(
                WaitReason.TEAM_MISSING, f"pool {self._pool} requires an AgentTeam with teamId {run.team!r}"
            )
        never = rules.never_fits(settings, run.team, run.request, critical=run.critical)
        if never:
            return Wait(WaitReason.NEVER_FITS, never)
        if run.uid in self.not_before:
            return Wait(WaitReason.RETRY_BACKOFF, "the next attempt waits after the last one failed")
        if run.namespace in self.closed_until:
            return Wait(
                WaitReason.QUOTA_EXCEEDED, f"the quota of namespace {run.namespace} allows no further Job now"
            )
        return None

    def end_back_offs(self, now: int) -> bool:
        """Forget the back-offs that are over; return whether any is."""
        over = False
        for ends in (self.not_before, self.closed_until):
            for name in [name for name, until in ends.items() if until <= now]:
                del ends[name]
                over = True
        return over

    @property
    def look_again(self) -> int | None:
        """When the next back-off ends."""
        return min((*self.not_before.values(), *self.closed_until.values()), default=None)
