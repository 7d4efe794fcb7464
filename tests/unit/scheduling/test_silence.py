"""A policy that gives no reason: what the pool says then, and that it does not say that a run would start."""

from collections.abc import Iterator
from typing import ClassVar

import pytest

from agentjobs.scheduling.books import Books
from agentjobs.scheduling.fairshare import FairShare
from agentjobs.scheduling.model import SECOND, Holding, Run, Start, Wait, WaitReason
from agentjobs.scheduling.resources import Bounds
from tests.unit.scheduling.scene import DEFAULT, Scene, amounts, team

SILENT = Wait(WaitReason.HELD_BACK, "policy silent gives no reason")


class Silent:
    """Starts nothing before a time, then the oldest run that has room; never says why."""

    name: ClassVar[str] = "silent"

    def __init__(self, since: int = 0) -> None:
        self._since = since * SECOND

    def propose(self, books: Books, now: int) -> Iterator[Start]:
        for run in list(books.waiting.values()):
            if now >= self._since and books.has_room(run.request):
                yield Start(run, 300)

    def why(self, *_: object) -> None:
        return None


class Never(Silent):
    def __init__(self) -> None:
        super().__init__(1 << 40)


def why(scene: Scene, uid: str, later: int = 0) -> Wait | None:
    return scene.pool.why(uid, scene.now * SECOND + later)


def preview(scene: Scene, owner: str, later: int = 0) -> Wait | None:
    run = Run("new", "d", owner, DEFAULT, False, scene.now * SECOND, 1_000, amounts(), 600)
    return scene.pool.preview(run, scene.now * SECOND + later)[1]


def test_a_run_that_the_last_look_left_in_line_is_told_that_no_reason_is_given() -> None:
    scene = Scene(Never(), slots=2)
    scene.submit("blue-1")
    assert why(scene, "blue-1") is None  # no look has left it
    assert scene.look() == []
    assert why(scene, "blue-1") == why(scene, "blue-1", 10**12) == SILENT
    assert scene.pool.fault == ""


def test_what_no_policy_can_pass_is_a_reason_of_its_own() -> None:
    scene = Scene(Silent(), slots=3, teams={"blue": team(limit=Bounds(1))})
    scene.submit("blue-1")
    scene.submit("red-1", count=3)
    assert scene.look() == ["blue-1", "red-1", "red-2"]
    scene.submit("blue-2")
    assert (scene.why("blue-2"), scene.why("red-3")) == ("TeamLimit", "NoFreeSlot")
    assert scene.message("red-3") == "needs 1 slot; 3 of 3 are held"


@pytest.mark.parametrize("change", ["submit", "withdraw", "end", "remember", "configure", "close"])
def test_after_any_change_it_may_start_at_the_next_look(change: str) -> None:
    scene = Scene(Never(), slots=3)
    scene.running("red-1")
    scene.submit("blue-1")
    scene.submit("gold-1")
    scene.look()
    assert why(scene, "blue-1") == SILENT
    match change:
        case "submit":
            scene.submit("blue-2")
        case "withdraw":
            scene.pool.leave("gold-1")
        case "end":
            scene.finish("red-1")
        case "remember":
            scene.pool.remember("red", ended=scene.now * SECOND)
        case "configure":
            scene.configure(slots=4)
        case "close":
            scene.pool.wait(scene.pool.books.waiting["gold-1"]._replace(namespace="other"))
            scene.look()
            scene.pool.close_namespace("other", 1 << 60)
    assert why(scene, "blue-1") is None
    scene.look()
    assert why(scene, "blue-1") == SILENT


def test_time_alone_may_change_what_starts() -> None:
    """A run that holds on beyond its latest end, and the moment for which the policy asked."""

    class Asks(Never):
        def propose(self, books: Books, now: int) -> Iterator[Start]:
            books.look_again = now + 5 * SECOND
            return iter(())

    scene = Scene(Asks(), slots=2)
    scene.submit("blue-1")
    scene.look()
    for asks in (why, preview):
        assert [asks(scene, "blue-1", later) for later in (5 * SECOND - 1, 5 * SECOND)] == [SILENT, None]
    overdue = Scene(Never(), slots=4)
    overdue.running("red-1", ends_in=0)
    overdue.running("red-2", ends_in=7)
    overdue.submit("blue-1")
    overdue.look()
    assert [why(overdue, "blue-1", later) for later in (7 * SECOND - 1, 7 * SECOND)] == [SILENT, None]
    overdue.pool.hold(Holding("red-3", "red", False, amounts(), overdue.now * SECOND + 1))
    overdue.look()
    assert [why(overdue, "blue-1", later) for later in (0, 1)] == [SILENT, None]


def test_a_newcomer_would_not_start_where_runs_are_left_without_a_reason() -> None:
    scene = Scene(Never(), slots=2, teams={"blue": team(limit=Bounds(1))})
    assert preview(scene, "red") is None  # nothing speaks against it
    scene.submit("blue-1")
    scene.look()
    assert preview(scene, "red") == preview(scene, "red") == SILENT
    scene.running("blue-0")
    scene.look()
    wait = preview(scene, "blue")
    assert wait is not None
    assert wait.reason is WaitReason.TEAM_LIMIT
    scene.finish("blue-0")
    assert preview(scene, "red") is None  # the next look may start anything


def test_a_newcomer_would_start_where_every_run_that_is_left_has_its_reason() -> None:
    scene = Scene(FairShare(), slots=3, gpus=1)
    scene.running("red-1", amounts(gpus=1))
    scene.submit("blue-1", request=amounts(gpus=1), timeout=60)
    assert scene.look() == []
    assert preview(scene, "gold") is None
    assert preview(scene, "blue") is not None
