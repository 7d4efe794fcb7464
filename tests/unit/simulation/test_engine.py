"""Replays that a person can check by hand, and that the same always gives the same."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar, cast

import pytest

from agentjobs.apis.agentjob import Priority
from agentjobs.errors import PolicyError
from agentjobs.scheduling.books import Books
from agentjobs.scheduling.fairshare import FairShare
from agentjobs.scheduling.model import SECOND, PoolSettings, Run, Start, TeamSettings, Wait
from agentjobs.scheduling.policies import Fifo, Policy, PriorityOnly
from agentjobs.scheduling.resources import Amounts, Bounds
from agentjobs.simulation.engine import simulate
from agentjobs.simulation.files import opened
from agentjobs.simulation.report import as_json
from agentjobs.simulation.setup import Setup, sized_for
from agentjobs.simulation.tally import Result
from agentjobs.simulation.trace import TraceRun

DATA = Path(__file__).parents[3] / "benchmarks" / "data"
CRITICAL, DEFAULT, LOW = Priority.CRITICAL, Priority.DEFAULT, Priority.LOW


def run(
    team: str, at: int, seconds: int = 10, priority: Priority = DEFAULT, gpus: int = 0, timeout: int = 600
) -> TraceRun:
    return TraceRun(
        f"{team}-{at}", team, priority, at * SECOND, seconds, Amounts(1, 1000, 1024, gpus), timeout
    )


def setup(
    slots: int | None = 1, gpus: int | None = None, most: int | None = None, **teams: TeamSettings
) -> Setup:
    return Setup(PoolSettings(Bounds(slots, None, None, gpus), teams=teams), max_pending=most)


def waits(result: Result) -> dict[tuple[str, Priority], list[int]]:
    return {key: [wait // SECOND for wait in part.waits] for key, part in result.parts.items() if part.waits}


def test_one_slot_serves_by_class_then_the_reservation_then_who_was_served_longest_ago() -> None:
    runs = [run("a", 0), run("a", 1), run("a", 2), run("b", 3), run("a", 4, priority=CRITICAL)]
    # The critical run at 10. a's second has waited first, and holds the reservation: at 20. Then b, at 30.
    assert waits(simulate(runs, setup(), FairShare())) == {
        ("a", CRITICAL): [6],
        ("a", DEFAULT): [0, 19, 38],
        ("b", DEFAULT): [27],
    }
    assert waits(simulate(runs, setup(), Fifo())) == {
        ("a", DEFAULT): [0, 9, 18],
        ("b", DEFAULT): [27],
        ("a", CRITICAL): [36],
    }
    assert waits(simulate(runs, setup(), PriorityOnly())) == {
        ("a", CRITICAL): [6],
        ("a", DEFAULT): [0, 19, 28],
        ("b", DEFAULT): [37],
    }


def test_a_run_ends_at_its_timeout() -> None:
    result = simulate([run("a", 0, 1000, timeout=30), run("a", 1)], setup(), FairShare())
    assert waits(result) == {("a", DEFAULT): [0, 29]}
    assert result.span == 40 * SECOND


def test_an_end_makes_room_for_what_is_submitted_at_the_same_moment() -> None:
    result = simulate([run("a", 0), run("b", 10)], setup(), FairShare())
    assert waits(result) == {("a", DEFAULT): [0], ("b", DEFAULT): [0]}


def test_runs_beyond_the_number_that_may_wait_are_refused() -> None:
    result = simulate([run("a", 0) for _ in range(5)] + [run("b", 0)], setup(most=2), Fifo())
    # All are submitted before the first look: two of a may wait, one of b.
    assert {team: part.refused for (team, _), part in result.parts.items()} == {"a": 3, "b": 0}
    own = Setup(PoolSettings(Bounds(1)), max_pending=2, max_pending_of={"a": 4})
    assert simulate([run("a", 0) for _ in range(5)], own, Fifo()).parts["a", DEFAULT].refused == 1


def test_runs_that_never_fit_are_refused_and_hold_nobody_up() -> None:
    result = simulate([run("a", 0, gpus=3), run("a", 1)], setup(gpus=2), Fifo())
    part = result.parts["a", DEFAULT]
    assert (part.never_fits, list(part.waits)) == (1, [0])


def test_what_waits_for_ever_is_told_with_its_reason() -> None:
    settings = PoolSettings(Bounds(1), admitted=frozenset({"a"}))
    result = simulate([run("a", 0), run("b", 0)], Setup(settings), FairShare())
    assert result.parts["b", DEFAULT].left_waiting == 1
    assert result.reasons == {"TeamMissing": 1}
    on_hold = Setup(PoolSettings(Bounds(1), on_hold=True))
    assert simulate([run("a", 0)], on_hold, FairShare()).reasons == {"PoolOnHold": 1}


def test_utilisation_counts_from_the_first_submission_to_the_last() -> None:
    # 10 s of 20 with one of two slots and two of four GPUs held.
    result = simulate([run("a", 100, gpus=2), run("a", 120)], setup(2, 4), FairShare())
    assert result.utilisation == {"slots": 0.25, "gpu_count": 0.25}
    assert result.idle_while_waiting == 0


def test_idle_counts_free_slots_while_a_run_waits() -> None:
    # a holds the only GPU and one of two slots for 10 s; b waits for the GPU from 0 to 10.
    result = simulate([run("a", 0, gpus=1), run("b", 0, gpus=1)], setup(2, 1), FairShare())
    assert result.idle_while_waiting == 0.5


def test_jain_compares_what_teams_held_while_they_waited() -> None:
    # Both wait from 0 on: a holds the slot until 10, then b until 20; a waits no more when it holds it.
    runs = [run("a", 0), run("a", 0), run("b", 0), run("b", 0)]
    result = simulate(runs, setup(), FairShare())
    # a: waits from 0 to 20, holds 10 of them. b: waits from 0 to 30, holds 10 of them.
    assert result.shares == pytest.approx({"a": 1 / 2, "b": 1 / 3})
    assert result.jain == pytest.approx((5 / 6) ** 2 / (2 * (1 / 4 + 1 / 9)))
    heavier = simulate(runs, setup(a=TeamSettings(weight=2)), FairShare())
    assert heavier.shares["a"] == pytest.approx(result.shares["a"] / 2)


def test_instant_starts_are_counted_of_what_a_team_s_share_has_room_for() -> None:
    # 8 slots: the share is 2. b's third run is beyond it; its fourth comes when the first two have ended.
    runs = [*(run("b", 0, 100) for _ in range(3)), run("a", 1), run("b", 100)]
    result = simulate(runs, setup(8), FairShare())
    within = {team: (part.within_share, part.instant) for (team, _), part in result.parts.items()}
    assert within == {"b": (3, 3), "a": (1, 1)}
    # The same runs count where they are started late.
    result = simulate(runs, setup(8), _Late())
    within = {team: (part.within_share, part.instant) for (team, _), part in result.parts.items()}
    assert within == {"b": (3, 1), "a": (1, 0)}


def test_what_a_team_s_limits_stop_is_not_counted_as_within_its_share() -> None:
    # Those that a limit stops wait, and so does the last one, behind them.
    runs = [*(run("b", 0, 100, CRITICAL) for _ in range(2)), run("b", 0), run("b", 100, priority=CRITICAL)]

    def within(limits: TeamSettings) -> dict[str, tuple[int, int]]:
        parts = simulate(runs, setup(12, b=limits), FairShare()).parts
        return {key[1].value: (part.within_share, part.instant) for key, part in parts.items()}

    assert within(TeamSettings()) == {"critical": (3, 3), "default": (1, 1)}
    assert within(TeamSettings(limit=Bounds(1))) == {"critical": (2, 1), "default": (0, 0)}
    assert within(TeamSettings(critical_limit=Bounds(1))) == {"critical": (2, 1), "default": (1, 1)}


def test_starts_past_a_more_urgent_run_are_counted() -> None:
    # a's critical run wants both GPUs; b's low one ends before the promise and starts past it.
    runs = [
        run("a", 0, 500, gpus=1, timeout=600),
        run("a", 1, priority=CRITICAL, gpus=2),
        run("b", 2, priority=LOW, timeout=60),
    ]
    result = simulate(runs, setup(4, 2), FairShare())
    assert result.starts_past_urgent == 1
    assert result.promises == {"Kept": 1}
    assert waits(result)["a", CRITICAL] == [499]


class _Late:
    name: ClassVar[str] = "late"

    def propose(self, books: Books, now: int) -> Iterator[Start]:
        return Fifo().propose(books, now) if now >= 100 * SECOND else iter(())

    def why(self, books: Books, run: Run, now: int) -> Wait | None:
        return Fifo().why(books, run, now)


class _Raises(_Late):
    name: ClassVar[str] = "raises"

    def propose(self, *_: object) -> Iterator[Start]:
        raise LookupError("no idea")


class _Impatient(_Late):
    name: ClassVar[str] = "impatient"

    def propose(self, books: Books, now: int) -> Iterator[Start]:
        books.look_again = now
        return iter(())


class _Mumbles(_Late):
    name: ClassVar[str] = "mumbles"

    def propose(self, *_: object) -> Iterator[Start]:
        return iter(())

    def why(self, *_: object) -> Wait | None:
        return cast("Wait", "because")


class _Silent(_Mumbles):
    name: ClassVar[str] = "silent"

    def why(self, *_: object) -> Wait | None:
        return None


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (_Raises, "policy raises failed: LookupError: no idea"),
        (_Impatient, "policy impatient asked to look again at 0; it must be whole microseconds after 0"),
        (_Mumbles, "policy mumbles said 'because', which is no Wait"),
    ],
)
def test_a_policy_that_fails_ends_the_replay(policy: Callable[[], Policy], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        simulate([run("a", 0)], setup(), policy())


def test_what_a_policy_leaves_for_ever_without_a_reason_is_told() -> None:
    assert simulate([run("a", 0), run("a", 5)], setup(), _Silent()).reasons == {"HeldBack": 2}


@pytest.mark.parametrize("name", ["helios", "philly"])
def test_the_same_trace_gives_the_same_result_and_no_promise_is_broken_without_a_cause(name: str) -> None:
    with opened(DATA / f"{name}-15k.csv.gz") as trace:
        runs = [each for _, each in zip(range(1500), trace.runs, strict=False)]
    pool = Setup(PoolSettings(sized_for(runs, 130)))
    first, again = (as_json(simulate(runs, pool, FairShare()), name, "", Bounds()) for _ in range(2))
    assert first == again
    assert first["all"]["runs"] == len(runs)
    assert "Unexplained" not in first["promises"]["broken"]


def test_a_pool_that_is_sized_for_a_trace_is_never_smaller_than_its_largest_run() -> None:
    assert sized_for([]) == Bounds()
    assert sized_for([run("a", 0, 90, gpus=4), run("a", 100, 0)], 90) == Bounds(1, 1000, None, 4)
    assert sized_for([run("a", 0, 900, timeout=600), run("a", 100, 0)], 50) == Bounds(12, 12_000, None, None)
