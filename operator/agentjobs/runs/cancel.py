"""What becomes of a run that is to end before its time: by a cancel, or because its pool is drained."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from agentjobs.apis.runstatus import Phase
from agentjobs.runs.observe import Outcome, exit_words
from agentjobs.scheduling.model import GRACE_SECONDS


class Cause(StrEnum):
    """Why a run is canceled: the reason of CANCELING and of CANCELED."""

    REQUESTED = "CancelRequested"
    POOL_DRAINED = "PoolDrained"

    @property
    def words(self) -> str:
        return _WORDS[self]

    @property
    def stopping(self) -> str:
        """What is told while something of the run still runs."""
        return f"{self.words}; what runs of it gets SIGTERM, and SIGKILL {GRACE_SECONDS} s later"


_WORDS = {
    Cause.REQUESTED: "a cancel was asked for",
    Cause.POOL_DRAINED: "the pool was drained and its time is over",
}


def canceled(outcome: Outcome, cause: Cause, *, leftovers: bool = False) -> Outcome:
    """Return where a run stands that is canceled, from where it would stand if it were not.

    It is CANCELING until its agent has ended or its pod is gone, so as long as it may hold its slot. Then
    it is CANCELED, whatever else could be said of it; only a success stays one.

    Args:
        leftovers: something of an earlier attempt still runs.
    """
    ended = outcome.exit_code is not None or outcome.pod is None or outcome.pod.terminal
    if leftovers or not (outcome.phase.terminal and ended):
        return replace(outcome, phase=Phase.CANCELING, reason=cause.value, message=cause.stopping)
    if outcome.phase is Phase.SUCCEEDED and not (_stopped(outcome) and outcome.returned.result is None):
        return outcome
    told = f"{cause.words}; {_ending(outcome)}"
    return replace(outcome, phase=Phase.CANCELED, reason=cause.value, message=told)


def _stopped(outcome: Outcome) -> bool:
    """Whether the agent was told to stop: many end with exit code 0 then, and that is no success."""
    pod = outcome.pod
    return pod is not None and (pod.deleting or pod.status.reason == "DeadlineExceeded")


def _ending(outcome: Outcome) -> str:
    if outcome.exit_code is not None:
        return f"the agent ended with {exit_words(outcome.exit_code)}"
    return "nothing of it runs any more" if outcome.pod is None else "its pod has ended"
