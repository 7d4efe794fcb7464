"""Order, limits, shares and guarantees (rules 2 to 5), each by itself."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentjobs.scheduling.books import Team
from agentjobs.scheduling.model import (
    SECOND,
    PoolSettings,
    TeamSettings,
)
from agentjobs.scheduling.resources import Amounts, Bounds, ceil_percent, fits, short
from agentjobs.scheduling.rules import Standing, never_fits
from tests.unit.scheduling.scene import CRITICAL, DEFAULT, HIGH, LOW, START, Scene, amounts, team

capacities = st.builds(
    Bounds,
    st.none() | st.integers(0, 10_000),
    st.none() | st.integers(0, 10**7),
    st.none() | st.integers(0, 10**8),
    st.none() | st.integers(0, 5_000),
)
holdings = st.builds(
    Amounts, st.integers(0, 10_000), st.integers(0, 10**7), st.integers(0, 10**8), st.integers(0, 5_000)
)


# -- order (2) ---------------------------------------------------------------------------------------


@given(capacities, holdings, holdings, st.integers(1, 1_000), st.integers(1, 1_000))
def test_dominant_shares_are_ordered_exactly(
    capacity: Bounds, one: Amounts, other: Amounts, one_weight: int, other_weight: int
) -> None:
    keys, shares = [], []
    standing = Standing(PoolSettings(), capacity)
    for held, weight in ((one, one_weight), (other, other_weight)):
        books = Team("team")
        books.settings, books.held, books.live = TeamSettings(weight), held, held.slots
        keys.append(standing.dominant_share(books))
        parts = [Fraction(used, there) for used, there in zip(held, capacity, strict=True) if there]
        shares.append(max(parts, default=Fraction(held.slots)) / weight)
    assert (keys[0] < keys[1], keys[0] == keys[1]) == (shares[0] < shares[1], shares[0] == shares[1])


def test_shares_that_differ_in_the_last_place_only() -> None:
    """999/1000 of a third against 333/1000: floats of such shares are equal."""
    standing = Standing(PoolSettings(), Bounds(3, 10**7 - 1))
    small, large = Team("small"), Team("large")
    small.held, large.held = Amounts(1, 3_333_332), Amounts(0, 3_333_334)
    assert standing.dominant_share(small) < standing.dominant_share(large)


def test_the_largest_part_in_thousandths() -> None:
    standing = Standing(PoolSettings(), Bounds(4, None, 0, 3))
    assert standing.thousandths(Amounts(1, 9, 9, 1)) == 333
    assert standing.thousandths(Amounts(4, 0, 0, 1)) == 1_000
    assert Standing(PoolSettings(), Bounds()).thousandths(Amounts(1)) is None


def test_the_weight_divides_the_share() -> None:
    scene = Scene(slots=10, share_percent=100, teams={"blue": team(weight=2)})
    for number in range(3):
        scene.running(f"blue-{number}")
    scene.running("red-1")
    scene.running("red-2")
    scene.submit("red-3")
    scene.submit("blue-3")
    assert scene.look() == ["blue-3", "red-3"]  # 3/2 < 2/1


def test_equal_shares_go_by_who_was_served_longest_ago_then_by_age() -> None:
    scene = Scene(slots=9, share_percent=100)
    scene.submit("red-1")
    scene.submit("blue-1")
    scene.submit("gold-1")
    scene.pool.remember("red", served=START * SECOND)
    assert scene.look() == ["blue-1", "gold-1", "red-1"]


def test_who_was_served_is_remembered_between_looks() -> None:
    scene = Scene(slots=2, share_percent=100)
    scene.running("z-1")
    scene.running("z-2")
    scene.submit("red-1")
    scene.submit("blue-1")
    scene.look()
    scene.configure(slots=2)
    scene.pool.remember("red", served=START * SECOND)
    scene.pool.books.reservation = None
    scene.look()
    assert scene.promise is not None
    assert scene.promise[0] == "blue-1"


def test_a_pool_without_bounds_counts_runs() -> None:
    scene = Scene()
    scene.running("blue-1", amounts(gpus=8))
    scene.running("red-1")
    scene.running("red-2")
    scene.submit("red-3")
    scene.submit("blue-2")
    assert scene.look() == ["blue-2", "red-3"]


def test_classes_of_one_weight_are_one_class() -> None:
    scene = Scene(slots=1)
    scene.submit("blue-1", DEFAULT)
    scene.submit("blue-2", DEFAULT)
    assert scene.look() == ["blue-1"]


def test_a_change_of_class_keeps_the_age() -> None:
    scene = Scene(slots=1)
    scene.running("red-1")
    scene.submit("blue-1", LOW, count=2)
    scene.submit("blue-3", HIGH)
    moved = scene.pool.books.waiting["blue-2"]._replace(weight=HIGH)
    scene.pool.wait(moved)
    assert list(scene.pool.books.teams["blue"].lines[HIGH]) == [
        moved,
        scene.pool.books.waiting["blue-3"],
    ]


# -- limits and shares (3, 4) ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "request_", "name"),
    [
        (Bounds(1, 1, 1, 1), Amounts(1, 1, 1, 1), None),
        (Bounds(-1, None, None, None), Amounts(0, 5, 5, 5), None),
        (Bounds(0), Amounts(1), "slots"),
        (Bounds(9, 4), Amounts(1, 5), "cpu_millicores"),
        (Bounds(9, 9, 4), Amounts(1, 1, 5), "memory_mb"),
        (Bounds(9, 9, 9, 0), Amounts(1, 1, 1, 1), "gpu_count"),
    ],
)
def test_what_is_short(left: Bounds, request_: Amounts, name: str | None) -> None:
    assert short(left, request_) == name
    assert fits(left, request_) == (name is None)


@pytest.mark.parametrize(
    ("percent", "of", "is_"),
    [(25, 16, 4), (25, 3, 1), (10, 16, 2), (0, 7, 0), (100, 7, 7), (50, 1, 1), (100, 900, 900)],
)
def test_percentages_are_rounded_up(percent: int, of: int, is_: int) -> None:
    assert ceil_percent(percent, of) == is_


@pytest.mark.parametrize(
    ("request_", "critical", "words"),
    [
        (Amounts(1), False, None),
        (Amounts(9), False, "9 slots asked, the pool has 8"),
        (Amounts(1, 3_000), False, "3000 millicores of CPU asked, the limit of team blue is 2000"),
        (Amounts(1, 0, 0, 2), True, "2 GPUs asked, the criticalLimit of team blue is 1"),
        (Amounts(1, 0, 0, 2), False, None),
    ],
)
def test_never_fits(request_: Amounts, critical: bool, words: str | None) -> None:
    own = team(limit=Bounds(None, 2_000), critical_limit=Bounds(None, None, None, 1))
    settings = PoolSettings(capacity=Bounds(8), teams={"blue": own})
    assert never_fits(settings, "blue", request_, critical=critical) == words


def test_half_of_three_gpus_is_two() -> None:
    scene = Scene(slots=20, gpus=3, share_percent=50)
    scene.submit("blue-1", request=amounts(gpus=1), count=3)
    scene.submit("red-1", count=1)
    assert scene.look() == ["blue-1", "red-1", "blue-2"]
    assert scene.message("blue-3").startswith("the team holds 2 GPUs, its share is 2; more only while 1 stay")


def test_zero_headroom_keeps_one_slot_free_and_nothing_else() -> None:
    scene = Scene(slots=4, gpus=4, headroom_percent=0)
    scene.submit("red-1")
    scene.submit("blue-1", request=amounts(gpus=1), count=4)
    assert scene.look() == ["red-1", "blue-1", "blue-2"]
    assert scene.why("blue-3") == "TeamShare"


def test_a_team_is_known_until_the_window_after_its_last_end() -> None:
    scene = Scene(slots=4, share_window_seconds=60)
    scene.running("red-1")
    scene.submit("blue-1", count=4)
    assert scene.look() == ["blue-1", "blue-2"]
    scene.finish("red-1")
    assert scene.look() == ["blue-3"]
    assert scene.plan().look_again == (START + 60) * SECOND
    assert scene.look(59) == []
    assert scene.look(1) == ["blue-4"]


def test_a_clock_that_goes_back_brings_a_forgotten_team_back() -> None:
    scene = Scene(slots=4, share_window_seconds=60)
    scene.running("red-1")
    scene.submit("blue-1", count=3)
    assert scene.look() == ["blue-1", "blue-2"]
    scene.finish("red-1")
    assert scene.look(60) == ["blue-3"]
    scene.submit("blue-4", count=2)
    assert scene.look(-59) == []
    assert scene.why("blue-4") == "TeamShare"


def test_a_mistyped_team_does_not_halve_the_pool() -> None:
    scene = Scene(slots=4, admitted=frozenset({"blue"}))
    scene.submit("blu-1")
    scene.submit("blue-1", count=4)
    assert len(scene.look()) == 4
    assert scene.why("blu-1") == "TeamMissing"


# -- guarantees (5) ----------------------------------------------------------------------------------


def test_guarantees_beyond_capacity_are_scaled_down() -> None:
    teams = {"a": team(guaranteed=amounts(6)), "b": team(guaranteed=amounts(5))}
    standing = Standing(PoolSettings(teams=teams), Bounds(8))
    assert standing.guaranteed == {"a": Amounts(4), "b": Amounts(3)}  # 48/11 and 40/11


def test_what_is_kept_ends_with_the_first_run_beyond_the_guarantee() -> None:
    scene = Scene(slots=9, gpus=9, teams={"a": team(guaranteed=amounts(3, gpus=4))})
    scene.running("z-1", amounts(gpus=7))
    scene.running("z-2", amounts(gpus=1))
    scene.submit("a-1", request=amounts(gpus=2))
    scene.submit("a-2", request=amounts(gpus=3))
    scene.submit("a-3", request=amounts(gpus=1))
    scene.submit("b-1", HIGH, amounts(gpus=1))
    assert scene.look() == []  # a-1 is counted, 2 GPUs; a-2 would make it 5
    assert scene.why("b-1") == "GuaranteedToOthers"
    assert "1 are free, 2 are kept" in scene.message("b-1")


def test_what_is_kept_grows_with_every_run_in_line() -> None:
    scene = Scene(slots=4, gpus=2, teams={"a": team(guaranteed=amounts(2, gpus=2))})
    scene.running("z-1", amounts(2, gpus=2), ends_in=None)
    scene.submit("a-1", request=amounts(gpus=1))
    assert scene.look() == []
    scene.submit("a-2", request=amounts(gpus=1))
    scene.submit("b-1")
    assert scene.look() == []
    assert "2 are free, 2 are kept" in scene.message("b-1")


@pytest.mark.parametrize(("critical_limit", "kept"), [(None, 3), (2, 3), (1, 2), (0, 1)])
def test_critical_runs_at_their_limit_are_not_kept_for(critical_limit: int | None, kept: int) -> None:
    own = team(guaranteed=amounts(3), critical_limit=Bounds(critical_limit))
    scene = Scene(slots=6, share_percent=100, teams={"a": own})
    for number in range(6):
        scene.running(f"z-{number}")
    scene.submit("a-1", CRITICAL, count=2)
    scene.submit("a-3")
    scene.submit("b-1", HIGH)
    scene.look()
    assert scene.message("b-1") == f"needs 1 slot; 0 are free, {kept} are kept for what others are guaranteed"


def test_what_is_kept_for_a_team_does_not_stop_its_own_runs() -> None:
    """1 slot is kept for a-1, which lacks a GPU; a-2 is larger than the guarantee, and ends in time."""
    scene = Scene(slots=4, gpus=1, share_percent=100, teams={"a": team(guaranteed=amounts(2, gpus=1))})
    scene.running("z-1", amounts(gpus=1))
    scene.submit("a-1", HIGH, amounts(gpus=1))
    scene.submit("a-2", LOW, amounts(3), timeout=60)
    assert scene.look() == ["a-2"]


def test_nothing_is_kept_for_a_run_that_no_node_could_ever_hold() -> None:
    nodes = {name: Amounts(0, 0, 0, 2) for name in ("n1", "n2")}
    scene = Scene(nodes=nodes, teams={"a": team(guaranteed=amounts(9, gpus=4))})
    scene.submit("a-1", CRITICAL, amounts(gpus=4))
    scene.submit("b-1", request=amounts(gpus=2))
    assert scene.look() == ["b-1"]
    assert scene.why("a-1") in ("InsufficientGPU", "NoNodeFits")


def test_nothing_is_kept_any_more_for_a_team_that_has_lost_its_guarantee() -> None:
    scene = Scene(slots=1, gpus=0, teams={"g": team(guaranteed=amounts(1))})
    scene.running("z-1", amounts(0))
    scene.submit("b-1")
    scene.submit("g-1", request=amounts(1, gpus=0), timeout=600)
    scene.configure(on_hold=True)
    scene.configure(on_hold=False, teams={})
    assert scene.look() == ["b-1"]
