"""What must have a defined outcome however odd it is."""

from random import Random
from sys import getrefcount

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentjobs.scheduling.books import Books, Line
from agentjobs.scheduling.fairshare import FairShare
from agentjobs.scheduling.model import SECOND, Holding, PoolSettings, Run
from agentjobs.scheduling.pool import Pool
from agentjobs.scheduling.resources import Amounts, Bounds
from tests.unit.scheduling.scene import CRITICAL, DEFAULT, HIGH, LOW, START, Scene, amounts, team


@pytest.mark.parametrize("slots", [0, 1])
def test_a_pool_with_less_than_what_runs_starts_nothing_and_stops_nothing(slots: int) -> None:
    scene = Scene(slots=3)
    scene.submit("blue-1", count=3)
    scene.look()
    scene.configure(slots=slots)
    scene.submit("red-1")
    assert scene.look() == []
    assert scene.pool.books.free.slots == slots - 3
    assert scene.why("red-1") == ("NeverFits" if slots == 0 else "NoFreeSlot")
    scene.finish("blue-1", "blue-2", "blue-3")
    scene.configure(slots=1)
    assert scene.look() == ["red-1"]


def test_a_limit_below_what_runs() -> None:
    scene = Scene(slots=8)
    scene.submit("blue-1", count=4)
    scene.look()
    scene.configure(teams={"blue": team(limit=Bounds(2))})
    scene.submit("blue-5")
    assert scene.look() == []
    assert scene.message("blue-5") == "needs 1 slot; the team may hold 2 and holds 4"
    scene.finish("blue-1", "blue-2", "blue-3")
    assert scene.look() == ["blue-5"]


def test_a_team_that_vanishes_while_it_runs_holds_on() -> None:
    scene = Scene(slots=4, teams={"blue": team(weight=9)}, admitted=frozenset({"blue", "red"}))
    scene.submit("blue-1", count=5)
    assert len(scene.look()) == 4
    scene.configure(teams={}, admitted=frozenset({"red"}))
    scene.submit("red-1")
    assert scene.look() == []
    assert scene.why("blue-5") == "TeamMissing"
    scene.finish("blue-1")
    assert scene.look() == ["red-1"]


@given(st.lists(st.integers(-4_000, 4_000), max_size=12))
def test_a_clock_that_goes_back_keeps_the_order_of_starts(steps: list[int]) -> None:
    scene, last = Scene(slots=100), 0
    for number, step in enumerate(steps):
        scene.now += step
        scene.submit(f"blue-{number}")
        (start,) = scene.plan().starts
        assert start.scheduled > last
        last = start.scheduled


def test_a_back_off_that_has_passed_wakes_nobody() -> None:
    scene = Scene(slots=1)
    scene.submit("a-1")
    assert scene.look(50) == ["a-1"]
    scene.submit("a-2")
    scene.pool.wait(scene.pool.books.waiting["a-2"], not_before=(START + 40) * SECOND)
    assert scene.plan().look_again is None
    assert scene.why("a-2") == "NoFreeSlot"


def test_a_run_that_comes_back_after_its_back_off_is_in_line_at_once() -> None:
    scene = Scene(slots=1)
    scene.running("z-1")
    scene.look(50)
    run = Run("a-1", "default", "a", DEFAULT, False, START, 1, amounts(), 60)
    scene.pool.wait(run, not_before=scene_time(40))
    assert scene.why("a-1") == "NoFreeSlot"


def test_a_run_that_ends_while_it_is_set_aside() -> None:
    scene = Scene(slots=1)
    scene.submit("a-1", request=amounts(2))
    scene.finish("a-1")
    assert scene.pool.waiting == 0
    assert scene.pool.books.teams["a"].last_end == START * SECOND


def test_a_run_that_waits_and_turns_out_to_hold() -> None:
    scene = Scene(slots=2)
    scene.submit("a-1")
    scene.running("a-1")
    assert scene.pool.waiting == 0
    assert scene.look() == []


def test_the_first_back_off_to_end_is_looked_for() -> None:
    scene = Scene(slots=1)
    scene.running("z-1")
    scene.submit("a-1", count=3)
    for name, seconds in (("a-1", 40), ("a-2", 20)):
        scene.pool.wait(scene.pool.books.waiting[name]._replace(version=9), not_before=scene_time(seconds))
    scene.pool.close_namespace("default", scene_time(30))
    assert scene.plan().look_again == scene_time(20)
    scene.look(20)
    assert scene.plan().look_again == scene_time(30)


