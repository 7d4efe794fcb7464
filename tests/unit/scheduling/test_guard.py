"""What holds whatever a policy proposes, sets, raises or lacks: the pool stands, and a sentence says why."""

from asyncio import CancelledError
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, cast

import pytest

from agentjobs.scheduling.books import Books
from agentjobs.scheduling.guard import HORIZON
from agentjobs.scheduling.model import Reservation, Start
from agentjobs.scheduling.policies import Policy
from agentjobs.scheduling.resources import Amounts, Bounds
from tests.unit.scheduling.odd import (
    NOW,
    Ashamed,
    Blank,
    Nameless,
    Numbered,
    Odd,
    UnspeakableError,
    all_at_once,
    busy,
    fails,
    first,
    larger_than_life,
    one,
    reserves,
    same_for_ever,
    sets,
    somebody_else,
    yields,
)
from tests.unit.scheduling.scene import HIGH, LOW, Scene, amounts, team

WORDS = "whole microseconds after 1000000000000"


@pytest.mark.parametrize(
    ("propose", "starts", "fault"),
    [
        # what is proposed
        (lambda _: None, 0, "proposed None, which is no iterator of Starts"),
        (lambda _: 7, 0, "proposed 7, which is no iterator of Starts"),
        (yields("blue-2"), 1, "proposed 'blue-2', which is no Start"),
        (yields(None), 1, "proposed None, which is no Start"),
        (yields(UnspeakableError()), 1, "proposed a UnspeakableError, which is no Start"),
        (yields(Start("blue-2", 300)), 1, "proposed 'blue-2', which is no Run"),  # type: ignore[arg-type]
        (same_for_ever, 1, "proposed blue-1, which does not wait"),
        (somebody_else, 1, "proposed a\\nstranger, which does not wait"),
        (larger_than_life, 0, "proposed blue-1, which does not wait"),
        (all_at_once, 2, "proposed red-1, which does not fit what is free"),
        (one(start_seconds=0), 1, "proposed blue-2 with a start time of 0 s; it must be 1 to 300"),
        (one(start_seconds=301), 1, "proposed blue-2 with a start time of 301 s; it must be 1 to 300"),
        (one(start_seconds=10.5), 1, "proposed blue-2 with a start time of 10.5 s; it must be 1 to 300"),
        (one(start_seconds=True), 1, "proposed blue-2 with a start time of True s; it must be 1 to 300"),
        (one(avoid_node=["n1"]), 1, "proposed blue-2 with ['n1'] as the node to avoid, which is no name"),
        (
            one(avoid_node="\ud800"),
            1,
            "proposed blue-2 with '\\ud800' as the node to avoid, which is no name",
        ),
        (one(backfill="no"), 1, "proposed blue-2; backfill and guaranteed must be True or False"),
        (one(guaranteed=0), 1, "proposed blue-2; backfill and guaranteed must be True or False"),
        # what is raised
        (fails(ValueError("no idea")), 1, "failed: ValueError: no idea"),
        (fails(SystemExit("bye")), 1, "failed: SystemExit: bye"),
        (fails(SystemExit()), 1, "failed: SystemExit"),
        (fails(UnspeakableError()), 1, "failed: UnspeakableError: it cannot say what"),
        (fails(ValueError("two\nlines \ud800")), 1, "failed: ValueError: two\\nlines \\ud800"),
        (fails(ValueError("x" * 200)), 1, f"failed: ValueError: {'x' * 200}"),
        (fails(ValueError("x" * 201)), 1, f"failed: ValueError: {'x' * 200}…"),
        # what is set; compiled, the books themselves refuse what is of another type
        (sets("reservation", lambda _: "red-1"), 1, ""),
        (sets("look_again", lambda _: "soon"), 1, ""),
        (sets("look_again", lambda _: NOW + 0.5), 1, ""),
        (sets("look_again", lambda _: NOW), 1, f"asked to look again at {NOW}; it must be {WORDS}"),
        (sets("look_again", lambda _: 1), 1, f"asked to look again at 1; it must be {WORDS}"),
        (sets("look_again", lambda _: True), 1, f"asked to look again at True; it must be {WORDS}"),
        (
            sets("look_again", lambda _: NOW + HORIZON + 1),
            1,
            f"asked to look again at {NOW + HORIZON + 1}; it must be {WORDS}",
        ),
        (reserves(uid="stranger"), 1, "reserved for stranger of class weight 20, which does not wait"),
        (
            reserves(uid="blue-1", weight=LOW),
            1,
            "reserved for blue-1 of class weight 40, which does not wait",
        ),
        (reserves(weight=LOW), 1, "reserved for red-1 of class weight 40, which does not wait"),
        (reserves(uid=["red-1"]), 1, "reserved Reservation(uid=['red-1'], "),
        (reserves(weight="high"), 1, "reserved Reservation(uid='red-1', weight='high', "),
        (reserves(before="soon"), 1, "reserved Reservation(uid='red-1', weight=20, before='soon', "),
        (reserves(before=-1), 1, "reserved Reservation("),
        (reserves(before=NOW + HORIZON + 1), 1, "reserved Reservation("),
        (reserves(node=7), 1, "reserved Reservation("),
    ],
)
def test_bounds_hold_whatever_a_policy_does(
    propose: Callable[[Books], Iterator[Any]], starts: int, fault: str
) -> None:
    scene = busy(Odd(propose))
    plan = scene.pool.decide(NOW)
    assert (len(plan.starts), plan.reservation, plan.look_again) == (starts, None, None)
    assert scene.pool.fault.startswith(f"policy odd {fault}")
    assert fault.startswith("reserved Reservation(") or not fault or scene.pool.fault == f"policy odd {fault}"
    assert scene.pool.fault.isprintable()
    assert scene.pool.books.held.slots == starts
    waiting = next(iter(scene.pool.books.waiting))
    assert (scene.why(waiting), scene.message(waiting)) == ("HeldBack", scene.pool.fault)


