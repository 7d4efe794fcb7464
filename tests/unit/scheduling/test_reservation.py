"""Parking, the reservation and backfill (rules 6 and 7)."""

import pytest

from agentjobs.scheduling.model import SECOND, Holding, Reservation
from agentjobs.scheduling.resources import Bounds
from tests.unit.scheduling.scene import CRITICAL, DEFAULT, HIGH, LOW, START, Scene, amounts, team


def test_an_end_that_nobody_knows_makes_no_promise() -> None:
    scene = Scene(slots=1)
    scene.running("b-1", ends_in=None)
    scene.submit("a-1")
    scene.look()
    assert (scene.promise, scene.why("a-1")) == (None, "NoFreeSlot")


def test_what_ends_together_counts_together() -> None:
    """After b-1's end a-1 would take all there is; c-1 ends at the same moment, and leaves a GPU for d-1."""
    scene = Scene(slots=9, gpus=3, share_percent=100)
    scene.running("b-1", amounts(gpus=1), ends_in=600)
    scene.running("c-1", amounts(gpus=1), ends_in=600)
    scene.submit("a-1", request=amounts(gpus=2))
    scene.submit("d-1", request=amounts(gpus=1), timeout=9_000)
    assert scene.look() == ["d-1"]
    assert scene.promise == ("a-1", 600)


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


def test_where_nobody_can_say_when_any_more_the_promise_is_s() -> None:
    """b-1 is overdue, and the promise has passed: d-1 would take the slot that a-1 needs as well."""
    scene = Scene(slots=2, gpus=1)
    scene.running("b-1", amounts(gpus=1), ends_in=600)
    scene.submit("a-1", request=amounts(gpus=1))
    scene.look()
    scene.submit("d-1", timeout=1)
    assert scene.look(650) == []
    assert scene.why("d-1") == "BehindReservation"
    scene.configure(slots=3)
    assert scene.look() == ["d-1"]


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


@pytest.mark.parametrize(("ends_in", "longest"), [(50, None), (51, 1)])
def test_the_shortest_hole(ends_in: int, longest: int | None) -> None:
    scene = Scene(slots=3, gpus=1)
    scene.running("b-1", amounts(2, gpus=1), ends_in=ends_in)
    scene.submit("a-1", request=amounts(3, gpus=1))
    scene.submit("d-1", timeout=60)
    assert scene.look() == []
    wait = scene.pool.why("d-1", scene.now * SECOND)
    assert wait is not None
    assert (wait.reason.value, wait.hole_seconds) == ("BehindReservation", longest)


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


def test_a_look_that_gives_the_reservation_goes_on_with_others_of_its_class() -> None:
    scene = Scene(slots=3, gpus=1)
    scene.running("z-1", amounts(gpus=1))
    scene.submit("a-1", request=amounts(gpus=1))
    scene.submit("b-1", timeout=60)
    assert scene.look() == ["b-1"]
    assert scene.promise == ("a-1", 600)


def test_a_look_passes_over_a_run_parked_above_in_its_group() -> None:
    """a-2, HIGH, lacks a GPU that its share denies it; a-3 would be before b-3, which asks for the same."""
    scene = Scene(slots=20, gpus=4)
    scene.running("a-1", amounts(gpus=1))
    scene.running("b-1", amounts(gpus=2))
    scene.submit("a-2", HIGH, amounts(gpus=1))
    scene.submit("a-3", LOW)
    scene.submit("b-3", LOW)
    assert scene.look() == ["b-3"]
    assert (scene.why("a-2"), scene.why("a-3")) == ("TeamShare", "BehindOwn")


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


def test_nobody_need_look_again_for_a_window_of_the_only_team() -> None:
    scene = Scene(slots=4)
    scene.submit("blue-1")
    scene.look()
    scene.finish("blue-1")
    assert scene.plan().look_again is None


def test_the_next_look_is_at_the_first_moment_that_may_change_anything() -> None:
    """red's window ends an hour after its last run; blue-2 is in back-off."""
    scene = Scene(slots=4)
    scene.running("blue-1")
    scene.running("red-1")
    scene.submit("blue-2")
    scene.pool.wait(scene.pool.books.waiting["blue-2"]._replace(version=9), not_before=(START + 40) * SECOND)
    scene.finish("red-1")
    assert scene.plan().look_again == (START + 40) * SECOND
    scene.look(after=40)
    assert scene.plan().look_again == (START + 3_600) * SECOND


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


def test_a_run_parked_by_its_team_s_share_starts_once_the_run_above_it_holds_the_reservation() -> None:
    """t-10 lacks a GPU. Holding the reservation its share is waived, also where o-10 takes the headroom."""
    scene = Scene(slots=20, cpu=40, gpus=4)
    scene.running("g-1", amounts(gpus=4), 600)
    scene.running("t-1", amounts(cpu=10), 5000)
    scene.running("o-1", amounts(cpu=16), 5000)
    scene.running("o-2", amounts(cpu=8), 5000)
    scene.submit("t-10", CRITICAL, amounts(cpu=4, gpus=1))
    scene.submit("t-20", timeout=60)
    scene.submit("o-10", CRITICAL, amounts(cpu=8))
    assert scene.look() == []
    assert (scene.why("t-10"), scene.why("t-20")) == ("TeamShare", "BehindOwn")
    scene.finish("o-2")
    assert scene.look(after=1) == ["o-10", "t-20"]
    assert scene.promise == ("t-10", 600)


def test_a_run_parked_for_a_guarantee_starts_once_only_the_waived_share_is_left() -> None:
    scene = Scene(slots=20, cpu=40, gpus=4, teams={"q": team(guaranteed=amounts(1, 30))})
    scene.running("g-1", amounts(gpus=4), 600)
    scene.running("t-1", amounts(cpu=10), 5000)
    scene.submit("t-10", CRITICAL, amounts(cpu=4, gpus=1))
    assert scene.look() == []
    assert scene.promise == ("t-10", 600)
    scene.running("o-1", amounts(cpu=24), 5000)
    scene.submit("q-1", request=amounts(cpu=30))
    scene.submit("t-20", timeout=60)
    scene.look(after=1)
    assert (scene.why("t-10"), scene.why("t-20")) == ("GuaranteedToOthers", "BehindOwn")
    scene.finish("q-1")
    assert scene.look(after=1) == ["t-20"]
