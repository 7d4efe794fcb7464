"""Tests 7 to 12: submitting, once and again."""

from tests.compat.user import User


def test_07_critical_run_is_pending_and_has_an_id(user: User) -> None:
    assert user.create("confirmed", priority="critical").done
    run = user.run("confirmed")
    assert run.status["phase"] == "PENDING"
    status = run.reaches("PENDING", "PoolOnHold")  # it is written once it has waited for a moment
    assert len(status["jobId"]) == 26


def test_08_same_key_twice_is_one_run(user: User) -> None:
    pool = user.pool(maxConcurrency=2)
    assert user.create("first", idempotencyKey="k", pool=pool).done
    again = user.create("second", idempotencyKey="k", pool=pool)
    assert not again.done
    assert "default/first" in again.text
    run = user.run("first")
    run.reaches("SUCCEEDED")
    assert [job["metadata"]["name"] for job in user.stored()] == ["first"]
    # Also long after it has ended, as long as the record is there.
    assert "default/first (SUCCEEDED)" in user.create("third", idempotencyKey="k", pool=pool).text
    assert len(run.pods()) == 1


def test_09_same_key_twenty_times_at_once_is_one_run(user: User) -> None:
    answers = user.flood([user.manifest(idempotencyKey="k") for _ in range(20)])
    assert sorted(code for code, _ in answers) == [201] + [409] * 19
    [stored] = user.stored()
    refusals = [answer["message"] for code, answer in answers if code == 409]
    assert all(f"default/{stored['metadata']['name']}" in message for message in refusals)


def test_10_same_key_of_another_team_is_another_run(user: User) -> None:
    assert user.create(idempotencyKey="k").done
    assert user.create(idempotencyKey="k", teamId=f"{user.team}-too").done


def test_11_same_key_with_another_payload_is_told_apart(user: User) -> None:
    assert user.create("first", idempotencyKey="k", inputPayload={"a": 1}).done
    said = user.create(idempotencyKey="k", inputPayload={"a": 2})
    assert not said.done
    assert "Warning: Idempotency-Mismatch: default/first was created with a different spec" in said.text
    assert "default/first" in said.text
    assert "Idempotency-Mismatch" not in user.create(idempotencyKey="k", inputPayload={"a": 1}).text


def test_11_strict_pool_refuses_another_payload_as_invalid(user: User) -> None:
    pool = user.pool(hold=True, idempotency={"strict": True})
    first = user.manifest(idempotencyKey="k", pool=pool, inputPayload={"a": 1})
    other = user.manifest(idempotencyKey="k", pool=pool, inputPayload={"a": 2})
    assert [code for code, _ in user.flood([first])] == [201]
    [(code, answer)] = user.flood([other])
    assert (code, answer["reason"]) == (422, "Invalid")


def test_12_empty_key_is_none(user: User) -> None:
    assert user.create(idempotencyKey="").done
    assert user.create(idempotencyKey="").done
    assert len(user.stored()) == 2
