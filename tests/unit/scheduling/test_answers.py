"""What a policy answers when it is asked why a run waits, and what it may not."""

from typing import Any, NoReturn, cast

import pytest

from agentjobs.scheduling.books import Books
from agentjobs.scheduling.model import Reservation, Wait, WaitReason
from tests.unit.scheduling.odd import NOW, Odd, UnspeakableError, busy


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("because", "'because'"),
        (7, "7"),
        (("a", "b"), "('a', 'b')"),
        (UnspeakableError(), "a UnspeakableError"),
        (
            Wait(cast("WaitReason", "HeldBack"), "x"),
            "Wait(reason='HeldBack', message='x', hole_seconds=None)",
        ),
        (Wait(WaitReason.HELD_BACK, cast("str", None)), "Wait("),
        (Wait(WaitReason.HELD_BACK, "\0\ud800"), "Wait("),
        (Wait(WaitReason.HELD_BACK, "x", cast("int", "y")), "Wait("),
        (Wait(WaitReason.HELD_BACK, "x", True), "Wait("),
        (Wait(WaitReason.HELD_BACK, "x", cast("int", 1.5)), "Wait("),
    ],
)
def test_an_answer_that_is_none_is_told_of_instead(said: Any, shown: str) -> None:
    scene = busy(Odd(why=lambda _: said))
    assert scene.look() == []
    wait = scene.pool.why("red-1", NOW)
    assert wait is not None
    assert wait.reason is WaitReason.HELD_BACK
    assert wait.message.startswith(f"policy odd said {shown}")
    assert wait.message.endswith(", which is no Wait")
    assert wait.message.isprintable()
    assert scene.pool.fault == wait.message


@pytest.mark.parametrize("error", [KeyError("why"), SystemExit("why"), UnspeakableError()])
def test_a_policy_that_cannot_say_why_is_told_of_instead(error: BaseException) -> None:
    def why(_: Books) -> NoReturn:
        raise error

    scene = busy(Odd(why=why))
    assert scene.look() == []
    assert scene.message("red-1").startswith(f"policy odd failed: {type(error).__name__}")
    assert scene.look() == []  # it is asked anew


@pytest.mark.parametrize("hole", [None, 30])
def test_an_answer_is_handed_on(hole: int | None) -> None:
    said = Wait(WaitReason.BEHIND_RESERVATION, "würde stören ≤ 30", hole)
    scene = busy(Odd(why=lambda _: said))
    assert scene.look() == []
    assert scene.pool.why("red-1", NOW) == said
    assert scene.pool.fault == ""


def test_asking_why_sets_nothing() -> None:
    def why(books: Books) -> Wait:
        books.reservation, books.look_again = Reservation("stranger", 0, 0), 1
        return Wait(WaitReason.HELD_BACK, "x")

    scene = busy(Odd(why=why))
    assert scene.message("red-1") == "x"
    assert (scene.pool.books.reservation, scene.pool.books.look_again) == (None, None)
