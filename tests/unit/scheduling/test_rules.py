"""Each rule and each reason by itself, and what must have a defined outcome however odd it is."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentjobs.scheduling.books import Books, Team
from agentjobs.scheduling.model import (
    SECOND,
    Holding,
    PoolSettings,
    Reservation,
    Run,
    TeamSettings,
    WaitReason,
)
from agentjobs.scheduling.pool import Pool
from agentjobs.scheduling.resources import Amounts, Bounds, ceil_percent, fits, short
from agentjobs.scheduling.rules import Standing, never_fits
from tests.unit.scheduling.scene import CRITICAL, DEFAULT, HIGH, LOW, START, Scene, amounts, team

GIB = 1_024
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


def test_nothing_is_kept_for_a_run_that_no_node_could_ever_hold() -> None:
    nodes = {name: Amounts(0, 0, 0, 2) for name in ("n1", "n2")}
    scene = Scene(nodes=nodes, teams={"a": team(guaranteed=amounts(9, gpus=4))})
    scene.submit("a-1", CRITICAL, amounts(gpus=4))
    scene.submit("b-1", request=amounts(gpus=2))
    assert scene.look() == ["b-1"]
    assert scene.why("a-1") in ("InsufficientGPU", "NoNodeFits")


# -- nodes and the reservation (7) -------------------------------------------------------------------


def test_fragmented_nodes() -> None:
    nodes = {"n1": Amounts(0, 4_000, 8 * GIB, 0), "n2": Amounts(0, 4_000, 8 * GIB, 0)}
    scene = Scene(nodes=nodes)
    scene.running("b-1", amounts(cpu=2_000), ends_in=500, node="n1")
    scene.running("b-2", amounts(cpu=2_000), ends_in=900, node="n2")
    scene.submit("a-1", request=amounts(cpu=3_000))
    assert scene.look() == []
    assert scene.why("a-1") == "NoNodeFits"
    held = scene.pool.books.reservation
    assert held is not None
    assert (held.node, scene.promise) == ("n1", ("a-1", 500))
    scene.submit("c-1", request=amounts(cpu=2_000), timeout=9_000)
    assert [(start.run.uid, start.avoid_node) for start in scene.plan().starts] == [("c-1", "n1")]


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (amounts(cpu=1), "InsufficientCPU"),
        (amounts(memory=1), "InsufficientMemory"),
        (amounts(gpus=1), "InsufficientGPU"),
        (amounts(), "NoNodeFits"),
    ],
)
def test_a_pool_without_nodes_has_nothing(request_: Amounts, reason: str) -> None:
    scene = Scene(nodes={})
    scene.submit("a-1", request=request_)
    assert scene.look() == []
    assert scene.why("a-1") == reason


def test_a_run_larger_than_every_node_waits_and_holds_nothing_up() -> None:
    scene = Scene(nodes={"n1": Amounts(0, 4_000)})
    scene.submit("a-1", HIGH, amounts(cpu=5_000))
    scene.submit("b-1", request=amounts(cpu=1_000))
    assert scene.look() == ["b-1"]
    assert scene.why("a-1") == "InsufficientCPU"
    assert scene.promise is None


def test_a_holder_whom_the_pool_has_become_too_small_for_loses_the_reservation() -> None:
    nodes = {"n1": Amounts(0, 4_000), "n2": Amounts(0, 2_000)}
    scene = Scene(nodes=nodes, share_percent=100)
    scene.running("b-1", amounts(cpu=3_000), node="n1")
    scene.submit("a-1", request=amounts(cpu=4_000))
    scene.look()
    assert scene.promise == ("a-1", 600)
    scene.configure(nodes={"n2": Amounts(0, 2_000)})
    scene.submit("c-1", request=amounts(cpu=1_000), timeout=80_000)
    scene.look()
    assert scene.promise != ("a-1", 600)


def test_an_end_that_nobody_knows_makes_no_promise() -> None:
    scene = Scene(slots=1)
    scene.running("b-1", ends_in=None)
    scene.submit("a-1")
    scene.look()
    assert (scene.promise, scene.why("a-1")) == (None, "NoFreeSlot")


def test_an_overdue_run_does_not_count_as_ending() -> None:
    scene = Scene(slots=1)
    scene.running("b-1", ends_in=0)
    scene.submit("a-1")
    scene.look()
    assert scene.promise is None


def test_more_capacity_moves_a_promise_earlier() -> None:
    scene = Scene(slots=5, gpus=2)
    scene.running("b-1", amounts(gpus=1), ends_in=500)
    scene.running("c-1", amounts(gpus=1), ends_in=900)
    scene.submit("a-1", request=amounts(gpus=2))
    scene.look()
    assert scene.promise == ("a-1", 900)
    scene.configure(gpus=3)
    scene.look()
    assert scene.promise == ("a-1", 500)


def test_a_promise_moves_earlier_and_never_later() -> None:
    scene = Scene(slots=2, gpus=2)
    scene.running("b-1", amounts(gpus=1), ends_in=500)
    scene.running("c-1", amounts(gpus=1), ends_in=900)
    scene.submit("a-1", request=amounts(gpus=2))
    scene.look()
    assert scene.promise == ("a-1", 900)
    scene.running("c-1", amounts(gpus=1), ends_in=700)
    scene.look()
    assert scene.promise == ("a-1", 700)
    scene.running("c-1", amounts(gpus=1), ends_in=2_000)
    scene.look()
    assert scene.promise == ("a-1", 700)


def test_a_run_parked_by_a_later_start_stops_its_teams_less_urgent_runs() -> None:
    """a-2 lacks CPU alone, until b-1 takes the GPU that must stay free: then its share stops it, and a-3."""
    scene = Scene(slots=10, cpu=8, gpus=4)
    scene.running("a-1", amounts(gpus=1), ends_in=None)
    scene.running("z-1", amounts(cpu=8, gpus=1), ends_in=None)
    scene.submit("a-2", HIGH, amounts(cpu=8, gpus=1))
    scene.submit("a-3", DEFAULT)
    assert scene.why("a-2") == "InsufficientCPU"
    scene.submit("b-1", DEFAULT, amounts(gpus=1))
    assert scene.look() == ["b-1"]
    assert (scene.why("a-2"), scene.why("a-3")) == ("TeamShare", "BehindOwn")
    scene.finish("b-1")
    assert scene.look() == ["a-3"]


def test_a_start_that_brings_its_line_to_the_limit() -> None:
    """a-1 lacks a GPU, nobody can say until when; the next default run is beyond the limit, and parks a-4."""
    scene = Scene(slots=9, cpu=9, gpus=1, teams={"a": team(limit=Bounds(None, 1))})
    scene.running("z-1", amounts(gpus=1), ends_in=None)
    scene.submit("a-1", HIGH, amounts(gpus=1))
    scene.submit("a-2", DEFAULT, amounts(cpu=1), count=2)
    scene.submit("a-4", LOW)
    assert scene.look() == ["a-2"]
    assert (scene.why("a-3"), scene.why("a-4")) == ("TeamLimit", "BehindOwn")


def test_the_holders_share_does_not_park_its_teams_less_urgent_runs() -> None:
    scene = Scene(slots=10, cpu=8, gpus=2, headroom_percent=0)
    scene.running("a-1", amounts(cpu=4), ends_in=500)
    scene.running("z-1", amounts(gpus=1), ends_in=None)
    scene.submit("a-2", HIGH, amounts(gpus=2))  # nobody can say when
    scene.submit("a-3", DEFAULT, amounts(cpu=8))
    scene.look()
    assert scene.promise == ("a-3", 500)
    scene.configure(headroom_percent=10)
    scene.submit("b-1", DEFAULT, amounts(cpu=2), timeout=9_000)
    scene.submit("a-4", LOW, timeout=60)
    assert scene.look() == ["a-4"]
    assert scene.why("b-1") == "BehindReservation"


@pytest.mark.parametrize(
    ("ends_in", "started"), [(0, []), (1, ["a-3"]), (1_800, ["a-3"]), (1_801, []), (None, [])]
)
def test_a_run_of_the_holders_team_leaves_it_within_its_share_at_its_start(
    ends_in: int | None, started: list[str]
) -> None:
    """F is 2 of 8 slots. At S, 1,800, a-1 has ended or not; with a-3, the holder is second or third."""
    scene = Scene(slots=8, gpus=4, headroom_percent=100)
    scene.running("a-1", ends_in=ends_in)
    scene.running("b-1", amounts(gpus=4), ends_in=1_800)
    scene.submit("a-2", request=amounts(gpus=4))
    scene.pool.books.reservation = Reservation("a-2", DEFAULT, (START + 1_800) * SECOND)
    scene.submit("a-3", LOW, timeout=7_200)
    assert scene.look() == started
    assert scene.promise == ("a-2", 1_800)


def test_a_run_denied_for_its_holders_share_starts_once_that_comes_later() -> None:
    scene = Scene(slots=8, gpus=4, headroom_percent=100)
    scene.running("a-1", ends_in=2_000)
    scene.running("b-1", amounts(gpus=4), ends_in=1_800)
    scene.submit("a-2", request=amounts(gpus=4))
    scene.pool.books.reservation = Reservation("a-2", DEFAULT, (START + 1_800) * SECOND)
    scene.submit("a-3", LOW, timeout=7_200)
    assert scene.look() == []
    scene.running("b-1", amounts(gpus=4), ends_in=2_500)
    assert scene.look() == ["a-3"]


def test_while_a_run_is_overdue_the_next_moment_is_s() -> None:
    scene = Scene(slots=4, gpus=2)
    scene.running("b-1", amounts(gpus=1), ends_in=500)
    scene.running("c-1", amounts(gpus=1), ends_in=900)
    scene.configure(gpus=3)
    scene.submit("a-1", request=amounts(gpus=2))
    scene.look()
    assert scene.promise == ("a-1", 500)
    scene.submit("d-1", request=amounts(gpus=1), timeout=340)
    assert scene.look(500) == ["d-1"]  # 900 - 500 - 340 - 30 = 30 s to start in
    assert scene.promise == ("a-1", 500)


def test_a_critical_holder_and_an_own_run_that_is_not_critical() -> None:
    scene = Scene(slots=8, gpus=4, teams={"a": team(critical_limit=Bounds(1))})
    scene.running("b-1", amounts(gpus=4), ends_in=1_800)
    scene.submit("a-1", CRITICAL, amounts(gpus=4))
    scene.submit("a-2", timeout=60)
    assert scene.look() == ["a-2"]
    assert scene.promise == ("a-1", 1_800)


def test_an_own_critical_run_leaves_a_critical_holder_within_the_critical_limit() -> None:
    """a-1 came back before the holder in the line; it would end in time, but it is critical too."""
    scene = Scene(slots=8, gpus=4, teams={"a": team(critical_limit=Bounds(1))})
    scene.running("b-1", amounts(gpus=4), ends_in=1_800)
    scene.submit("a-1", CRITICAL, timeout=60)
    scene.submit("a-2", CRITICAL, amounts(gpus=4))
    first = scene.pool.books.waiting["a-1"]
    scene.pool.leave("a-1")
    scene.look()
    assert scene.promise == ("a-2", 1_800)
    scene.pool.wait(first)
    assert scene.look() == []
    assert (scene.promise, scene.why("a-1")) == (("a-2", 1_800), "BehindReservation")
    scene.configure(teams={})
    assert scene.look() == ["a-1"]


def test_nobody_need_look_again_for_a_window_of_the_only_team() -> None:
    scene = Scene(slots=4)
    scene.submit("blue-1")
    scene.look()
    scene.finish("blue-1")
    assert scene.plan().look_again is None


# -- reasons -----------------------------------------------------------------------------------------


def test_every_reason_of_the_pool_and_the_run() -> None:
    pool = Scene(slots=1).pool
    run = Run("a-1", "default", "a", DEFAULT, False, 1, 1, amounts(), 60)
    pool.wait(run)
    pool.retire()
    assert reason(pool) is WaitReason.POOL_MISSING
    pool.configure(PoolSettings(Bounds(1), on_hold=True))
    assert reason(pool) is WaitReason.POOL_ON_HOLD
    assert pool.decide(START * SECOND).starts == ()
    pool.configure(PoolSettings(Bounds(1), admitted=frozenset({"b"})))
    assert reason(pool) is WaitReason.TEAM_MISSING
    pool.configure(PoolSettings(Bounds(0)))
    assert reason(pool) is WaitReason.NEVER_FITS
    pool.configure(PoolSettings(Bounds(1)))
    pool.close_namespace("default", (START + 10) * SECOND)
    assert reason(pool) is WaitReason.QUOTA_EXCEEDED
    assert pool.decide(START * SECOND).look_again == (START + 10) * SECOND
    assert len(pool.decide((START + 10) * SECOND).starts) == 1
    pool.wait(run, not_before=(START + 40) * SECOND)
    assert reason(pool) is WaitReason.RETRY_BACKOFF
    assert pool.decide((START + 39) * SECOND).starts == ()
    assert len(pool.decide((START + 40) * SECOND).starts) == 1
    assert pool.why("a-1", START) is None
    assert pool.why("nobody", START) is None


def reason(pool: Pool) -> WaitReason | None:
    wait = pool.why("a-1", START * SECOND)
    return None if wait is None else wait.reason


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (Amounts(1), "NoFreeSlot"),
        (Amounts(0, 2), "InsufficientCPU"),
        (Amounts(0, 0, 2), "InsufficientMemory"),
        (Amounts(0, 0, 0, 2), "InsufficientGPU"),
    ],
)
def test_every_shortage(request_: Amounts, reason: str) -> None:
    scene = Scene(slots=2, cpu=2, memory=2, gpus=2)
    scene.running("b-1", Amounts(2, 1, 1, 1))
    scene.submit("a-1", request=request_)
    assert scene.look() == []
    assert scene.why("a-1") == reason


def test_the_reasons_are_the_closed_set_of_the_contract() -> None:
    assert {reason.value for reason in WaitReason} == {
        *("PoolMissing", "PoolOnHold", "TeamMissing", "QuotaExceeded", "RetryBackoff", "NeverFits"),
        *("TeamLimit", "CriticalLimit", "GuaranteedToOthers", "TeamShare", "BehindOwn", "NoFreeSlot"),
        *("InsufficientCPU", "InsufficientMemory", "InsufficientGPU", "NoNodeFits", "BehindReservation"),
        "HeldBack",
    }


def test_words_name_the_resource_that_is_short() -> None:
    owed = team(limit=Bounds(None, None, None, 2), critical_limit=Bounds(None, 1_000))
    scene = Scene(
        slots=9, cpu=9_000, gpus=4, teams={"a": owed, "g": team(guaranteed=amounts(9, 9_000, 0, 1))}
    )
    scene.running("a-1", amounts(gpus=2))
    scene.submit("a-2", request=amounts(gpus=1))
    assert scene.message("a-2") == "needs 1 GPU; the team may hold 2 and holds 2"
    scene.running("a-3", amounts(cpu=600), critical=True)
    scene.submit("a-4", CRITICAL, amounts(cpu=500))
    assert scene.message("a-4") == (
        "needs 500 millicores of CPU; critical runs of the team may hold 1000 and holds 600"
    )
    scene.running("b-1", amounts(gpus=1))
    scene.submit("b-2", request=amounts(gpus=1), count=3)
    assert scene.message("b-2").startswith(
        "the team holds 1 GPU, its share is 1; more only while 1 stay free"
    )
    assert scene.message("b-3") == "1 older run goes first, of its own team and class"
    assert scene.message("b-4") == "2 older runs go first, of its own team and class"
    scene.submit("g-1", request=amounts(gpus=1))
    scene.submit("c-1", request=amounts(gpus=1))
    assert scene.message("c-1") == "needs 1 GPU; 1 are free, 1 are kept for what others are guaranteed"


def test_words_for_runs_with_and_without_a_name() -> None:
    for name, shown in (("", "a-1"), ("nightly", "nightly")):
        scene = Scene(slots=4, cpu=8, teams={"a": team(limit=Bounds(None, 8))})
        scene.running("a-0", amounts(cpu=8))
        scene.submit("a-1", HIGH, amounts(cpu=4))
        scene.pool.wait(scene.pool.books.waiting["a-1"]._replace(name=name))
        scene.submit("a-2", LOW)
        assert scene.message("a-2") == (f"{shown}, a more urgent run of its own team, waits: TeamLimit")


# -- bad input ---------------------------------------------------------------------------------------


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


def test_how_many_wait() -> None:
    scene = Scene(slots=1)
    scene.submit("a-1", count=3)
    scene.submit("b-1", request=amounts(2), count=2)
    scene.look()
    assert scene.pool.waiting == 4


def test_unknown_runs_are_no_error() -> None:
    pool = Pool("pool", Scene().pool._policy)
    pool.leave("nobody")
    pool.leave("nobody", ended=START)
    pool.hold(Holding("a-1", "a", False, amounts(), None))
    pool.hold(Holding("a-1", "a", False, amounts(2), None))
    assert pool.books.held == Amounts(2)
    pool.leave("a-1")
    assert pool.books.held == Amounts()


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
