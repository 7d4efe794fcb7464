"""The decisions: in which order a manifest is checked, and what is answered.

Everything here is synchronous and free of I/O, so one question is answered before the next is looked at:
that is what makes the count of pending runs exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agentjobs.admission import membership
from agentjobs.admission.ledger import UNSEEN_SECONDS, Ledger, Reservation, Taken
from agentjobs.admission.review import Answer, Request, forbidden, invalid, taken, too_many
from agentjobs.apis import idempotency
from agentjobs.apis.agentjob import AgentJob, AgentJobSpec, Priority
from agentjobs.apis.agentpool import AgentPoolSpec
from agentjobs.apis.agentteam import AgentTeamSpec
from agentjobs.apis.faults import Fault, escaped, printable, shown
from agentjobs.apis.root import Resource
from agentjobs.apis.validation import read, validate_update

_NO_POOL = AgentPoolSpec()
MISMATCH = "Idempotency-Mismatch"

Forecast = Callable[[AgentJobSpec, str, str], str]


class Admission:
    """Answers questions about AgentJobs.

    Args:
        pools, teams: as administrators set them, by name and by team id; read at every question.
        ledger: what is stored and reserved.
        forecast: returns what a run of this spec, namespace and uid can expect.
        clock: seconds of a monotonic clock.
    """

    def __init__(
        self,
        pools: Mapping[str, AgentPoolSpec],
        teams: Mapping[str, AgentTeamSpec],
        ledger: Ledger,
        forecast: Forecast,
        clock: Callable[[], float],
    ) -> None:
        self._pools = pools
        self._teams = teams
        self._ledger = ledger
        self._forecast = forecast
        self._clock = clock

    def review(self, request: Request) -> Answer:
        """Answer a question about an AgentJob."""
        if request.operation == "UPDATE":
            return self._update(request)
        return self._create(request)

    # -- create ----------------------------------------------------------------------------------

    def _create(self, request: Request) -> Answer:
        manifest = read(request.object)
        faults = [*(manifest if isinstance(manifest, list) else ()), *self._faults(request)]
        if faults or isinstance(manifest, list):
            return invalid(faults)
        if not isinstance(manifest, AgentJob):
            return invalid([wrong_kind(AgentJob, request.object)])
        spec = manifest.spec
        pool, team = self._pools.get(spec.pool), self._teams.get(spec.team_id)
        if refusals := membership.may_submit(spec, request.namespace, request.user_info, team, pool):
            return forbidden(refusals, unsure=team is None or pool is None)
        return self._room(request, manifest, pool or _NO_POOL)

    def _faults(self, request: Request) -> list[Fault]:
        """Return what is wrong with a manifest's name and key, whatever else is."""
        spec, name = _spec(request.object), request.name
        team, key = str(spec.get("teamId")), str(spec.get("idempotencyKey") or "")
        pool = self._pools.get(str(spec.get("pool")), _NO_POOL)
        found = []
        mine = idempotency.object_name(team, key) if key else ""
        if name != mine and idempotency.RESERVED_NAME.fullmatch(name):
            problem = "is kept for the run of another team and idempotencyKey, from which it follows"
            use = "choose a name that does not begin with aj-"
            found.append(Fault("metadata.name", shown(name), problem, use))
        if pool.idempotency.required and not key:
            problem = f"is required in pool {escaped(str(spec.get('pool')))}"
            use = "set a text that is the same for every retry"
            found.append(Fault("spec.idempotencyKey", "", problem, use))
        return found

    def _room(self, request: Request, job: AgentJob, pool: AgentPoolSpec) -> Answer:
        """Check backpressure, then the key, then whether anything new is taken at all."""
        spec, name, ledger = job.spec, (request.namespace, request.name), self._ledger
        team, key = spec.team_id, spec.idempotency_key
        fingerprint = idempotency.fingerprint(request.object["spec"]) if key else 0
        first = ledger.holder(team, key, name)
        if first is not None and pool.idempotency.before_backpressure:
            return _replay(spec, first, fingerprint, pool)
        limit = pending_limit(self._pools, self._teams, team, spec.pool)
        pending = ledger.pending(team, name)
        if pending >= limit:
            return too_many(backpressure(team, pending, pool.retry_after_seconds))
        if first is not None:
            return _replay(spec, first, fingerprint, pool)
        if pool.drain is not None:
            return forbidden([_draining(spec.pool)])
        warning = self._forecast(spec, request.namespace, request.uid)
        if not request.dry_run:
            now, uid = self._clock(), job.metadata.uid or request.uid
            until = now + UNSEEN_SECONDS
            # Under a name that is stored it can only fail, unless that is deleted already: look at once.
            due = now if ledger.stored(name) else until
            ledger.reserve(Reservation(uid, name, team, key, fingerprint, limit, due, until))
        return Answer(warnings=(warning,), unsure=spec.pool not in self._pools)

    # -- update ----------------------------------------------------------------------------------

    def _update(self, request: Request) -> Answer:
        """Check an edit; one that changes no spec needs no membership."""
        faults = validate_update(request.old_object, request.object)
        if faults:
            return invalid(faults)
        before, after = _spec(request.old_object), _spec(request.object)
        if before == after:
            return Answer()
        team_id = str(after.get("teamId"))
        team = self._teams.get(team_id)
        pool = self._pools.get(str(after.get("pool")), _NO_POOL)
        refusals = list(membership.may_edit(team_id, team, pool, request.user_info))
        if before.get("priority") != after.get("priority"):
            priority = Priority(after.get("priority") or Priority.DEFAULT)
            refusals += membership.may_use_class(team_id, team, priority)
        return forbidden(refusals) if refusals else Answer()


