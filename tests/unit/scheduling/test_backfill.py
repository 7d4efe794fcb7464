"""Who starts past the reservation (rule 7): beside it, or in the hole before it."""

import pytest

from agentjobs.scheduling.model import SECOND, Holding, Reservation
from agentjobs.scheduling.resources import Bounds
from tests.unit.scheduling.scene import CRITICAL, DEFAULT, HIGH, LOW, START, Scene, amounts, team


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


@pytest.mark.parametrize(("micros", "longest"), [(0, 549), (1, 550), (2, 550)])
def test_a_hole_begins_a_microsecond_after_the_last_start(micros: int, longest: int) -> None:
    """S is in 600 s and so many µs. Start time and grace take 50 s, and what is left is whole seconds."""
    scene = Scene(slots=3, gpus=1, share_percent=100)
    until = (START + 600) * SECOND + micros
    scene.pool.hold(Holding("b-1", "b", False, amounts(2, gpus=1), until))
    scene.submit("c-1", HIGH, timeout=60)
    assert scene.look() == ["c-1"]
    scene.finish("c-1")
    scene.submit("a-1", request=amounts(3, gpus=1))
    scene.look()
    for timeout in (longest + 1, longest):
        scene.submit("d-1", timeout=timeout)
        wait = scene.pool.why("d-1", scene.now * SECOND)
        assert (None if wait is None else wait.hole_seconds) == (longest if timeout > longest else None)
        assert scene.look() == ([] if timeout > longest else ["d-1"])
        scene.pool.leave("d-1")


@pytest.mark.parametrize(("ends_in", "started"), [(50, []), (51, ["d-1"])])
def test_the_shortest_hole(ends_in: int, started: list[str]) -> None:
    scene = Scene(slots=3, gpus=1)
    scene.running("b-1", amounts(2, gpus=1), ends_in=ends_in)
    scene.submit("a-1", request=amounts(3, gpus=1))
    scene.submit("d-1", timeout=1)
    assert scene.look() == started


@pytest.mark.parametrize(("ends_in", "longest"), [(79, None), (80, 30)])
def test_the_shortest_hole_on_offer_is_one_that_an_agentjob_may_ask_for(
    ends_in: int, longest: int | None
) -> None:
    scene = Scene(slots=3, gpus=1)
    scene.running("b-1", amounts(2, gpus=1), ends_in=ends_in)
    scene.submit("a-1", request=amounts(3, gpus=1))
    scene.submit("d-1", timeout=60)
    assert scene.look() == []
    wait = scene.pool.why("d-1", scene.now * SECOND)
    assert wait is not None
    assert (wait.reason.value, wait.hole_seconds) == ("BehindReservation", longest)
    assert ("timeoutSeconds" in wait.message) == (longest is not None)


def test_no_hole_is_on_offer_to_a_run_that_would_cost_the_holder_its_limit() -> None:
    scene = Scene(gpus=4, teams={"a": team(limit=Bounds(slots=2))})
    scene.running("a-0", ends_in=3_600)
    scene.running("b-0", amounts(gpus=1), ends_in=3_600)
    scene.submit("a-1", request=amounts(gpus=4))
    scene.submit("a-2", LOW, timeout=60)
    assert scene.look() == []
    wait = scene.pool.why("a-2", scene.now * SECOND)
    assert wait is not None
    assert (wait.reason.value, wait.hole_seconds) == ("BehindReservation", None)
    assert wait.message == "would leave too little of the team's limit to a-1, which holds the reservation"


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


def test_a_look_passes_over_a_run_that_would_cost_its_holder_the_reservation() -> None:
    """As in the worked example of own limits; b-3 asks for the same as a-3, and comes after it."""
    scene = Scene(slots=20, gpus=4, teams={"a": team(limit=Bounds(2))})
    scene.running("a-1", ends_in=3_600)
    scene.running("z-1", amounts(gpus=4), ends_in=3_600)
    scene.running("b-1", amounts(2), ends_in=3_600)
    scene.submit("a-2", HIGH, amounts(gpus=4))
    scene.submit("a-3", LOW, timeout=60)
    scene.submit("b-3", LOW, timeout=60)
    assert scene.look() == ["b-3"]
    assert scene.why("a-3") == "BehindReservation"


def test_a_head_that_came_to_the_front_while_it_had_no_room_starts_once_it_has() -> None:
    """c-1 holds the reservation until b-2's end; d-1 has room all the time, but takes too long."""
    scene = Scene(slots=9, cpu=8, share_percent=100)
    scene.running("b-1", amounts(cpu=2), ends_in=600)
    scene.running("b-2", amounts(cpu=5), ends_in=900)
    scene.submit("c-1", HIGH, amounts(cpu=8))
    scene.submit("d-1", request=amounts(cpu=1), timeout=9_000)
    scene.submit("a-1", request=amounts(cpu=4), timeout=60)
    scene.submit("a-2", request=amounts(cpu=3), timeout=60)
    assert scene.look() == []
    scene.finish("a-1")
    assert scene.look() == []
    scene.finish("b-1")
    assert scene.look() == ["a-2"]


def test_the_limit_of_another_team_than_the_holder_s_is_its_own_matter() -> None:
    scene = Scene(slots=8, gpus=4, teams={"b": team(limit=Bounds(1, None, None, 0))})
    scene.running("c-1", amounts(gpus=4), ends_in=1_800)
    scene.submit("a-1", request=amounts(gpus=4))
    scene.submit("b-1", timeout=7_200)
    assert scene.look() == ["b-1"]
    assert scene.promise == ("a-1", 1_800)
