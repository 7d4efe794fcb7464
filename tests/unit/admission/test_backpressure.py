"""A team at its limit is refused; the count is exact whatever the order of answers, storage and watch."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from tests.unit.admission.desk import Desk, manifest, pool, team

LIMIT = 5


def test_eighty_at_once_leave_fifty() -> None:
    """None of them is seen stored before the last one is answered."""
    desk = Desk()
    answers = [desk.create(manifest(f"run-{number}")) for number in range(80)]
    assert sum(answer.allowed for answer in answers) == 50
    refused = next(answer for answer in answers if not answer.allowed)
    assert (refused.code, refused.reason) == (429, "TooManyRequests")
    assert refused.message == "Team blue has 50 pending jobs; retry after 30s"


def test_seconds_and_limit_are_those_of_the_pool_and_the_team() -> None:
    desk = Desk(
        pools={"default": pool(maxPendingPerTeam=2, retryAfterSeconds=7)}, teams={"red": team(maxPending=1)}
    )
    assert [desk.submit(f"blue-{n}").allowed for n in range(3)] == [True, True, False]
    assert [desk.submit(f"red-{n}", "red").allowed for n in range(2)] == [True, False]
    assert desk.submit("blue-4").message.endswith("Team blue has 2 pending jobs; retry after 7s")


def test_pending_counts_over_all_pools() -> None:
    desk = Desk(pools={"default": pool(maxPendingPerTeam=2), "other": pool(maxPendingPerTeam=3)})
    assert desk.submit("one").allowed
    assert desk.submit("two", pool="other").allowed
    assert not desk.submit("three").allowed
    assert desk.submit("three", pool="other").allowed
    assert not desk.submit("four", pool="other").allowed


def test_room_again_when_one_no_longer_waits() -> None:
    desk = Desk(pools={"default": pool(maxPendingPerTeam=1)})
    job = manifest("first")
    assert desk.create(job).allowed
    desk.seen(job)
    assert not desk.submit("second").allowed
    desk.seen(job, "SCHEDULED")
    assert desk.submit("second").allowed
    assert not desk.submit("third").allowed


def test_room_again_when_one_is_deleted() -> None:
    desk = Desk(pools={"default": pool(maxPendingPerTeam=1)})
    job = manifest("first")
    desk.create(job)
    desk.seen(job)
    desk.gone(job)
    assert desk.submit("second").allowed


def test_dry_run_reserves_nothing_and_is_refused_at_the_limit() -> None:
    desk = Desk(pools={"default": pool(maxPendingPerTeam=1)})
    assert all(desk.create(manifest(f"dry-{n}"), dry_run=True).allowed for n in range(3))
    assert desk.submit("real").allowed
    assert desk.create(manifest("dry"), dry_run=True).code == 429


def test_create_of_a_name_that_is_stored_is_looked_for_at_once() -> None:
    """It can only fail, unless what the watch still shows is deleted already."""
    desk = Desk(pools={"default": pool(maxPendingPerTeam=3)})
    assert desk.submit("same").allowed
    again = manifest("same")
    assert desk.create(again).allowed
    [create] = desk.ledger.due(desk.now)
    assert create.uid == again["metadata"]["uid"]
    desk.ledger.postpone(create.uid)
    assert desk.ledger.due(4.9) == []
    assert desk.ledger.due(5.0)[0].uid == create.uid


def test_two_creates_under_one_name_take_one_place() -> None:
    """One of them at most is stored."""
    desk = Desk(pools={"default": pool(maxPendingPerTeam=1)})
    first, second = manifest("same"), manifest("same")
    assert desk.create(first).allowed
    assert desk.create(second).allowed
    assert desk.ledger.pending("blue", ("default", "other")) == 1
    desk.seen(first)
    # The second has lost, or comes after a deletion that we have not seen: that is looked up, not guessed.
    assert [create.uid for create in desk.ledger.due(desk.now)] == [second["metadata"]["uid"]]
    assert not desk.submit("other").allowed


def test_same_name_asked_for_two_teams_takes_a_place_of_each() -> None:
    """Whichever the API server stores, neither team is over its limit."""
    desk = Desk(pools={"default": pool(maxPendingPerTeam=1)})
    blue, red = manifest("same", "blue"), manifest("same", "red")
    assert desk.create(blue).allowed
    assert desk.create(red).allowed
    assert not desk.create(manifest("other", "blue")).allowed
    assert not desk.create(manifest("other", "red")).allowed
    desk.seen(blue)
    desk.ledger.release(red["metadata"]["uid"])
    assert not desk.submit("another").allowed
    assert desk.submit("another", "red").allowed
    assert desk.over == []


def test_create_that_is_never_stored_is_looked_for() -> None:
    desk = Desk(pools={"default": pool(maxPendingPerTeam=1)})
    job = manifest("lost")
    desk.create(job)
    assert desk.ledger.due(4.9) == []
    [create] = desk.ledger.due(5.0)
    assert desk.ledger.release("another") is None
    assert desk.ledger.release(create.uid) is create
    assert desk.submit("next").allowed


@pytest.mark.parametrize(("limit", "counted"), [(1, 1), (2, 0)])
def test_create_that_is_stored_after_it_was_given_up_is_counted(limit: int, counted: int) -> None:
    desk = Desk(pools={"default": pool(maxPendingPerTeam=limit)})
    late = manifest("late")
    desk.create(late)
    desk.ledger.release(late["metadata"]["uid"])
    desk.submit("next")
    desk.seen(late)
    assert desk.over == ["blue"] * counted


def test_what_a_lowered_limit_finds_stored_is_not_one_too_many() -> None:
    desk = Desk(pools={"default": pool(maxPendingPerTeam=2)})
    jobs = [manifest("one"), manifest("two")]
    assert all(desk.create(job).allowed for job in jobs)
    desk.pools["default"] = pool(maxPendingPerTeam=1)
    for job in jobs:
        desk.seen(job)
    assert desk.over == []
    assert not desk.submit("three").allowed


def test_return_to_the_line_is_no_arrival() -> None:
    """A retry waits again, is counted as pending, and is never one too many."""
    desk = Desk(pools={"default": pool(maxPendingPerTeam=1)})
    job = manifest("retried")
    desk.create(job)
    desk.seen(job)
    desk.seen(job, "RUNNING")
    desk.submit("next")
    desk.seen(job, "PENDING")
    assert desk.over == []
    assert desk.submit("third").message.startswith("Team blue has 2 pending jobs")


class Creates(RuleBasedStateMachine):
    """Answers, storage and watch in any order; a create may be lost, given up, and stored long after that.

    The store never holds more than the limit, but for what is counted as one too many.
    """

    allowed, stored, given_up = Bundle("allowed"), Bundle("stored"), Bundle("given up")

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk(pools={"default": pool(maxPendingPerTeam=LIMIT)})
        self.waiting = {"blue": 0, "red": 0}
        self.over: Counter[str] = Counter()
        self.names = 0

    @rule(target=allowed, team=st.sampled_from(["blue", "red"]))
    def ask(self, team: str) -> object:
        self.names += 1
        job = manifest(f"run-{self.names}", team)
        expected = self.desk.ledger.pending(team, ("default", "none")) < LIMIT
        answer = self.desk.create(job)
        assert answer.allowed == expected
        return job if answer.allowed else None

    @rule(target=stored, job=consumes(allowed))
    def store(self, job: dict[str, Any] | None) -> object:
        if job is not None:
            team = job["spec"]["teamId"]
            self.waiting[team] += 1
            self.over[team] += self.waiting[team] > LIMIT
            self.desk.seen(job)
        return job

    @rule(target=given_up, job=consumes(allowed))
    def lose(self, job: dict[str, Any] | None) -> object:
        if job is not None:
            self.desk.ledger.release(job["metadata"]["uid"])
        return job

    @rule(target=stored, job=consumes(given_up))
    def store_late(self, job: dict[str, Any] | None) -> object:
        return self.store(job)

    @rule(job=consumes(stored), how=st.sampled_from(["start", "delete", "again"]))
    def end(self, job: dict[str, Any] | None, how: str) -> None:
        if job is None:
            return
        self.waiting[job["spec"]["teamId"]] -= 1
        if how == "delete":
            self.desk.gone(job)
        else:
            self.desk.seen(job, "SCHEDULED")
            self.desk.seen(job, "RUNNING" if how == "again" else "SUCCEEDED")

    @invariant()
    def bounded(self) -> None:
        assert all(count <= LIMIT + self.over[team] for team, count in self.waiting.items())
        assert Counter(self.desk.over) == +self.over


TestCreates = Creates.TestCase
TestCreates.settings = settings(max_examples=50, stateful_step_count=60, deadline=None)
