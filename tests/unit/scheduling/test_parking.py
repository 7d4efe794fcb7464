"""Parking (rule 6): what stops a run stops its team's less urgent ones too."""

from agentjobs.scheduling.resources import Bounds
from tests.unit.scheduling.scene import CRITICAL, DEFAULT, HIGH, LOW, Scene, amounts, team


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
