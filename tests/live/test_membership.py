"""Users, groups and service accounts at the API server: who may act for which team."""

from collections.abc import Iterator

import pytest

from tests.live.api import AGENTS, Api, Object, RefusedError
from tests.live.lab import Lab, Run, agentjob, unique
from tests.live.support import eventually

AGENTJOBS = f"{AGENTS}/namespaces/default/agentjobs"
DEPLOYER = "system:serviceaccount:ci:deployer"
MEMBERS = {"users": ["jane"], "groups": ["blue-devs"], "serviceAccounts": ["ci/deployer"]}
WHO = [("jane", ""), ("joe", "blue-devs"), (DEPLOYER, "")]
OTHERS = [("joe", "red-devs"), ("system:serviceaccount:ci:other", ""), ("blue-devs", "")]


@pytest.fixture(scope="module")
def users(lab: Lab) -> Iterator[dict[tuple[str, str], Api]]:
    """Accounts that RBAC lets write AgentJobs, whatever the team."""
    users = {who: Api(lab.cluster, *who) for who in (*WHO, *OTHERS)}
    subjects = [{"kind": "Group", "name": "system:authenticated", "apiGroup": "rbac.authorization.k8s.io"}]
    role = {"kind": "ClusterRole", "name": "agentjobs-edit", "apiGroup": "rbac.authorization.k8s.io"}
    lab.make(
        "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
        {"metadata": {"name": unique("submitters")}, "roleRef": role, "subjects": subjects},
    )
    eventually(lambda: users[WHO[0]].items(AGENTJOBS) is not None)
    yield users
    for user in users.values():
        user.__exit__(None, None, None)


def submit(api: Api, pool: str, team: str, **spec: object) -> Object:
    return api.create(AGENTJOBS, agentjob(unique("run"), pool, "1s", "", 0, {"teamId": team, **spec}))


def refusal(lab: Lab, api: Api, pool: str, team: str, **spec: object) -> str:
    """What a create is refused with: not for want of rights, and nothing is left of it."""
    before = len(lab.api.items(AGENTJOBS))
    with pytest.raises(RefusedError) as refused:
        submit(api, pool, team, **spec)
    assert refused.value.code == 403
    assert "denied the request" in refused.value.message
    assert len(lab.api.items(AGENTJOBS)) == before
    return refused.value.message


def known(lab: Lab, pool: str, team: str, **spec: object) -> None:
    """Make a team, and return when the webhook knows it: from then on strangers are refused."""
    lab.team(team, **spec)
    eventually(lambda: not lab.accepts(pool, teamId=team))


@pytest.mark.parametrize("who", WHO)
def test_members_submit_cancel_and_raise(
    lab: Lab, users: dict[tuple[str, str], Api], who: tuple[str, str]
) -> None:
    pool, team = lab.pool(hold=True), unique("team")
    known(lab, pool, team, members=MEMBERS)
    created = submit(users[who], pool, team)["metadata"]
    run = Run(lab.api, "default", created["name"], created["uid"])
    users[who].patch(run.path, {"spec": {"priority": "high"}})
    users[who].patch(run.path, {"spec": {"cancel": True}})
    run.reaches("CANCELED")


@pytest.mark.parametrize("who", OTHERS)
def test_others_are_refused_by_name(
    lab: Lab, users: dict[tuple[str, str], Api], who: tuple[str, str]
) -> None:
    pool, team = lab.pool(hold=True), unique("team")
    known(lab, pool, team, members=MEMBERS)
    sentence = f'user "{who[0]}" is not a member of team {team}'
    assert sentence in refusal(lab, users[who], pool, team)
    created = submit(users[WHO[0]], pool, team)["metadata"]
    run = Run(lab.api, "default", created["name"], created["uid"])
    before = run.get()["spec"]
    for spec in ({"cancel": True}, {"priority": "critical"}, {"ttlSecondsAfterFinished": 0}):
        with pytest.raises(RefusedError, match="is not a member of team"):
            users[who].patch(run.path, {"spec": spec})
    assert run.get()["spec"] == before


def test_even_the_administrator_is_no_member(lab: Lab) -> None:
    pool, team = lab.pool(hold=True), unique("team")
    known(lab, pool, team, members=MEMBERS)
    assert "is not a member" in refusal(lab, lab.api, pool, team)


def test_most_urgent_class_namespaces_and_pool(lab: Lab, users: dict[tuple[str, str], Api]) -> None:
    jane = users[WHO[0]]
    closed, pool, team = lab.pool(namespaces=["elsewhere"]), lab.pool(hold=True), unique("team")
    known(lab, pool, team, members=MEMBERS, maxPriority="high")
    assert '"critical" is more urgent' in refusal(lab, jane, pool, team, priority="critical")
    assert f'spec.pool: "{closed}" is not open to namespace "default"' in refusal(lab, jane, closed, team)
    created = submit(jane, pool, team, priority="low")["metadata"]
    run = Run(lab.api, "default", created["name"], created["uid"])
    with pytest.raises(RefusedError, match="is more urgent"):
        jane.patch(run.path, {"spec": {"priority": "critical"}})
    other = unique("team")
    known(lab, pool, other, members=MEMBERS, namespaces=["elsewhere"])
    assert 'metadata.namespace: "default" is not one of team' in refusal(lab, jane, pool, other)


def test_edit_of_a_team_holds_at_once(lab: Lab, users: dict[tuple[str, str], Api]) -> None:
    joe = users[OTHERS[0]]
    pool, team = lab.pool(hold=True), unique("team")
    path = lab.team(team, members={"users": ["jane"]})
    eventually(lambda: not lab.accepts(pool, teamId=team))
    refusal(lab, joe, pool, team)
    lab.api.patch(path, {"spec": {"members": {"users": ["jane"], "groups": ["red-devs"]}}})
    eventually(lambda: _submits(joe, pool, team))


def _submits(api: Api, pool: str, team: str) -> bool:
    try:
        submit(api, pool, team)
    except RefusedError:
        return False
    return True
