"""The worked examples of docs/scheduling.md and the counterexamples behind the rules, with their numbers."""

import pytest

from agentjobs.scheduling.model import SECOND
from agentjobs.scheduling.resources import Bounds
from tests.unit.scheduling.scene import CRITICAL, DEFAULT, HIGH, LOW, Scene, amounts, team


def test_a_burst() -> None:
    scene = Scene(slots=16)
    scene.submit("blue-1", CRITICAL, count=40)
    assert len(scene.look()) == 16
    scene.submit("red-1", count=10)
    assert scene.look() == []
    scene.finish(*(f"blue-{number}" for number in range(1, 9)))  # free is 8
    started = scene.look()
    assert started == [*(f"blue-{number}" for number in range(17, 23)), "red-1", "red-2"]
    assert scene.why("blue-23") == "TeamShare"
    assert scene.message("blue-23").startswith(
        "the team holds 14 slots, its share is 4; more only while 2 stay"
    )


def test_the_last_slot_of_a_small_pool() -> None:
    scene = Scene(slots=4)
    scene.submit("blue-1", count=3)
    scene.look()
    scene.submit("blue-4")
    scene.submit("red-1")
    assert scene.look() == ["red-1"]
    assert scene.why("blue-4") == "TeamShare"


def test_a_large_run_among_small_ones() -> None:
    scene = Scene(slots=20, gpus=4)
    for number, name in enumerate("bcde"):
        scene.running(f"{name}-1", amounts(gpus=1), ends_in=600 + number)
    scene.submit("a-1", request=amounts(gpus=4), timeout=600)
    for name in "bcde":
        scene.submit(f"{name}-2", request=amounts(gpus=1), timeout=3600)
    assert scene.look() == []
    assert scene.promise == ("a-1", 603)
    scene.finish("b-1")
    assert scene.look() == []  # an hour long: it would delay the holder
    assert scene.why("b-2") == "BehindReservation"
    scene.submit("f-1", request=amounts(gpus=1), timeout=300)
    plan = scene.plan()
    assert [(start.run.uid, start.start_seconds) for start in plan.starts] == [("f-1", 603 - 300 - 30)]
    scene.now += 603
    scene.finish("c-1", "d-1", "e-1", "f-1")
    assert scene.look()[0] == "a-1"
    assert scene.pool.promises.outcomes == {"Kept": 1}


def test_the_order_does_not_count_the_run_itself() -> None:
    """With (U + d) / weight as the key the large run would come last for ever."""
    scene = Scene(slots=20, gpus=4)
    scene.running("b-1", amounts(gpus=1))
    scene.submit("b-2", request=amounts(gpus=1))
    scene.submit("a-1", request=amounts(gpus=3))
    assert scene.look() == ["a-1"]


def test_a_guarantee_under_pressure() -> None:
    scene = Scene(slots=4, teams={"a": team(guaranteed=amounts(2))})
    scene.running("b-1")
    scene.running("c-1")
    for name in "bc":
        scene.submit(f"{name}-2", CRITICAL)
    scene.submit("a-1", count=5)
    assert scene.why("b-2") == "GuaranteedToOthers"
    assert scene.look() == ["a-1", "a-2"]
    assert scene.why("b-2") == scene.why("a-3") == "TeamShare"  # the guarantee is used up, nothing is kept
    scene.finish("b-1")
    assert scene.look() == ["b-2"]
    scene.finish("a-1")
    assert scene.look() == ["a-3"]


def test_a_guarantee_that_only_sorts_would_be_starved_by_critical_runs() -> None:
    scene = Scene(slots=4, teams={"a": team(guaranteed=amounts(2))})
    for number in range(2):
        scene.running(f"b-{number}")
        scene.running(f"c-{number}")
    scene.submit("b-2", CRITICAL, count=50)
    scene.submit("c-2", CRITICAL, count=50)
    scene.submit("a-1", count=2)
    for ended in ("b-0", "c-0"):
        scene.finish(ended)
    assert scene.look() == ["a-1", "a-2"]


def test_parking_is_whole() -> None:
    limit = Bounds(None, 10_000, None, 2)
    scene = Scene(slots=20, cpu=100_000, gpus=8, teams={"a": team(limit=limit)})
    scene.running("a-1", amounts(cpu=1_000, gpus=2), ends_in=600)
    scene.submit("a-2", CRITICAL, amounts(cpu=8_000, gpus=2))
    scene.submit("a-3", DEFAULT, amounts(cpu=4_000), timeout=7_200)
    assert scene.look() == []
    assert (scene.why("a-2"), scene.why("a-3")) == ("TeamLimit", "BehindOwn")
    scene.finish("a-1")
    assert scene.look(600) == ["a-2"]


def test_a_critical_limit_parks_critical_runs_alone() -> None:
    scene = Scene(slots=8, teams={"a": team(critical_limit=Bounds(1))})
    scene.submit("a-1", CRITICAL, count=3)
    scene.submit("a-4", LOW)
    assert scene.look() == ["a-1", "a-4"]
    assert (scene.why("a-2"), scene.why("a-3")) == ("CriticalLimit", "BehindOwn")


