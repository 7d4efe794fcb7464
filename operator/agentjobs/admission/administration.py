"""Questions about AgentTeams and AgentPools: what the schema cannot see, and what an edit will not do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from agentjobs.admission.admission import wrong_kind
from agentjobs.admission.ledger import UNSEEN_SECONDS
from agentjobs.admission.review import Answer, Request, invalid
from agentjobs.apis.agentpool import AgentPool, AgentPoolSpec
from agentjobs.apis.agentteam import AgentTeam
from agentjobs.apis.faults import Fault, escaped, shown
from agentjobs.apis.root import Resource
from agentjobs.apis.validation import read, validate_update

R = TypeVar("R", bound=Resource)


class TeamReviews:
    """Answers questions about AgentTeams.

    Args:
        pools: as administrators set them, by name.
        team_holders: by id: the name of the stored AgentTeam that has it.
        clock: seconds of a monotonic clock.
    """

    def __init__(
        self, pools: Mapping[str, AgentPoolSpec], team_holders: Mapping[str, str], clock: Callable[[], float]
    ) -> None:
        self._pools = pools
        self._team_holders = team_holders
        self._clock = clock
        self._allowed: dict[str, tuple[str, float]] = {}  # by id: the object that may have it soon

    def review(self, request: Request) -> Answer:
        """Answer a question about an AgentTeam: two must never have one id."""
        team = _read(request, AgentTeam)
        if isinstance(team, Answer):
            return team
        now = self._clock()
        self._allowed = {id_: held for id_, held in self._allowed.items() if held[1] > now}
        other = self._holder(team.team_id, request.name)
        if other is not None:
            problem = f"is the id of AgentTeam {escaped(other)}"
            return invalid([Fault("spec.teamId", shown(team.team_id), problem, "choose another id")])
        if not request.dry_run:
            self._allowed[team.team_id] = (request.name, now + UNSEEN_SECONDS)
        return Answer(warnings=tuple(self._warnings(team)))

    def seen(self, name: str, team_id: str) -> None:
        """An AgentTeam is stored: from now on it counts as long as it is."""
        if self._allowed.get(team_id, ("",))[0] == name:
            del self._allowed[team_id]

    def _holder(self, team_id: str, name: str) -> str | None:
        """Return another object that has an id, or was just allowed to have it."""
        stored = self._team_holders.get(team_id, name)
        allowed, _ = self._allowed.get(team_id, (name, 0.0))
        return next((other for other in (stored, allowed) if other != name), None)

    def _warnings(self, team: AgentTeam) -> Iterator[str]:
        members = team.spec.members
        if members is not None and not (members.users or members.groups or members.service_accounts):
            yield "spec.members: nobody is listed, so nobody may submit for the team"
        for pool in team.spec.pools:
            if pool not in self._pools:
                yield f"spec.pools: there is no AgentPool named {escaped(pool)} yet"


class PoolReviews:
    """Answers questions about AgentPools.

    Args:
        held: returns how many slots the runs of a pool hold now.
    """

    def __init__(self, held: Callable[[str], int]) -> None:
        self._held = held

    def review(self, request: Request) -> Answer:
        """Answer a question about an AgentPool."""
        pool = _read(request, AgentPool)
        if isinstance(pool, Answer):
            return pool
        held, slots = self._held(request.name), pool.spec.max_concurrency
        if slots is not None and slots < held:
            return Answer(
                warnings=(
                    f"spec.maxConcurrency: {held} runs go on; none starts before fewer than {slots} do",
                )
            )
        return Answer()


def _read(request: Request, kind: type[R]) -> R | Answer:
    """Return the object that is reviewed, or the answer where it is wrong.

    What is stored and wrong by a newer rule may stay: an edit is refused for the faults that it adds.
    """
    found = read(request.object)
    if isinstance(found, list):
        faults = found if request.old_object is None else validate_update(request.old_object, request.object)
        return invalid(faults) if faults else Answer()
    return found if isinstance(found, kind) else invalid([wrong_kind(kind, request.object)])
