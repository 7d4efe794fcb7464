"""A pool beside a list of everything that was said to it: whatever the order, both come to the same."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agentjobs.scheduling.model import ClassThenAge, Run, WaitReason
from agentjobs.scheduling.pool import Pool
from agentjobs.scheduling.resources import Amounts, Capacity

TEAMS = st.sampled_from(["blue", "red", "green"])
NAMESPACES = st.sampled_from(["n1", "n2"])
REQUESTS = st.builds(
    Amounts,
    st.just(1),
    st.sampled_from([100, 1000, 4000]),
    st.sampled_from([128, 2048]),
    st.integers(0, 2),
)
CAPACITIES = st.builds(
    Capacity,
    st.none() | st.integers(1, 5),
    st.none() | st.sampled_from([4000, 9000]),
    st.none() | st.just(8192),
    st.none() | st.integers(0, 3),
)


class PoolBesideAList(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.pool = Pool("p", ClassThenAge())
        self.now = 0
        self.count = 0
        self.waiting: dict[str, Run] = {}
        self.holding: dict[str, Run] = {}
        self.capacity: Capacity | None = None
        self.hold = False
        self.teams: frozenset[str] | None = None
        self.back_off: dict[str, int] = {}

    # -- what is said ----------------------------------------------------------------------------

    @rule(team=TEAMS, namespace=NAMESPACES, weight=st.integers(0, 3), request=REQUESTS, age=st.integers(0, 5))
    def submit(self, team: str, namespace: str, weight: int, request: Amounts, age: int) -> None:
        self.count += 1
        run = Run(f"r{self.count:03}", namespace, team, weight, age, request)
        self.pool.wait(run)
        self.waiting[run.uid] = run

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), weight=st.integers(0, 3))
    def change_class(self, data: st.DataObject, weight: int) -> None:
        run = self.waiting[data.draw(st.sampled_from(sorted(self.waiting)))]
        self.waiting[run.uid] = run._replace(weight=weight)
        self.pool.wait(self.waiting[run.uid])

    @precondition(lambda self: self.waiting or self.holding)
    @rule(data=st.data())
    def finish_or_withdraw(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.waiting.keys() | self.holding.keys())))
        self.waiting.pop(uid, None)
        self.holding.pop(uid, None)
        self.pool.leave(uid)

    @precondition(lambda self: self.holding)
    @rule(data=st.data())
    def take_back(self, data: st.DataObject) -> None:
        run = self.holding.pop(data.draw(st.sampled_from(sorted(self.holding))))
        self.waiting[run.uid] = run
        self.pool.wait(run)

    @rule(capacity=CAPACITIES, hold=st.booleans(), teams=st.none() | st.frozensets(TEAMS))
    def configure(self, capacity: Capacity, hold: bool, teams: frozenset[str] | None) -> None:
        self.capacity, self.hold, self.teams = capacity, hold, teams
        self.pool.configure(capacity, on_hold=hold, teams=teams)

    @rule()
    def retire(self) -> None:
        self.capacity = None
        self.pool.retire()

    @rule(namespace=NAMESPACES, seconds=st.integers(1, 5))
    def quota_is_full(self, namespace: str, seconds: int) -> None:
        self.back_off[namespace] = self.now + seconds
        self.pool.back_off(namespace, self.now + seconds)

    @rule(seconds=st.integers(0, 4))
    def decide(self, seconds: int) -> None:
        self.now += seconds
        self.back_off = {name: until for name, until in self.back_off.items() if until > self.now}
        expected = []
        while (run := self.next_to_start()) is not None:
            expected.append(run)
            self.holding[run.uid] = self.waiting.pop(run.uid)
        plan = self.pool.decide(self.now)
        assert list(plan.starts) == expected
        assert plan.look_again == min(self.back_off.values(), default=None)
        self.check_reasons()

    # -- what follows ----------------------------------------------------------------------------

    def held(self) -> Amounts:
        amounts = Amounts()
        for run in self.holding.values():
            amounts = amounts.plus(run.request)
        return amounts

    def candidates(self) -> list[Run]:
        """The runs that may start as far as team and namespace go, in order."""
        allowed = [
            run
            for run in self.waiting.values()
            if (self.teams is None or run.team in self.teams) and run.namespace not in self.back_off
        ]
        return sorted(allowed, key=lambda run: (run.weight, run.created, run.uid))

    def fits(self, run: Run) -> bool:
        assert self.capacity is not None
        return all(
            total is None or asked == 0 or used + asked <= total
            for total, used, asked in zip(self.capacity, self.held(), run.request, strict=True)
        )

    def next_to_start(self) -> Run | None:
        if self.capacity is None or self.hold:
            return None
        first = next(iter(self.candidates()), None)
        return first if first is not None and self.fits(first) else None

    def check_reasons(self) -> None:
        """After a decision every run that waits has a reason, and it is the one that holds."""
        candidates = self.candidates()
        for run in self.waiting.values():
            wait = self.pool.why(run.uid)
            assert wait is not None
            assert wait.message
            if self.capacity is None:
                expected = {WaitReason.POOL_MISSING}
            elif self.hold:
                expected = {WaitReason.POOL_ON_HOLD}
            elif self.teams is not None and run.team not in self.teams:
                expected = {WaitReason.TEAM_MISSING}
            elif run.namespace in self.back_off:
                expected = {WaitReason.QUOTA_EXCEEDED}
            elif run != candidates[0]:
                expected = {WaitReason.BEHIND_OTHERS}
            else:
                assert not self.fits(run)
                expected = set(WaitReason) - {WaitReason.BEHIND_OTHERS, WaitReason.POOL_MISSING}
            assert wait.reason in expected

    @invariant()
    def the_books_balance(self) -> None:
        assert self.pool.held == self.held()
        assert self.pool.waiting == len(self.waiting)
        for uid in self.holding:
            assert self.pool.why(uid) is None


TestPoolBesideAList = PoolBesideAList.TestCase
TestPoolBesideAList.settings = settings(max_examples=40, stateful_step_count=30)
