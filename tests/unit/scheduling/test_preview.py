"""What would become of a run that is not here yet; asking changes nothing."""

from agentjobs.scheduling.model import SECOND, Run
from agentjobs.scheduling.resources import Bounds
from tests.unit.scheduling.scene import DEFAULT, HIGH, Scene, amounts, team


def preview(scene: Scene, owner: str, weight: int = DEFAULT, slots: int = 1) -> tuple[int, str | None]:
    now = scene.now * SECOND
    run = Run("new", "default", owner, weight, False, now, 1_000_000, amounts(slots), 600)
    ahead, wait = scene.pool.preview(run, now)
    return ahead, None if wait is None else wait.reason.value


def test_what_would_start_and_what_would_wait() -> None:
    scene = Scene(slots=2, share_percent=100)
    assert preview(scene, "a") == (0, None)
    scene.running("a-1")
    scene.running("a-2")
    assert preview(scene, "a") == (0, "NoFreeSlot")
    assert preview(scene, "a", slots=3) == (0, "NeverFits")
    assert scene.pool.waiting == 0


def test_behind_its_own_it_is_told_why_the_first_of_its_line_waits() -> None:
    scene = Scene(slots=1)
    scene.running("z-1")
    scene.submit("a-1", count=2)
    assert preview(scene, "a") == (2, "NoFreeSlot")
    assert scene.pool.waiting == 2


def test_behind_a_more_urgent_run_of_its_own_that_is_parked() -> None:
    scene = Scene(slots=4, teams={"a": team(limit=Bounds(1))})
    scene.running("a-1")
    scene.submit("a-2", HIGH)
    assert preview(scene, "a") == (0, "BehindOwn")


def test_a_pool_on_hold_or_gone_says_so_first() -> None:
    scene = Scene(slots=1, on_hold=True)
    assert preview(scene, "a", slots=2) == (0, "PoolOnHold")
    scene.pool.retire()
    assert preview(scene, "a", slots=2) == (0, "PoolMissing")


def test_asking_for_teams_that_nobody_knows_leaves_no_trace() -> None:
    scene = Scene(slots=1)
    for number in range(100):
        assert preview(scene, f"team{number}") == (0, None)
    assert len(scene.pool.books.teams) <= 1


def test_a_team_that_has_settings_is_asked_about_as_what_it_is() -> None:
    """The free slot is kept for c; a may use it, as it is guaranteed one too."""
    scene = Scene(slots=3, gpus=2, teams={name: team(guaranteed=amounts(1, gpus=1)) for name in "ac"})
    scene.running("z-1", amounts(2, gpus=2), ends_in=None)
    scene.submit("c-1", request=amounts(gpus=1))
    scene.look()
    assert preview(scene, "a") == (0, None)
    assert preview(scene, "b") == (0, "GuaranteedToOthers")
