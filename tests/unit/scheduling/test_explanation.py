"""What a person is told of a run that waits: places, what helps, who went ahead, the promise, the hole."""

from agentjobs.scheduling.explanation import unblocks
from agentjobs.scheduling.fairshare import FairShare
from agentjobs.scheduling.model import SECOND, PoolSettings, Run, TeamSettings, Wait, WaitReason
from agentjobs.scheduling.pool import Pool
from agentjobs.scheduling.resources import Amounts, Bounds

NOW = 1_000_000 * SECOND


def run(uid: str, team: str, *, weight: int = 50, cpu: int = 0, timeout: int = 600, age: int = 0) -> Run:
    request = Amounts(1, cpu)
    return Run(uid, "agents", team, weight, weight == 0, NOW - 100 * SECOND + age, 0, request, timeout, uid)


def pool(**settings: object) -> Pool:
    made = Pool("default", FairShare())
    made.configure(PoolSettings(**settings))  # type: ignore[arg-type]
    return made


def test_places_count_that_teams_take_turns() -> None:
    p = pool(capacity=Bounds(slots=1), teams={"heavy": TeamSettings(weight=2)})
    p.wait(run("holder", "blue", age=0))
    assert [start.run.uid for start in p.decide(NOW).starts] == ["holder"]
    for number in range(3):
        p.wait(run(f"blue-{number}", "blue", age=1 + number))
        p.wait(run(f"heavy-{number}", "heavy", age=10 + number))
    p.wait(run("urgent", "red", weight=0, age=20))

    def places(uid: str) -> tuple[int, int]:
        told = p.explain(uid, NOW)
        assert told is not None
        return told.place_in_team, told.place

    assert places("urgent") == (1, 1)
    # heavy holds nothing for a weight of 2, blue holds one for a weight of 1: two of
    # heavy's go before blue's next, and the third, which is even with it, since heavy was served longer ago.
    assert places("heavy-0") == (1, 2)
    assert places("heavy-1") == (2, 3)
    assert places("blue-0") == (1, 5)
    assert places("blue-2") == (3, 7)
    assert sorted(place for _, place in map(places, p.books.waiting)) == [1, 2, 3, 4, 5, 6, 7]


def test_the_promise_the_hole_and_who_went_ahead() -> None:
    p = pool(capacity=Bounds(cpu_millicores=5000), share_percent=100, start_timeout_seconds=60)
    p.wait(run("first", "blue", cpu=2000, timeout=300))
    p.decide(NOW)
    p.wait(run("large", "red", weight=10, cpu=4000, age=1))
    plan = p.decide(NOW)
    assert plan.reservation is not None
    ends = NOW + (60 + 300 + 30) * SECOND

    p.wait(run("filler", "green", cpu=1000, timeout=60, age=2))
    assert [start.run.uid for start in p.decide(NOW + SECOND).starts] == ["filler"]
    large = p.explain("large", NOW + 2 * SECOND)
    assert large is not None
    assert (large.starts_before, large.went_ahead) == (ends, "filler")
    assert large.wait is not None
    assert large.wait.reason is WaitReason.INSUFFICIENT_CPU
    assert large.wait.message == "needs 4000 millicores of CPU; 3000 of 5000 are held; filler went ahead"
    assert large.unblocks == "any run that holds CPU ends"

    p.wait(run("late", "green", cpu=2000, timeout=7200, age=3))
    assert p.decide(NOW + 2 * SECOND).starts == ()
    late = p.explain("late", NOW + 2 * SECOND)
    assert late is not None
    assert late.starts_before is None
    assert late.hole_seconds == 390 - 2 - 30 - 20  # to S, less the grace and the least time to start
    p.wait(run("short", "green", cpu=2000, timeout=late.hole_seconds, age=2))
    assert [start.run.uid for start in p.decide(NOW + 2 * SECOND).starts] == ["short"]


def test_a_run_that_is_set_aside_or_unknown() -> None:
    p = pool(capacity=Bounds(slots=1, gpu_count=0), admitted=frozenset({"blue"}))
    p.wait(run("stranger", "red"))
    told = p.explain("stranger", NOW)
    assert told is not None
    assert told.wait is not None
    assert told.wait.reason is WaitReason.TEAM_MISSING
    assert (told.place_in_team, told.unblocks) == (1, "an administrator creates the AgentTeam")
    assert p.explain("nobody", NOW) is None


def test_a_run_that_starts_at_the_next_look() -> None:
    p = pool(capacity=Bounds(slots=1))
    p.wait(run("a", "blue"))
    told = p.explain("a", NOW)
    assert told is not None
    assert (told.wait, told.went_ahead) == (None, "")
    assert told.unblocks.startswith("nothing")


def test_every_reason_says_what_helps() -> None:
    assert all(unblocks(Wait(reason, "")) for reason in WaitReason)
