"""The operator with a policy that is wrong: it stands, other pools go on, and runs are told in a sentence."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import pytest

from agentjobs.admission.forecast import forecast
from agentjobs.scheduling.books import Books
from agentjobs.scheduling.fairshare import FairShare
from agentjobs.scheduling.model import Reservation, Run, Start, Wait, WaitReason
from agentjobs.scheduling.policies import Policy
from agentjobs.scheduling.resources import Amounts
from tests.unit.cluster.virtual import in_virtual_time
from tests.unit.controller.harness import Cluster, clock
from tests.unit.scheduling.odd import Odd


def odd_and_good(odd: Policy) -> Callable[[], Policy]:
    """Make the odd policy for the first pool that there is, and ours for every other."""
    policies = iter([odd])
    return lambda: next(policies, None) or FairShare()


def asks_for_the_past(books: Books) -> Iterator[Start]:
    books.look_again = clock() - 1
    return iter(())


def exits(_: Books) -> NoReturn:
    raise SystemExit("bye")


def reserves_for_ever(books: Books) -> Iterator[Start]:
    for uid, run in books.waiting.items():
        books.reservation = Reservation(uid, run.weight, 10**30)
    return iter(())


@pytest.mark.parametrize(
    ("propose", "why", "message"),
    [
        (None, None, "policy odd gives no reason"),
        (None, "because", "policy odd said 'because', which is no Wait"),
        (None, Wait("Because", "x"), "policy odd said Wait(reason='Because', "),  # type: ignore[arg-type]
        (None, Wait(WaitReason.HELD_BACK, "\ud800"), "policy odd said Wait("),
        (asks_for_the_past, None, "policy odd asked to look again at "),
        (reserves_for_ever, None, "policy odd reserved Reservation("),
        (exits, None, "policy odd failed: SystemExit: bye"),
        (lambda _: None, None, "policy odd proposed None, which is no iterator of Starts"),
    ],
)
@in_virtual_time
async def test_the_operator_stands_and_says_what_was_wrong(
    propose: Any, why: Any, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster()
    cluster.pool("other", maxConcurrency=1)
    cluster.make_policy = odd_and_good(Odd(propose, lambda _: why))
    async with cluster.operator():
        pool = cluster.loop.state.pool("default")
        looks = _counted(pool)
        cluster.submit("blue-0")
        cluster.submit("blue-1")
        cluster.submit("red-1", pool="other")
        await asyncio.sleep(5)
        assert cluster.status("blue-1")["reason"] == "HeldBack"
        assert cluster.status("blue-1")["message"].startswith(message)
        assert cluster.status("red-1")["phase"] == "SCHEDULED"
        assert len(looks) < 50
        assert len(cluster.loop.state.pools) == 2
        run = Run("new", "d", "gold", 50, False, clock(), 99, Amounts(1), 60)
        assert forecast(pool, run, 0, clock()).startswith(f"waits: HeldBack: {message}")
        # Once, not at every look; silence is no fault.
        cluster.submit("blue-2")
        await cluster.calm()
        logged = [text for text in caplog.messages if text.startswith("pool default: ")]
        assert [text.startswith(f"pool default: {message}") for text in logged] == [True] * len(set(logged))
        assert bool(logged) == ("gives no reason" not in message)


def _counted(pool: Any) -> list[int]:
    """Return the moments of all looks at a pool from now on; too many of them fail the look."""
    looks: list[int] = []
    decide = pool.decide

    def counted(now: int) -> Any:
        looks.append(now)
        assert len(looks) < 500, "it spins"
        return decide(now)

    pool.decide = counted
    return looks


@in_virtual_time
async def test_a_pool_on_hold_rests_though_its_policy_wanted_to_look_again() -> None:
    cluster = Cluster()
    async with cluster.operator():
        cluster.submit("red-1", teamId="red")
        await cluster.runs("red-1")
        cluster.submit("blue-1")
        await cluster.calm()
        pool = cluster.loop.state.pool("default")
        asked = pool.books.look_again
        assert asked is not None  # when red ceases to be known
        looks = _counted(pool)
        cluster.pool(maxConcurrency=1, hold=True)
        await asyncio.sleep((asked - clock()) / 1e6 + 60)
        assert len(looks) < 10