def scene_time(seconds: int) -> int:
    return (START + seconds) * SECOND


def test_how_many_wait() -> None:
    scene = Scene(slots=1)
    scene.submit("a-1", count=3)
    scene.submit("b-1", request=amounts(2), count=2)
    scene.look()
    assert scene.pool.waiting == 4
    assert [scene.pool.waiting_of(team) for team in ("a", "b", "nobody")] == [2, 2, 0]
    scene.pool.leave("b-1")
    scene.pool.leave("a-2")
    assert [scene.pool.waiting_of(team) for team in ("a", "b")] == [1, 1]


def test_whose_numbers_moved() -> None:
    scene = Scene(slots=1)

    def moved() -> set[str]:
        teams = set(scene.pool.books.moved)
        scene.pool.books.moved.clear()
        return teams

    scene.submit("a-1", count=2)
    assert moved() == {"a"}
    scene.submit("b-1", request=amounts(2))  # set aside
    assert moved() == {"b"}
    scene.look()
    assert moved() == {"a"}
    scene.pool.leave("b-1")
    assert moved() == {"b"}
    scene.pool.leave("a-2")
    assert moved() == {"a"}
    scene.finish("a-1")
    assert moved() == {"a"}
    scene.running("c-1")
    assert moved() == {"c"}
    scene.look()
    assert moved() == set()


def test_unknown_runs_are_no_error() -> None:
    pool = Pool("pool", FairShare())
    assert pool.why("nobody", START) is None
    pool.leave("nobody")
    pool.leave("nobody", ended=START)
    pool.hold(Holding("a-1", "a", False, amounts(), None))
    pool.hold(Holding("a-1", "a", False, amounts(2), None))
    assert pool.books.held == Amounts(2)
    pool.leave("a-1")
    assert pool.books.held == Amounts()


def test_a_line_keeps_nothing_of_a_run_that_left() -> None:
    line, run = Line(), Run("a-1", "default", "a", DEFAULT, False, START, 1, amounts(), 60)
    before = getrefcount(run)
    line.add(run)
    line.remove(run)
    assert getrefcount(run) == before


def test_nothing_is_kept_of_runs_that_are_gone() -> None:
    policy = FairShare()
    scene = Scene(
        policy, slots=6, cpu=8, teams={"a": team(limit=Bounds(2)), "b": team(guaranteed=Amounts(2))}
    )
    chance = Random(7)
    parked = noted = 0
    for number in range(400):
        weight, owner = chance.choice((CRITICAL, HIGH, DEFAULT, LOW)), chance.choice("abcd")
        cpu, timeout = chance.choice((0, 1, 2, 5)), chance.choice((60, 600))
        scene.submit(f"{owner}-{number}", weight, amounts(cpu=cpu), timeout)
        scene.look(after=1)
        for uid in list(scene.pool.books.holdings)[:-5]:
            scene.finish(uid)
        classes = policy._lineup.classes.values()
        parked += sum(len(heads.parked) for heads in classes)
        noted += sum(len(heads.noted) for heads in classes)
    assert min(parked, noted) > 10  # or this would show little
    while scene.pool.waiting:
        scene.finish(*scene.pool.books.holdings)
        scene.look(after=1)
    scene.finish(*scene.pool.books.holdings)
    scene.look()
    for heads in policy._lineup.classes.values():
        left = [heads.groups, heads.noted, heads.parked, heads._placed, heads._aside]
        assert left == [{}] * 5
    assert scene.pool.books.asked == {}


def test_ten_thousand_teams() -> None:
    scene = Scene(slots=100)
    for number in range(10_000):
        scene.submit(f"team{number}-1")
    assert scene.look() == [f"team{number}-1" for number in range(100)]
    scene.finish("team7-1")
    assert scene.look() == ["team100-1"]
    assert scene.why("team9999-1") == "NoFreeSlot"


def test_a_request_for_nothing_that_is_bounded_always_fits() -> None:
    books = Books()
    books.configure(PoolSettings(Bounds(None, 0)))
    scene = Scene(cpu=0)
    scene.submit("blue-1", count=3)
    assert len(scene.look()) == 3
