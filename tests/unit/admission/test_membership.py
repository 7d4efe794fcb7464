"""Nobody submits, cancels or raises runs of a team they are not of; every refusal names what it is about."""

import copy
from typing import Any

import pytest

from agentjobs.admission.review import Answer
from tests.unit.admission.desk import Desk, manifest, pool, team

MEMBERS = {"users": ["jane"], "groups": ["blue-devs"], "serviceAccounts": ["ci/deployer"]}


def desk(**spec: Any) -> Desk:
    return Desk(teams={"blue": team(**spec)})


@pytest.mark.parametrize(
    ("user", "groups", "allowed"),
    [
        ("jane", (), True),
        ("joe", ("blue-devs", "system:authenticated"), True),
        ("system:serviceaccount:ci:deployer", (), True),
        ("joe", ("system:authenticated",), False),
        ("joe", (), False),
        ("blue-devs", (), False),
        ("ci/deployer", (), False),
        ("system:serviceaccount:ci:other", (), False),
        ("system:serviceaccount:other:deployer", (), False),
        ("ci:deployer", (), False),
        ("system:admin", ("system:masters",), False),
        ("", (), False),
    ],
)
def test_members(user: str, groups: tuple[str, ...], allowed: bool) -> None:
    answer = desk(members=MEMBERS).create(manifest(), user=user, groups=groups)
    assert answer.allowed == allowed
    if not allowed:
        assert (answer.code, answer.reason) == (403, "Forbidden")
        assert f'spec.teamId: user "{user}" is not a member of team blue' in answer.message


@pytest.mark.parametrize("members", [None, {"users": ["*"]}, {}])
def test_nobody_and_everybody(members: dict[str, Any] | None) -> None:
    """Without members everyone may whom RBAC lets; there is no wildcard, and an empty list is nobody."""
    assert desk(members=members).create(manifest()).allowed == (members is None)


def test_team_that_a_pool_requires() -> None:
    desk = Desk(pools={"default": pool(requireTeams=True)}, teams={"red": team()})
    assert desk.create(manifest(team="red")).allowed
    answer = desk.create(manifest(team="blue"))
    assert answer.code == 403
    assert (
        'spec.teamId: "blue" has no AgentTeam, which pool default requires; use the id of one'
        in answer.message
    )


def test_pool_that_is_not_there_requires_a_team() -> None:
    """Who may name the team could not be checked once the pool is there: the submitter is then unknown."""
    desk = Desk(pools={}, teams={"red": team()})
    answer = desk.create(manifest(team="red", pool="later"))
    assert (answer.allowed, answer.unsure) == (True, True)  # the pool may have been created a moment ago
    assert 'spec.pool: there is no AgentPool named "later"' in desk.create(manifest(pool="later")).message


def test_namespaces_of_a_team_and_of_a_pool() -> None:
    desk = Desk(
        pools={"default": pool(namespaces=["default", "agents"])},
        teams={"blue": team(namespaces=["agents", "b"])},
    )
    assert desk.create(manifest(namespace="agents")).allowed
    assert (
        'metadata.namespace: "default" is not one of team blue; use agents, b'
        in desk.create(manifest()).message
    )
    assert 'spec.pool: "default" is not open to namespace "b"' in desk.create(manifest(namespace="b")).message


@pytest.mark.parametrize(
    ("most", "priority", "allowed"),
    [
        ("high", "critical", False),
        ("high", "high", True),
        ("low", "default", False),
        ("critical", "critical", True),
    ],
)
def test_most_urgent_class(most: str, priority: str, allowed: bool) -> None:
    answer = desk(maxPriority=most).create(manifest(priority=priority))
    assert answer.allowed == allowed
    if not allowed:
        assert (
            f'spec.priority: "{priority}" is more urgent than team blue may be; use {most}' in answer.message
        )


def test_secrets_are_those_of_the_team_and_the_namespace() -> None:
    job = manifest(secrets=[{"name": "key", "exposeAs": "env"}, {"name": "other", "exposeAs": "files"}])
    answer = desk(secrets=["default/key", "elsewhere/other"]).create(job)
    assert answer.code == 403
    assert 'spec.secrets[1].name: "other" is not allowed to team blue' in answer.message
    assert "secrets[0]" not in answer.message
    assert Desk().create(job).message.startswith("2 things are wrong:\n- spec.secrets[0].name")


def test_all_that_is_wrong_is_told_at_once_in_a_stable_order() -> None:
    answers = [
        desk(members=MEMBERS, namespaces=["b"], maxPriority="low").create(manifest(), user="joe")
        for _ in range(2)
    ]
    assert answers[0] == answers[1]
    lines = answers[0].message.split("\n")
    assert lines[0] == "3 things are wrong:"
    assert [line.split(":")[0] for line in lines[1:]] == [
        "- spec.teamId",
        "- spec.priority",
        "- metadata.namespace",
    ]


# -- edits -----------------------------------------------------------------------------------------------


def edit(desk: Desk, user: str, **spec: Any) -> Answer:
    old = manifest(priority="default")
    new = copy.deepcopy(old)
    new["spec"] |= spec
    return desk.update(old, new, user=user)


@pytest.mark.parametrize("spec", [{"cancel": True}, {"priority": "high"}, {"ttlSecondsAfterFinished": 60}])
def test_edits_need_membership(spec: dict[str, Any]) -> None:
    assert edit(desk(members=MEMBERS), "jane", **spec).allowed
    answer = edit(desk(members=MEMBERS), "joe", **spec)
    assert (answer.code, answer.reason) == (403, "Forbidden")
    assert 'user "joe" is not a member of team blue' in answer.message


def test_raising_stays_within_the_most_urgent_class() -> None:
    limited = desk(maxPriority="high")
    assert edit(limited, "jane", priority="high").allowed
    assert edit(limited, "jane", priority="critical").code == 403
    assert edit(limited, "jane", cancel=True).allowed


def test_members_may_cancel_what_a_team_could_no_longer_submit() -> None:
    assert edit(
        desk(members=MEMBERS, namespaces=["elsewhere"], maxPriority="low"), "jane", cancel=True
    ).allowed


def test_labels_need_no_membership() -> None:
    old = manifest()
    new = copy.deepcopy(old)
    new["metadata"]["labels"] = {"owner": "gitops"}
    assert desk(members=MEMBERS).update(old, new, user="joe").allowed


@pytest.mark.parametrize(("require", "allowed"), [(True, False), (False, True)])
def test_team_that_is_gone_has_no_members(require: bool, allowed: bool) -> None:
    """Where teams are required; elsewhere an id without an AgentTeam is everybody's."""
    gone = Desk(pools={"default": pool(requireTeams=require)})
    answer = edit(gone, "jane", priority="critical")
    assert answer.allowed == allowed
    if not allowed:
        assert (answer.code, "has no AgentTeam any more" in answer.message) == (403, True)


def test_edit_at_the_limit_is_no_create() -> None:
    full = Desk(pools={"default": pool(maxPendingPerTeam=0)})
    assert edit(full, "jane", cancel=True).allowed


def test_input_payload_is_immutable() -> None:
    answer = edit(Desk(), "jane", inputPayload={"other": 1})
    assert answer.code == 422
    assert "spec.inputPayload" in answer.message
    assert "is immutable" in answer.message