def pending_limit(
    pools: Mapping[str, AgentPoolSpec], teams: Mapping[str, AgentTeamSpec], team: str, pool: str
) -> int:
    """Return how many runs of a team may wait, where one more is submitted to this pool."""
    said = teams.get(team)
    if said is not None and said.max_pending is not None:
        return said.max_pending
    return pools.get(pool, _NO_POOL).max_pending_per_team


def wrong_kind(wanted: type[Resource], manifest: Any) -> Fault:
    """Return the fault of a manifest that was sent to the path of another kind."""
    return Fault("kind", shown(manifest.get("kind")), "is reviewed elsewhere", f"send {wanted.__name__} here")


def backpressure(team: str, pending: int, retry_after_seconds: int) -> str:
    """Return the sentence of a refusal at the limit."""
    return f"Team {printable(team)} has {pending} pending jobs; retry after {retry_after_seconds}s"


def _replay(spec: AgentJobSpec, first: Taken, fingerprint: int, pool: AgentPoolSpec) -> Answer:
    """Refuse a second run of a key, naming the first; a different request under it is told apart."""
    where = printable("/".join(first.name))
    said = (
        f"spec.idempotencyKey: {shown(spec.idempotency_key)} of team {escaped(spec.team_id)} "
        f"is that of {where} ({first.phase})"
    )
    if fingerprint == first.fingerprint:
        return taken(f"{said}; nothing was created: follow that one, or use another key")
    warning = f"{MISMATCH}: {where} was created with a different spec"
    if pool.idempotency.strict:
        return invalid([f"{said}, which has a different spec; use another key for another request"])
    return taken(f"{said}, which has a different spec; follow that one, or use another key", (warning,))


def _draining(pool: str) -> str:
    return (
        f"spec.pool: {shown(pool)} is being drained and takes no new runs; "
        "use another pool, or wait until spec.drain is removed from the AgentPool"
    )


def _spec(manifest: Any) -> Mapping[str, Any]:
    spec = manifest.get("spec") if isinstance(manifest, Mapping) else None
    return spec if isinstance(spec, Mapping) else {}
