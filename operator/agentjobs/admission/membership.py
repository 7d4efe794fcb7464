"""Who may do what for which team; a refusal names the user, the team or pool, the rule and the way out."""

from __future__ import annotations

from collections.abc import Iterator

from agentjobs.admission.review import UserInfo
from agentjobs.apis.agentjob import AgentJobSpec, Priority
from agentjobs.apis.agentpool import AgentPoolSpec
from agentjobs.apis.agentteam import AgentTeamSpec, TeamMembers
from agentjobs.apis.faults import escaped, shown

_SERVICE_ACCOUNT = "system:serviceaccount:"
_URGENCY = tuple(Priority)  # the most urgent first
_ASK = "ask an administrator"


def is_member(members: TeamMembers, user: UserInfo) -> bool:
    """Whether one of a team's users, groups or service accounts matches."""
    if user.username in members.users or not set(user.groups).isdisjoint(members.groups):
        return True
    namespace, _, name = user.username.removeprefix(_SERVICE_ACCOUNT).partition(":")
    is_account = user.username.startswith(_SERVICE_ACCOUNT)
    return is_account and f"{namespace}/{name}" in members.service_accounts


def may_act(team_id: str, team: AgentTeamSpec | None, user: UserInfo) -> Iterator[str]:
    """Yield why a user may not submit, cancel or change runs of a team."""
    if team is not None and team.members is not None and not is_member(team.members, user):
        yield (
            f"spec.teamId: user {shown(user.username)} is not a member of team {escaped(team_id)}; "
            f"{_ASK} to add the user, a group of theirs or the service account to its AgentTeam"
        )


def may_edit(team_id: str, team: AgentTeamSpec | None, pool: AgentPoolSpec, user: UserInfo) -> Iterator[str]:
    """Yield why a user may not change the spec of a team's run: a team that is gone has no members left."""
    if team is None and pool.require_teams:
        yield (
            f"spec.teamId: {shown(team_id)} has no AgentTeam any more, so nobody is a member of it; "
            f"delete the AgentJob, or {_ASK} to create the AgentTeam again"
        )
    yield from may_act(team_id, team, user)


def may_use_class(team_id: str, team: AgentTeamSpec | None, priority: Priority) -> Iterator[str]:
    """Yield why a team may not use a priority class."""
    most = team.max_priority if team is not None else None
    if most is not None and _URGENCY.index(priority) < _URGENCY.index(most):
        yield (
            f"spec.priority: {shown(priority.value)} is more urgent than team {escaped(team_id)} may be; "
            f"use {most.value} at most"
        )


def may_submit(
    spec: AgentJobSpec,
    namespace: str,
    user: UserInfo,
    team: AgentTeamSpec | None,
    pool: AgentPoolSpec | None,
) -> list[str]:
    """Return every reason why a run may not be created.

    Args:
        team: None where no AgentTeam has this id; then anyone may name it, unless the pool requires one.
        pool: None where there is no such AgentPool yet: the run waits for it, under a pool's defaults.
    """
    found = [*_known(spec, team, pool), *may_act(spec.team_id, team, user)]
    found += may_use_class(spec.team_id, team, spec.priority)
    if team is not None and team.namespaces and namespace not in team.namespaces:
        found.append(
            f"metadata.namespace: {shown(namespace)} is not one of team {escaped(spec.team_id)}; "
            f"use {', '.join(team.namespaces)}"
        )
    if pool is not None and pool.namespaces and namespace not in pool.namespaces:
        found.append(
            f"spec.pool: {shown(spec.pool)} is not open to namespace {shown(namespace)}; "
            f"use another pool, or {_ASK} to add the namespace to the AgentPool"
        )
    return found + list(_secrets(spec, namespace, team))


def _known(spec: AgentJobSpec, team: AgentTeamSpec | None, pool: AgentPoolSpec | None) -> Iterator[str]:
    if team is None and pool is None:
        yield (
            f"spec.pool: there is no AgentPool named {shown(spec.pool)}; use one that exists, "
            "or, to wait for it, a teamId that has an AgentTeam"
        )
    elif team is None and pool is not None and pool.require_teams:
        yield (
            f"spec.teamId: {shown(spec.team_id)} has no AgentTeam, which pool {escaped(spec.pool)} requires; "
            f"use the id of one, or {_ASK} to create it"
        )


def _secrets(spec: AgentJobSpec, namespace: str, team: AgentTeamSpec | None) -> Iterator[str]:
    allowed = team.secrets if team is not None else []
    for index, secret in enumerate(spec.secrets):
        if f"{namespace}/{secret.name}" not in allowed:
            yield (
                f"spec.secrets[{index}].name: {shown(secret.name)} is not allowed to team "
                f"{escaped(spec.team_id)}; {_ASK} to add {namespace}/{secret.name} to its AgentTeam"
            )
