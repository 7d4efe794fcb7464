"""In which order a manifest is checked: itself, membership, backpressure, key, feasibility."""

from typing import Any

import pytest

from agentjobs.admission.review import Request
from tests.unit.admission.desk import Desk, manifest, pool, team

BROKEN: dict[str, Any] = {"inputPayload": {"text": "x" * 70_000}}
FOREIGN = {"team": "red"}  # a team that jane is not of
REPLAY = {"idempotencyKey": "k"}


def full(**pool_spec: Any) -> Desk:
    """Both teams are at their limit, blue's key `k` is taken, the pool is being drained."""
    desk = Desk(
        pools={"default": pool(maxPendingPerTeam=1)},
        teams={"red": team(members={"users": ["joe"]}), "blue": team()},
    )
    desk.submit("first", **REPLAY)
    desk.seen(manifest("other", "red"))
    desk.pools["default"] = pool(**{"maxPendingPerTeam": 1, "drain": {"timeoutSeconds": 60}, **pool_spec})
    return desk


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ({**BROKEN, **FOREIGN, **REPLAY}, 422),
        ({**BROKEN, **REPLAY}, 422),
        ({**FOREIGN, **REPLAY}, 403),
        (REPLAY, 429),
        ({}, 429),
    ],
)
def test_first_check_that_fails_answers(spec: dict[str, Any], code: int) -> None:
    assert full().create(manifest("new", **spec)).code == code


def test_below_the_limit_the_key_answers_before_the_drain() -> None:
    desk = full(maxPendingPerTeam=2)
    assert desk.create(manifest("new", **REPLAY)).code == 409
    answer = desk.create(manifest("new"))
    assert (answer.code, answer.reason) == (403, "Forbidden")
    assert 'spec.pool: "default" is being drained and takes no new runs' in answer.message
    assert desk.ledger.reservations == 0


def test_missing_key_is_a_fault_of_the_manifest() -> None:
    assert full(idempotency={"required": True}).create(manifest("new")).code == 422


def test_what_only_the_webhook_knows_is_told_with_the_rest() -> None:
    desk = Desk(pools={"default": pool(idempotency={"required": True})})
    answer = desk.create(manifest("aj-" + "0" * 32, **BROKEN))
    assert [line.split(":")[0] for line in answer.message.split("\n")] == [
        "3 things are wrong",
        "- spec.inputPayload",
        "- metadata.name",
        "- spec.idempotencyKey",
    ]


def test_everything_wrong_with_a_manifest_is_told_at_once() -> None:
    answer = Desk().create(manifest("new", agentImage="", retries=9, environment={"POD_NAME": "x"}))
    assert answer.code == 422
    assert [line.split(":")[0] for line in answer.message.split("\n")] == [
        "3 things are wrong",
        "- spec.agentImage",
        "- spec.environment",
        "- spec.retries",
    ]


@pytest.mark.parametrize("body", [None, [], "text", 7, {}, {"kind": "AgentJob"}, {"kind": ["AgentJob"]}])
def test_what_is_no_manifest(body: Any) -> None:
    answer = Desk().admission.review(
        Request(uid="u", operation="CREATE", name="x", namespace="y", object=body)
    )
    assert answer.code == 422


def test_another_kind_at_this_path() -> None:
    body = {
        "apiVersion": "agentjobs.dev/v1alpha1",
        "kind": "AgentTeam",
        "metadata": {"name": "blue"},
        "spec": {},
    }
    answer = Desk().admission.review(Request(uid="u", operation="CREATE", object=body))
    assert answer.message == 'kind: "AgentTeam" is reviewed elsewhere; send AgentJob here'


@pytest.mark.parametrize("team_id", ["a\u202eb", "line\nbreak", "\x1b[31mred", 'quo"te', "\u2066abc"])
def test_what_a_sentence_shows_is_escaped(team_id: str) -> None:
    desk = Desk(pools={"default": pool(maxPendingPerTeam=0)})
    message = desk.create(manifest(team=team_id)).message
    assert message.isprintable()


@pytest.mark.parametrize("team_id", ["x" * 64, 'quo"te', "back\\slash", "a b/c"])
def test_sentence_at_the_limit_names_the_team_as_it_is(team_id: str) -> None:
    desk = Desk(pools={"default": pool(maxPendingPerTeam=0)})
    message = desk.create(manifest(team=team_id)).message
    assert message == f"Team {team_id} has 0 pending jobs; retry after 30s"


def test_sentence_at_the_limit_of_a_hostile_team() -> None:
    desk = Desk(pools={"default": pool(maxPendingPerTeam=0)})
    message = desk.create(manifest(team="a\u202eb")).message
    assert message.endswith(" has 0 pending jobs; retry after 30s")
