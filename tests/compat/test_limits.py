"""Tests 13 to 18: a team at its limit of waiting runs."""

from typing import Any

import pytest

from tests.compat.user import AGENTJOBS, User
from tests.live.support import eventually

LIMIT = 50
FLOODS = 5  # `make prove` has a hundred


def fill(user: User, **spec: Any) -> None:
    """Bring the user's team to its limit."""
    answers = user.flood([user.manifest(**spec) for _ in range(LIMIT)])
    assert {code for code, _ in answers} == {201}


def sentence(user: User, pending: int = LIMIT) -> str:
    return f"Team {user.team} has {pending} pending jobs; retry after 30s"


def test_13_fifty_wait_and_the_next_is_refused(user: User) -> None:
    pool = user.pool(maxConcurrency=1)
    blocker = user.lab.submit(pool, teamId=user.team, duration="300s")
    blocker.reaches("RUNNING")
    fill(user, pool=pool)
    [(code, answer)] = user.flood([user.manifest("refused", pool=pool)])
    assert (code, answer["reason"]) == (429, "TooManyRequests")
    assert answer["message"].endswith(sentence(user))
    assert user.lab.api.get(f"{AGENTJOBS}/refused") is None
    blocker.delete()


@pytest.mark.parametrize("_round", range(FLOODS))
def test_14_eighty_at_once_leave_exactly_fifty(user: User, _round: int) -> None:
    answers = user.flood([user.manifest() for _ in range(80)])
    codes = [code for code, _ in answers]
    assert (codes.count(201), codes.count(429)) == (LIMIT, 30)
    assert len(user.stored()) == LIMIT


def test_15_replay_at_the_limit_is_refused_and_other_teams_are_not(user: User) -> None:
    assert user.create("first", idempotencyKey="k").done
    assert {code for code, _ in user.flood([user.manifest() for _ in range(LIMIT - 1)])} == {201}
    again = user.create(idempotencyKey="k")
    assert not again.done
    assert again.text.endswith(sentence(user))
    assert user.create(teamId=f"{user.team}-too").done


def test_16_cancel_of_one_that_waits_makes_room(user: User) -> None:
    fill(user)
    assert not user.create().done
    canceled = user.stored()[0]["metadata"]["name"]
    patch = ("patch", "agentjob", canceled, "--type=merge", "-p", '{"spec":{"cancel":true}}')
    assert user.kubectl(*patch).done
    eventually(lambda: user.create().done)
    assert user.run(canceled).reaches("CANCELED")["phase"] == "CANCELED"
    assert not user.create().done


def test_17_kubectl_at_the_limit_is_told_at_once(user: User) -> None:
    fill(user)
    for verb in (("create",), ("apply",), ("apply", "--server-side")):
        said = user.kubectl(*verb, "-f", "-", manifest=user.manifest())
        assert not said.done
        assert said.text.endswith(sentence(user))
        assert said.seconds < 5


def test_18_invalid_manifest_at_the_limit_is_told_that_it_is_invalid(user: User) -> None:
    fill(user)
    for spec in ({"priority": "CRITICAL"}, {"inputPayload": {"text": "x" * 70_000}}):
        said = user.create(**spec)
        assert not said.done
        assert "pending jobs" not in said.text
        assert f"spec.{next(iter(spec))}" in said.text
