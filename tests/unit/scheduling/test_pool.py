"""One pool: who starts, who waits, and why, told by behaviour alone."""

from __future__ import annotations

import pytest

from agentjobs.scheduling.model import ClassThenAge, Run, Wait, WaitReason
from agentjobs.scheduling.pool import Pool
from agentjobs.scheduling.resources import Amounts, Capacity

CRITICAL, HIGH, DEFAULT, LOW = 0, 10, 50, 100
SECOND = 1_000_000


def run(
    uid: str,
    weight: int = DEFAULT,
    *,
    created: int = 0,
    team: str = "blue",
    namespace: str = "agents",
    request: Amounts | None = None,
) -> Run:
    return Run(uid, namespace, team, weight, created, request or Amounts(1, 1000, 2048, 0))


def pool(
    *runs: Run, capacity: Capacity | None = None, hold: bool = False, teams: frozenset[str] | None = None
) -> Pool:
    made = Pool("p", ClassThenAge())
    made.configure(capacity or Capacity(slots=1), on_hold=hold, teams=teams)
    for each in runs:
        made.wait(each)
    return made


def started(made: Pool, now: int = 0) -> str:
    return "".join(each.uid for each in made.decide(now).starts)


def reason(made: Pool, uid: str) -> WaitReason | None:
    wait = made.why(uid)
    return wait.reason if wait else None


def test_classes_first_then_age_then_uid() -> None:
    runs = [
        run("e", LOW, created=1),
        run("d", DEFAULT, created=2),
        run("c", DEFAULT, created=1),
        run("b", DEFAULT, created=1),
        run("a", CRITICAL, created=9),
    ]
    assert started(pool(*runs, capacity=Capacity())) == "abcde"


def test_no_more_than_there_are_slots() -> None:
    made = pool(run("a"), run("b"), run("c"), capacity=Capacity(slots=2))
    assert started(made) == "ab"
    assert started(made) == ""
    assert made.held == Amounts(2, 2000, 4096, 0)
    assert made.waiting == 1
    made.leave("a")
    assert started(made) == "c"


def test_raised_slots_admit_at_once_and_lowered_ones_interrupt_nobody() -> None:
    made = pool(run("a"), run("b"), run("c"), run("d"))
    assert started(made) == "a"
    made.configure(Capacity(slots=3), on_hold=False, teams=None)
    assert started(made) == "bc"
    made.configure(Capacity(slots=1), on_hold=False, teams=None)
    assert made.held.slots == 3
    made.leave("a")
    made.leave("b")
    assert started(made) == ""
    made.leave("c")
    assert started(made) == "d"


def test_nobody_overtakes_the_first_that_does_not_fit() -> None:
    large, small = Amounts(1, 8000, 2048, 0), Amounts(1, 100, 128, 0)
    made = pool(
        run("a"), run("b", request=large), run("c", request=small), capacity=Capacity(None, 8000, None, None)
    )
    assert started(made) == "a"
    assert made.why("b") == Wait(
        WaitReason.INSUFFICIENT_CPU, "needs 8000 CPU millicores; 1000 of 8000 are held in pool p"
    )
    assert reason(made, "c") == WaitReason.BEHIND_OTHERS


@pytest.mark.parametrize(
    ("capacity", "expected"),
    [
        (Capacity(slots=1), WaitReason.NO_FREE_SLOT),
        (Capacity(cpu_millicores=1999), WaitReason.INSUFFICIENT_CPU),
        (Capacity(memory_mb=4095), WaitReason.INSUFFICIENT_MEMORY),
        (Capacity(gpu_count=1), WaitReason.INSUFFICIENT_GPU),
        (Capacity(2, 2000, 4096, 2), None),
    ],
)
def test_each_resource_can_be_short(capacity: Capacity, expected: WaitReason | None) -> None:
    made = Pool("p", ClassThenAge())
    made.configure(capacity, on_hold=False, teams=None)
    request = Amounts(1, 1000, 2048, 1)
    made.hold("a", request)
    made.wait(run("b", request=request))
    assert started(made) == ("b" if expected is None else "")
    assert reason(made, "b") == expected


def test_what_a_run_does_not_use_never_stops_it() -> None:
    made = pool(run("b"), capacity=Capacity(None, None, None, 0))
    made.hold("a", Amounts(1, 0, 0, 4))
    assert started(made) == "b"


def test_a_pool_on_hold_starts_nothing_and_says_so() -> None:
    made = pool(run("a"), hold=True)
    assert started(made) == ""
    assert reason(made, "a") == WaitReason.POOL_ON_HOLD
    made.configure(Capacity(slots=1), on_hold=False, teams=None)
    assert started(made) == "a"


def test_a_pool_that_does_not_exist_starts_nothing_and_says_so() -> None:
    made = Pool("p", ClassThenAge())
    made.wait(run("a"))
    assert started(made) == ""
    assert reason(made, "a") == WaitReason.POOL_MISSING
    made.configure(Capacity(), on_hold=False, teams=None)
    assert started(made) == "a"
    made.retire()
    made.wait(run("b"))
    assert started(made) == ""
    assert made.held.slots == 1


def test_a_team_that_does_not_exist_waits_without_holding_others_up() -> None:
    made = pool(run("a", team="ghost"), run("b"), teams=frozenset({"blue"}))
    assert started(made) == "b"
    assert reason(made, "a") == WaitReason.TEAM_MISSING
    made.leave("b")
    made.configure(Capacity(slots=1), on_hold=False, teams=frozenset({"blue", "ghost"}))
    assert started(made) == "a"


def test_a_full_quota_holds_back_its_namespace_until_its_time_is_over() -> None:
    made = pool(run("a"), run("b", namespace="others"), run("c", created=9, namespace="others"))
    made.back_off("agents", 10 * SECOND)
    assert made.decide(SECOND).look_again == 10 * SECOND
    assert reason(made, "a") == WaitReason.QUOTA_EXCEEDED
    made.leave("b")
    # It returns to its old place, before those that came later.
    plan = made.decide(10 * SECOND)
    assert [each.uid for each in plan.starts] == ["a"]
    assert plan.look_again is None


def test_a_decision_that_is_taken_back_returns_to_its_place() -> None:
    first, second = run("a", created=1), run("b", created=2)
    made = pool(first, second)
    assert started(made) == "a"
    made.wait(first)
    assert made.held == Amounts()
    assert started(made) == "a"


def test_a_change_of_class_moves_a_run() -> None:
    made = pool(run("a", created=1), run("b", created=2), run("c", created=3))
    made.wait(run("c", CRITICAL, created=3))
    made.wait(run("a", LOW, created=1))
    order = ""
    for _ in range(3):
        order += started(made)
        made.leave(order[-1])
    assert order == "cba"


def test_saying_a_thing_twice_is_saying_it_once() -> None:
    made = pool(run("a"), run("a"))
    made.hold("x", Amounts(1))
    made.hold("x", Amounts(1))
    assert made.held == Amounts(1)
    assert made.waiting == 1
    for _ in range(2):
        made.leave("x")
        made.leave("unknown")
    assert made.held == Amounts()
    assert started(made) == "a"
    assert started(made) == ""


def test_who_does_not_wait_has_no_reason() -> None:
    made = pool(run("a"))
    assert made.why("unknown") is None
    assert started(made) == "a"
    assert made.why("a") is None
