"""The port: the shipped policies, one of a user's own, and what holds whatever a policy does."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from agentjobs.scheduling.books import Books
from agentjobs.scheduling.fairshare import FairShare
from agentjobs.scheduling.model import SECOND, Reservation, Run, Start, Wait
from agentjobs.scheduling.policies import Fifo, Policy, PriorityOnly
from agentjobs.scheduling.resources import Amounts, Bounds
from tests.unit.scheduling.scene import CRITICAL, HIGH, LOW, Scene, amounts, team

PAGE = Path(__file__).parents[3] / "docs" / "policies.md"


def busy(policy: Policy, **settings: Any) -> Scene:
    """2 slots; a low run is the oldest, then a critical one of the same team, then a high one of another."""
    scene = Scene(policy, **{"slots": 2} | settings)
    scene.submit("blue-1", LOW, timeout=900)
    scene.now += 1
    scene.submit("blue-2", CRITICAL, timeout=300)
    scene.now += 1
    scene.submit("red-1", HIGH, timeout=60)
    return scene


@pytest.mark.parametrize(
    ("policy", "starts"),
    [
        (Fifo, ["blue-1", "blue-2"]),
        (PriorityOnly, ["blue-2", "red-1"]),
        (FairShare, ["blue-2", "red-1"]),
    ],
)
def test_who_goes_first(policy: Callable[[], Policy], starts: list[str]) -> None:
    scene = busy(policy())
    assert scene.look() == starts
    assert scene.look() == []


@pytest.mark.parametrize("policy", [Fifo, PriorityOnly])
def test_a_line_goes_on_with_its_next_run(policy: Callable[[], Policy]) -> None:
    scene = Scene(policy(), slots=4)
    scene.submit("blue-1", count=2)
    scene.submit("red-1", count=2)
    scene.submit("blue-3")
    assert scene.look() == ["blue-1", "blue-2", "red-1", "red-2"]


@pytest.mark.parametrize("policy", [Fifo, PriorityOnly])
def test_what_does_not_fit_blocks_the_rest(policy: Callable[[], Policy]) -> None:
    scene = busy(policy(), gpus=1)
    scene.running("gold-1", amounts(gpus=1))
    scene.submit("blue-0", CRITICAL, amounts(gpus=1))
    scene.pool.wait(scene.pool.books.waiting["blue-0"]._replace(created=0))
    assert scene.look() == []
    assert scene.why("blue-0") == "InsufficientGPU"
    assert scene.message("red-1") == "a run that goes before it does not fit"


@pytest.mark.parametrize("policy", [Fifo, PriorityOnly])
def test_a_node_that_fits_none_blocks_too(policy: Callable[[], Policy]) -> None:
    nodes = {name: Amounts(0, 2_000) for name in ("n1", "n2")}
    scene = busy(policy(), nodes=nodes)
    scene.submit("blue-0", CRITICAL, amounts(cpu=3_000))
    scene.pool.wait(scene.pool.books.waiting["blue-0"]._replace(created=0))
    assert scene.look() == []
    assert scene.why("blue-0") == "NoNodeFits"


@pytest.mark.parametrize("policy", [Fifo, PriorityOnly])
def test_a_line_at_its_limit_is_passed_over(policy: Callable[[], Policy]) -> None:
    scene = busy(policy(), slots=4, teams={"blue": team(limit=Bounds(1))})
    first = "blue-1" if policy is Fifo else "blue-2"
    assert scene.look() == [first, "red-1"]
    assert scene.why("blue-2" if policy is Fifo else "blue-1") == "TeamLimit"


# -- a policy of one's own -----------------------------------------------------------------------------


def test_the_policy_of_the_page_is_short_and_works() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 1
    found: dict[str, Any] = {}
    exec(compile(blocks[0], str(PAGE), "exec"), found)
    body = blocks[0][blocks[0].index("class ") :].strip().splitlines()
    assert len(body) <= 20
    scene = busy(found["ShortestFirst"]())
    assert scene.look() == ["red-1", "blue-2"]
    assert scene.why("blue-1") == "HeldBack"
    assert scene.message("blue-1") == "runs of less than 900 s go first"
    limited = busy(found["ShortestFirst"](), slots=4, teams={"blue": team(limit=Bounds(1))})
    assert limited.look() == ["red-1", "blue-2"]


class Proposes:
    """Proposes whatever a function of the books says."""

    name: ClassVar[str] = "odd"

    def __init__(self, propose: Callable[[Books], Iterator[Any]]) -> None:
        self._propose = propose

    def propose(self, books: Books, _now: int) -> Iterator[Start]:
        return self._propose(books)

    def why(self, _books: Books, _run: Run, _now: int) -> Wait | None:
        raise KeyError("why")


def raises(books: Books) -> Iterator[Start]:
    yield first(books)
    raise ValueError("no idea")


def same_for_ever(books: Books) -> Iterator[Start]:
    start = first(books)
    while True:
        yield start


def all_at_once(books: Books) -> Iterator[Start]:
    for run in list(books.waiting.values()):
        yield Start(run, 300)


def somebody_else(books: Books) -> Iterator[Start]:
    yield first(books)
    yield Start(next(iter(books.waiting.values()))._replace(uid="stranger", name="stranger"), 300)


def larger_than_life(books: Books) -> Iterator[Start]:
    """The same run, said to need nothing."""
    yield Start(next(iter(books.waiting.values()))._replace(request=Amounts()), 300)


def no_time_to_start(books: Books) -> Iterator[Start]:
    yield first(books)._replace(start_seconds=1)
    yield first(books)._replace(start_seconds=0)


def all_the_time_to_start(books: Books) -> Iterator[Start]:
    yield first(books)._replace(start_seconds=301)


def a_float_to_start(books: Books) -> Iterator[Any]:
    yield first(books)._replace(start_seconds=1)
    yield Start(first(books).run, 10.5)  # type: ignore[arg-type]


def nonsense(books: Books) -> Iterator[Any]:
    yield first(books)
    yield "blue-2"


def nothing_to_iterate(books: Books) -> Any:
    return 7


def a_reservation_for_nobody(books: Books) -> Iterator[Start]:
    books.reservation = Reservation("stranger", 0, 0)
    yield first(books)
    raise ValueError("done")


def first(books: Books) -> Start:
    return Start(next(iter(books.waiting.values())), 300)


@pytest.mark.parametrize(
    ("propose", "starts", "fault"),
    [
        (raises, 1, "policy odd failed: ValueError: no idea"),
        (same_for_ever, 1, "policy odd proposed blue-1, which does not wait"),
        (all_at_once, 2, "policy odd proposed red-1, which does not fit what is free"),
        (somebody_else, 1, "policy odd proposed stranger, which does not wait"),
        (larger_than_life, 0, "policy odd proposed blue-1, which does not wait"),
        (no_time_to_start, 1, "policy odd proposed blue-2 with a start time of 0 s; it must be 1 to 300"),
        (
            all_the_time_to_start,
            0,
            "policy odd proposed blue-1 with a start time of 301 s; it must be 1 to 300",
        ),
        (a_float_to_start, 1, "policy odd "),
        (nonsense, 1, "policy odd failed: "),
        (nothing_to_iterate, 0, "policy odd failed: TypeError: 'int' object is not iterable"),
        (a_reservation_for_nobody, 1, "policy odd failed: ValueError: done"),
    ],
)
def test_bounds_hold_whatever_a_policy_does(
    propose: Callable[[Books], Iterator[Any]], starts: int, fault: str
) -> None:
    scene = busy(Proposes(propose))
    plan = scene.pool.decide(scene.now * SECOND)
    assert (len(plan.starts), plan.reservation) == (starts, None)
    assert scene.pool.fault.startswith(fault)
    assert scene.pool.books.held.slots == starts
    waiting = next(iter(scene.pool.books.waiting))
    assert (scene.why(waiting), scene.message(waiting)) == ("HeldBack", scene.pool.fault)


def test_limits_hold_whatever_a_policy_does() -> None:
    owed = team(limit=Bounds(3), critical_limit=Bounds(0, 0, 0, 9))
    scene = Scene(Proposes(all_at_once), slots=9, teams={"blue": owed, "red": team(limit=Bounds(1))})
    scene.submit("red-1", count=2)
    assert len(scene.pool.decide(scene.now * SECOND).starts) == 1
    assert scene.pool.fault == "policy odd proposed red-2, which its team's limit stops: TeamLimit"


def test_nodes_hold_whatever_a_policy_does() -> None:
    nodes = {name: Amounts(0, 2_000) for name in ("n1", "n2")}
    scene = Scene(Proposes(all_at_once), nodes=nodes)
    scene.submit("red-1", request=amounts(cpu=3_000))
    assert scene.pool.decide(scene.now * SECOND).starts == ()
    assert scene.pool.fault == "policy odd proposed red-1, which does not fit any node that it may be on"


def test_a_policy_that_cannot_say_why_is_told_of_instead() -> None:
    scene = busy(Proposes(lambda _: iter(())))
    assert scene.look() == []
    assert scene.message("red-1") == "policy odd failed: KeyError: 'why'"


def test_a_fault_lasts_for_one_look() -> None:
    scene = busy(Proposes(raises))
    scene.pool.decide(scene.now * SECOND)
    scene.configure(on_hold=True)
    scene.pool.decide(scene.now * SECOND)
    assert scene.pool.fault == ""
