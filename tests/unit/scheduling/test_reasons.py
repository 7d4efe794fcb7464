"""Why a run waits: every reason, and its words."""

import pytest

from agentjobs.scheduling.model import (
    SECOND,
    PoolSettings,
    Run,
    WaitReason,
)
from agentjobs.scheduling.pool import Pool
from agentjobs.scheduling.resources import Amounts, Bounds
from tests.unit.scheduling.scene import CRITICAL, DEFAULT, HIGH, LOW, START, Scene, amounts, team


def test_every_reason_of_the_pool_and_the_run() -> None:
    pool = Scene(slots=1).pool
    run = Run("a-1", "default", "a", DEFAULT, False, 1, 1, amounts(), 60)
    pool.wait(run)
    pool.retire()
    assert reason(pool) is WaitReason.POOL_MISSING
    pool.configure(PoolSettings(Bounds(1), on_hold=True))
    assert reason(pool) is WaitReason.POOL_ON_HOLD
    assert pool.decide(START * SECOND).starts == ()
    pool.configure(PoolSettings(Bounds(1), admitted=frozenset({"b"})))
    assert reason(pool) is WaitReason.TEAM_MISSING
    pool.configure(PoolSettings(Bounds(0)))
    assert reason(pool) is WaitReason.NEVER_FITS
    pool.configure(PoolSettings(Bounds(1)))
    pool.close_namespace("default", (START + 10) * SECOND)
    assert reason(pool) is WaitReason.QUOTA_EXCEEDED
    assert pool.decide(START * SECOND).look_again == (START + 10) * SECOND
    assert len(pool.decide((START + 10) * SECOND).starts) == 1
    pool.wait(run, not_before=(START + 40) * SECOND)
    assert reason(pool) is WaitReason.RETRY_BACKOFF
    assert pool.decide((START + 39) * SECOND).starts == ()
    assert len(pool.decide((START + 40) * SECOND).starts) == 1
    assert pool.why("a-1", START) is None
    assert pool.why("nobody", START) is None


def reason(pool: Pool) -> WaitReason | None:
    wait = pool.why("a-1", START * SECOND)
    return None if wait is None else wait.reason


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (Amounts(1), "NoFreeSlot"),
        (Amounts(0, 2), "InsufficientCPU"),
        (Amounts(0, 0, 2), "InsufficientMemory"),
        (Amounts(0, 0, 0, 2), "InsufficientGPU"),
    ],
)
def test_every_shortage(request_: Amounts, reason: str) -> None:
    scene = Scene(slots=2, cpu=2, memory=2, gpus=2)
    scene.running("b-1", Amounts(2, 1, 1, 1))
    scene.submit("a-1", request=request_)
    assert scene.look() == []
    assert scene.why("a-1") == reason


def test_the_reasons_are_the_closed_set_of_the_contract() -> None:
    assert {reason.value for reason in WaitReason} == {
        *("PoolMissing", "PoolOnHold", "TeamMissing", "QuotaExceeded", "RetryBackoff", "NeverFits"),
        *("TeamLimit", "CriticalLimit", "GuaranteedToOthers", "TeamShare", "BehindOwn", "NoFreeSlot"),
        *("InsufficientCPU", "InsufficientMemory", "InsufficientGPU", "NoNodeFits", "BehindReservation"),
        "HeldBack",
    }


def test_words_name_the_resource_that_is_short() -> None:
    owed = team(limit=Bounds(None, None, None, 2), critical_limit=Bounds(None, 1_000))
    scene = Scene(
        slots=9, cpu=9_000, gpus=4, teams={"a": owed, "g": team(guaranteed=amounts(9, 9_000, 0, 1))}
    )
    scene.running("a-1", amounts(gpus=2))
    scene.submit("a-2", request=amounts(gpus=1))
    assert scene.message("a-2") == "needs 1 GPU; the team may hold 2 and holds 2"
    scene.running("a-3", amounts(cpu=600), critical=True)
    scene.submit("a-4", CRITICAL, amounts(cpu=500))
    assert scene.message("a-4") == (
        "needs 500 millicores of CPU; critical runs of the team may hold 1000 and holds 600"
    )
    scene.running("b-1", amounts(gpus=1))
    scene.submit("b-2", request=amounts(gpus=1), count=3)
    assert scene.message("b-2").startswith(
        "the team holds 1 GPU, its share is 1; more only while 1 stay free"
    )
    assert scene.message("b-3") == "1 older run goes first, of its own team and class"
    assert scene.message("b-4") == "2 older runs go first, of its own team and class"
    scene.submit("g-1", request=amounts(gpus=1))
    scene.submit("c-1", request=amounts(gpus=1))
    assert scene.message("c-1") == "needs 1 GPU; 1 are free, 1 are kept for what others are guaranteed"


def test_words_of_a_pool_that_became_too_small_count_nothing_as_free() -> None:
    scene = Scene(slots=8, teams={"g": team(guaranteed=amounts(1))}, headroom_percent=50)
    scene.running("a-1")
    scene.running("b-1", amounts(5))
    scene.configure(slots=4)
    scene.submit("a-2")
    assert scene.message("a-2").endswith("more only while 2 stay free for others, and 0 are free")
    scene.submit("g-1")
    assert scene.message("a-2") == "needs 1 slot; 0 are free, 1 are kept for what others are guaranteed"


def test_words_pass_over_a_resource_that_leaves_just_enough() -> None:
    scene = Scene(slots=8, gpus=4, teams={"g": team(guaranteed=amounts(1, gpus=1))})
    scene.running("z-1", amounts(6, gpus=3))
    scene.submit("g-1", request=amounts(gpus=1))
    scene.submit("c-1", HIGH, amounts(gpus=1))
    assert scene.message("c-1") == "needs 1 GPU; 1 are free, 1 are kept for what others are guaranteed"


@pytest.mark.parametrize(("own", "others"), [(1, 6), (2, 4)])
def test_words_of_a_share_name_the_resource_that_is_beyond_it_and_short(own: int, others: int) -> None:
    """F is 2 slots and 1 GPU, H is 1 of each: of slots, a holds less than F, or leaves just enough free."""
    scene = Scene(slots=8, gpus=4)
    scene.running("a-1", amounts(own, gpus=1))
    scene.running("z-1", amounts(others, gpus=2))
    scene.submit("a-2", request=amounts(gpus=1))
    assert scene.message("a-2").startswith(
        "the team holds 1 GPU, its share is 1; more only while 1 stay free"
    )


def test_words_for_runs_with_and_without_a_name() -> None:
    for name, shown in (("", "a-1"), ("nightly", "nightly")):
        scene = Scene(slots=4, cpu=8, teams={"a": team(limit=Bounds(None, 8))})
        scene.running("a-0", amounts(cpu=8))
        scene.submit("a-1", HIGH, amounts(cpu=4))
        scene.pool.wait(scene.pool.books.waiting["a-1"]._replace(name=name))
        scene.submit("a-2", LOW)
        assert scene.message("a-2") == (f"{shown}, a more urgent run of its own team, waits: TeamLimit")
