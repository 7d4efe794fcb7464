"""A team's key is never stored twice, and a different request under it is told apart."""

from typing import Any

import pytest

from agentjobs.apis import idempotency
from tests.unit.admission.desk import Desk, manifest, pool


def test_second_run_of_a_key_is_refused_naming_the_first() -> None:
    desk = Desk()
    assert desk.submit("first", idempotencyKey="k").allowed
    answer = desk.submit("second", idempotencyKey="k")
    assert (answer.code, answer.reason) == (409, "AlreadyExists")
    assert answer.message == (
        'spec.idempotencyKey: "k" of team blue is that of default/first (PENDING); '
        "nothing was created: follow that one, or use another key"
    )
    assert answer.warnings == ()


def test_twenty_at_once_leave_one() -> None:
    """None is seen stored before the last is answered."""
    desk = Desk()
    answers = [desk.create(manifest(f"run-{n}", idempotencyKey="k")) for n in range(20)]
    assert [answer.allowed for answer in answers] == [True] + [False] * 19
    assert {answer.code for answer in answers[1:]} == {409}


@pytest.mark.parametrize("spec", [{"team": "red"}, {"idempotencyKey": "other"}, {"idempotencyKey": ""}])
def test_what_is_another_key(spec: dict[str, Any]) -> None:
    desk = Desk()
    assert desk.submit("first", idempotencyKey="k").allowed
    assert desk.submit("second", **{"idempotencyKey": "k", **spec}).allowed


def test_empty_key_is_none() -> None:
    desk = Desk()
    assert all(desk.submit(f"run-{n}", idempotencyKey="").allowed for n in range(3))


def test_key_lives_as_long_as_the_record() -> None:
    desk = Desk()
    job = manifest("first", idempotencyKey="k")
    desk.create(job)
    for phase in ("PENDING", "RUNNING", "SUCCEEDED"):
        desk.seen(job, phase)
    assert "default/first (SUCCEEDED)" in desk.submit("second", idempotencyKey="k").message
    desk.gone(job)
    assert desk.submit("second", idempotencyKey="k").allowed


def test_key_of_a_create_that_was_never_stored_is_free_again() -> None:
    desk = Desk()
    job = manifest("first", idempotencyKey="k")
    desk.create(job)
    desk.ledger.release(job["metadata"]["uid"])
    assert desk.submit("second", idempotencyKey="k").allowed


def test_name_of_the_first_is_escaped() -> None:
    """The API server takes DNS names alone; whoever asks past it may not write to anybody's terminal."""
    desk = Desk()
    assert desk.submit("a\x1b[2J", idempotencyKey="k").allowed
    assert "default/a\\x1b[2J (PENDING)" in desk.submit("second", idempotencyKey="k").message


def test_key_is_kept_for_each_of_two_creates_under_one_name() -> None:
    """Which of them is stored is the API server's to say: neither key is free meanwhile."""
    desk = Desk()
    first, second = manifest("same", idempotencyKey="k"), manifest("same", idempotencyKey="other")
    assert desk.create(first).allowed
    assert desk.create(second).allowed
    assert desk.submit("third", idempotencyKey="k").code == 409
    assert desk.submit("third", idempotencyKey="other").code == 409
    assert desk.create(manifest("same", idempotencyKey="k")).allowed  # the client asks again
    desk.seen(first)
    desk.ledger.release(second["metadata"]["uid"])
    assert desk.submit("third", idempotencyKey="other").allowed
    assert desk.submit("fourth", idempotencyKey="k").code == 409


def test_key_is_that_of_the_older_of_two() -> None:
    """Two can only be stored across a failover, or while the webhook was away."""
    desk = Desk()
    jobs = [manifest(name, idempotencyKey="k") for name in ("older", "younger")]
    for job in jobs:
        desk.seen(job)
    assert "default/older" in desk.submit("third", idempotencyKey="k").message
    desk.gone(jobs[0])
    assert "default/younger" in desk.submit("third", idempotencyKey="k").message
    desk.gone(jobs[1])
    assert desk.submit("third", idempotencyKey="k").allowed


def test_different_request_is_told_apart() -> None:
    desk = Desk()
    desk.submit("first", idempotencyKey="k", inputPayload={"a": 1})
    answer = desk.submit("second", idempotencyKey="k", inputPayload={"a": 2})
    assert answer.code == 409
    assert "which has a different spec" in answer.message
    assert answer.warnings == ("Idempotency-Mismatch: default/first was created with a different spec",)


@pytest.mark.parametrize("spec", [{"priority": "high"}, {"cancel": True}, {"ttlSecondsAfterFinished": 5}])
def test_what_may_be_edited_makes_no_other_request(spec: dict[str, Any]) -> None:
    desk = Desk()
    desk.submit("first", idempotencyKey="k")
    assert desk.submit("second", idempotencyKey="k", **spec).warnings == ()


def test_strict_pool_refuses_a_different_request() -> None:
    desk = Desk(pools={"default": pool(idempotency={"strict": True})})
    desk.submit("first", idempotencyKey="k", args=["a"])
    answer = desk.submit("second", idempotencyKey="k", args=["b"])
    assert (answer.code, answer.reason) == (422, "Invalid")
    assert desk.submit("third", idempotencyKey="k", args=["a"]).code == 409


def test_required_key() -> None:
    desk = Desk(pools={"default": pool(idempotency={"required": True})})
    answer = desk.submit("first")
    assert answer.code == 422
    assert answer.message == (
        "spec.idempotencyKey: is required in pool default; set a text that is the same for every retry"
    )
    assert desk.submit("second", idempotencyKey="k").allowed


def test_replay_at_the_limit_is_refused_for_the_limit() -> None:
    desk = Desk(pools={"default": pool(maxPendingPerTeam=1)})
    desk.submit("first", idempotencyKey="k")
    assert desk.submit("second", idempotencyKey="k").code == 429


def test_replay_at_the_limit_where_keys_go_first() -> None:
    desk = Desk(pools={"default": pool(maxPendingPerTeam=1, idempotency={"beforeBackpressure": True})})
    desk.submit("first", idempotencyKey="k")
    assert desk.submit("second", idempotencyKey="k").code == 409
    assert desk.submit("third").code == 429


def test_name_that_follows_from_a_key_is_kept_for_it() -> None:
    desk = Desk()
    name = idempotency.object_name("blue", "k")
    for spec in ({}, {"idempotencyKey": "other"}, {"idempotencyKey": "k", "team": "red"}):
        answer = desk.submit(name, **spec)
        assert answer.code == 422
        assert answer.message.startswith(f'metadata.name: "{name}" is kept for the run of another team')
    assert desk.submit(name, idempotencyKey="k").allowed
    assert desk.submit("aj-of-mine").allowed


def test_object_name_is_the_same_for_ever() -> None:
    """Gateways of other versions must find the same object."""
    assert idempotency.object_name("blue", "k") == "aj-b373736f97aa9727fc57b0a8860e3dde"
    assert idempotency.object_name("blu", "ek") != idempotency.object_name("blue", "k")
    assert idempotency.RESERVED_NAME.fullmatch(idempotency.object_name("a b/c", "\ud800"))