def test_beside_the_reservation_same_team() -> None:
    scene = Scene(slots=4, gpus=4, teams={"a": team(limit=Bounds(2))})
    scene.running("a-1", ends_in=1_800)
    scene.running("b-1", amounts(gpus=4), ends_in=1_800)
    scene.submit("a-2", request=amounts(gpus=4))
    scene.submit("a-3", LOW, timeout=7_200)
    assert scene.look() == []
    assert scene.promise == ("a-2", 1_800)
    assert scene.why("a-3") == "BehindReservation"


def test_beside_the_reservation_other_teams() -> None:
    scene = Scene(slots=8, gpus=4)
    scene.running("b-1", amounts(gpus=4), ends_in=1_800)
    scene.submit("a-1", request=amounts(gpus=4))
    scene.submit("c-1", LOW, timeout=80_000)
    plan = scene.plan()
    assert [(start.run.uid, start.start_seconds, start.backfill) for start in plan.starts] == [
        ("c-1", 300, False)
    ]


def test_a_guarantee_behind_a_reservation_would_be_a_deadlock() -> None:
    scene = Scene(slots=1, teams={"a": team(guaranteed=amounts(1))})
    scene.running("c-1", ends_in=600)
    scene.submit("b-1", CRITICAL)
    scene.look()
    assert scene.promise == ("b-1", 600)
    scene.submit("a-1", DEFAULT, timeout=6_000)
    scene.finish("c-1")
    assert scene.look() == ["a-1"]
    assert scene.look(1_000) == []
    scene.finish("a-1")
    assert scene.look() == ["b-1"]
    assert scene.pool.promises.outcomes == {"GuaranteeDemand": 1}


def test_own_limits_and_the_reservation() -> None:
    scene = Scene(slots=8, gpus=4, teams={"a": team(limit=Bounds(2))})
    scene.running("a-1", ends_in=10_000)
    scene.running("b-1", amounts(gpus=1), ends_in=3_600)
    scene.submit("a-2", request=amounts(gpus=4))
    scene.submit("a-3", LOW, timeout=60)
    assert scene.look() == []
    assert scene.promise == ("a-2", 3_600)
    assert scene.why("a-3") == "BehindReservation"


def test_a_promise_is_sticky() -> None:
    """A reservation derived anew at every look would hand it to whoever is first then."""
    scene = Scene(slots=2, gpus=2)
    scene.running("c-1", amounts(gpus=2), ends_in=900)
    scene.submit("a-1", request=amounts(gpus=2))
    scene.look()
    scene.submit("b-1", request=amounts(gpus=2))
    scene.pool.remember("a", served=scene.now * SECOND)  # b comes first now
    scene.look()
    assert scene.promise == ("a-1", 900)
    scene.finish("c-1")
    assert scene.look() == ["a-1"]


def test_a_more_urgent_class_takes_the_reservation_over_and_the_cause_is_named() -> None:
    scene = Scene(slots=1, share_percent=100)
    scene.running("c-1", ends_in=900)
    scene.submit("a-1")
    scene.look()
    scene.submit("b-1", HIGH, timeout=60)
    scene.look()
    assert scene.promise == ("b-1", 900)
    scene.finish("c-1")
    assert scene.look(900) == ["b-1"]
    scene.finish("b-1")
    assert scene.look(60) == ["a-1"]
    assert scene.pool.promises.outcomes == {"Kept": 1, "MoreUrgentClass": 1}


@pytest.mark.parametrize(("timeout", "seconds"), [(351, None), (350, 20), (340, 30), (60, 300)])
def test_a_hole_gives_a_run_only_the_start_time_it_leaves(timeout: int, seconds: int | None) -> None:
    scene = Scene(slots=2, gpus=2)
    scene.running("b-1", amounts(gpus=1), ends_in=400)
    scene.submit("a-1", request=amounts(gpus=2), timeout=600)
    scene.look()
    scene.submit("c-1", request=amounts(gpus=1), timeout=timeout)
    starts = scene.plan().starts
    if seconds is None:
        assert starts == ()
        assert "timeoutSeconds ≤ 350" in scene.message("c-1")
    else:
        assert [(start.start_seconds, start.backfill) for start in starts] == [(seconds, True)]


def test_one_user_of_the_gpus_bars_nobody_from_the_slots() -> None:
    """Losing the last GPU must not stop runs without one."""
    scene = Scene(slots=4, gpus=2)
    scene.running("a-1", amounts(gpus=2))
    scene.configure(gpus=0)
    scene.submit("b-1")
    assert scene.look() == ["b-1"]


def test_what_a_start_frees_of_a_guarantee_lets_a_more_urgent_run_start() -> None:
    """A keeps 1 + 3 GPUs. Once its low run holds one, its second run is beyond the guarantee: 2 are free."""
    guaranteed = amounts(10, cpu=10, gpus=4)
    scene = Scene(slots=10, cpu=10, gpus=6, share_percent=100, teams={"a": team(guaranteed=guaranteed)})
    scene.running("d-1", amounts(cpu=8, gpus=1))
    scene.submit("a-1", DEFAULT, amounts(cpu=5, gpus=1))
    scene.submit("a-2", DEFAULT, amounts(cpu=1, gpus=3))
    scene.submit("a-3", LOW, amounts(cpu=1, gpus=1))
    scene.submit("b-1", HIGH, amounts(gpus=2))
    assert scene.look() == ["a-3", "b-1"]