@pytest.mark.parametrize("error", [KeyboardInterrupt, CancelledError])
@pytest.mark.parametrize("where", ["propose", "why"])
def test_what_is_to_end_the_process_leaves(error: type[BaseException], where: str) -> None:
    def ends(_: Books) -> NoReturn:
        raise error

    scene = busy(Odd(**{where: ends}))
    with pytest.raises(error):
        scene.pool.why("red-1", NOW) if where == "why" else scene.pool.decide(NOW)


def test_limits_hold_whatever_a_policy_does() -> None:
    owed = team(limit=Bounds(3), critical_limit=Bounds(0, 0, 0, 9))
    scene = Scene(Odd(all_at_once), slots=9, teams={"blue": owed, "red": team(limit=Bounds(1))})
    scene.submit("red-1", count=2)
    assert len(scene.pool.decide(NOW).starts) == 1
    assert scene.pool.fault == "policy odd proposed red-2, which its team's limit stops: TeamLimit"


def test_nodes_hold_whatever_a_policy_does() -> None:
    nodes = {name: Amounts(0, 2_000) for name in ("n1", "n2")}
    scene = Scene(Odd(all_at_once), nodes=nodes)
    scene.submit("red-1", request=amounts(cpu=3_000))
    assert scene.pool.decide(NOW).starts == ()
    assert scene.pool.fault == "policy odd proposed red-1, which does not fit any node that it may be on"


@pytest.mark.parametrize("policy", [Nameless(), Ashamed(), Numbered(), Blank()])
def test_a_policy_without_a_name_goes_by_its_class(policy: Any) -> None:
    scene = busy(policy)
    assert scene.pool.decide(NOW).starts == ()
    assert scene.pool.fault == f"policy {type(policy).__name__} failed: ValueError: no idea"


def test_what_a_policy_lacks_is_told() -> None:
    scene = busy(cast("Policy", 7))
    assert scene.pool.decide(NOW).starts == ()
    assert scene.pool.fault == "policy int failed: AttributeError: 'int' object has no attribute 'propose'"


def test_a_fault_lasts_for_one_look() -> None:
    scene = busy(Odd(fails(ValueError())))
    scene.pool.decide(NOW)
    scene.configure(on_hold=True)
    scene.pool.decide(NOW)
    assert scene.pool.fault == ""


def test_the_first_fault_of_a_look_is_told() -> None:
    def propose(books: Books) -> Iterator[Start]:
        books.reservation = Reservation("stranger", 0, 0)
        books.look_again = 1
        yield first(books)
        raise ValueError("done")

    scene = busy(Odd(propose))
    plan = scene.pool.decide(NOW)
    assert (len(plan.starts), plan.reservation, plan.look_again) == (1, None, None)
    assert scene.pool.fault == "policy odd failed: ValueError: done"


# -- what a policy sets, and may -----------------------------------------------------------------------


def test_a_reservation_and_a_time_to_look_again_are_taken_and_stay() -> None:
    held = Reservation("red-1", HIGH, NOW + HORIZON, "n1")

    def propose(books: Books) -> Iterator[Start]:
        if not books.holdings:
            books.reservation, books.look_again = held, NOW + 10
            yield first(books)

    scene = busy(Odd(propose))
    for now in (NOW, NOW + 9):
        plan = scene.pool.decide(now)
        assert (scene.pool.fault, plan.reservation, plan.look_again) == ("", held, NOW + 10)
    # It has passed: that the policy left it there is no fault.
    assert scene.pool.decide(NOW + 10)[1:] == (held, None)
    assert scene.pool.fault == ""
    scene.pool.leave("red-1")
    assert scene.pool.decide(NOW + 11)[1:] == (None, None)
    assert scene.pool.fault == ""


def test_the_least_and_the_most_that_may_be_set() -> None:
    for before, look in ((0, NOW + 1), (NOW + HORIZON, NOW + HORIZON)):
        held = Reservation("red-1", HIGH, before)

        def propose(books: Books, held: Reservation = held, look: int = look) -> Iterator[Start]:
            books.reservation, books.look_again = held, look
            return iter((first(books)._replace(start_seconds=1, avoid_node="n1", backfill=True),))

        scene = busy(Odd(propose))
        plan = scene.pool.decide(NOW)
        assert (scene.pool.fault, len(plan.starts)) == ("", 1)
        assert plan[1:] == (held, look)


def test_a_pool_on_hold_is_not_looked_at_again_for_its_policy() -> None:
    scene = busy(Odd(sets("look_again", lambda _: NOW + 10)))
    assert scene.pool.decide(NOW).look_again == NOW + 10
    scene.configure(on_hold=True)
    assert scene.pool.decide(NOW + 1).look_again is None
    assert scene.pool.decide(NOW + 10).look_again is None
