"""Random histories of one pool, told to the core and to the oracle, compared and checked after every event.

Every choice is drawn from the `Random` that is handed in, so the same code serves seeded runs by the hundred
thousand and Hypothesis, which shrinks what it finds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random

from tests.unit.scheduling import draws
from tests.unit.scheduling.bridge import to_run
from tests.unit.scheduling.draws import EDITS, TEAMS, TIMEOUTS
from tests.unit.scheduling.oracle import look, sums
from tests.unit.scheduling.oracle.world import GRACE, SECOND, ZERO, Held, Job, World
from tests.unit.scheduling.side_by_side import MismatchError, SideBySide


class History(SideBySide):
    """One pool and what happens to it; each of EVENTS is a method."""

    def __init__(self, random: Random, covered: Counter[str] | None = None) -> None:
        self.random = random
        world = World(now=1_000_000 * SECOND + random.choice((0, 0, 1, 999_999)))
        self.kind = draws.shape_pool(random, world)
        super().__init__(world, Counter() if covered is None else covered)
        self.specs: dict[str, Job] = {}
        self.attempts: Counter[str] = Counter()
        self.stuck: set[str] = set()
        self.count = 0
        self.look()

    def step(self, name: str | None = None) -> None:
        """Let one thing happen, then look."""
        if name is None:
            name = self.random.choice(_CHANCES)
        event: Callable[[], None] = getattr(self, name)
        event()
        self.look(by_time=name == "pass_time")

    def submit(self) -> None:
        team = self.random.choice(TEAMS[: self.random.choice((1, 2, 2, 3, 4))])
        burst = self.random.choice((1, 1, 2, 3))
        weight = draws.weight(self.random)
        request = draws.request(self.random, self.kind)
        for _ in range(burst):
            if len(self.world.jobs) >= 12:
                return
            self.count += 1
            job = Job(
                f"{self.random.choice('abc')}{self.count}",
                self.random.choice(("n1", "n1", "n1", "n2")),
                team,
                weight,
                weight == 0,
                self.world.now - self.random.choice((0, 0, 0, 5 * SECOND)),
                self.count,
                request,
                self.random.choice(TIMEOUTS),
            )
            self.specs[job.uid] = job
            self.wait(job)

    def preview(self) -> None:
        """Someone asks what would become of a run; the looks that follow show that nothing has changed."""
        weight = draws.weight(self.random)
        team, timeout = self.random.choice((*TEAMS, "newcomer")), self.random.choice(TIMEOUTS)
        now, request = self.world.now, draws.request(self.random, self.kind)
        job = Job("preview", "n1", team, weight, weight == 0, now, 1_000_000, request, timeout)
        self.tell(f"asks: {job}")
        ahead, wait = self.pool.preview(to_run(job), now)
        world = self.world.copy()
        world.jobs[job.uid] = job
        expected = look.reasons(world)[job.uid]
        if expected != "BehindOwn" or not ahead:
            self.same("reason of a preview", wait and wait.reason.value, expected)
        self.covered["preview of what would start" if wait is None else "preview of what would wait"] += 1

    def finish(self) -> None:
        if self.world.held:
            self.end(self.random.choice(sorted(self.world.held)))

    def cancel(self) -> None:
        if self.world.jobs:
            uid = self.random.choice(sorted(self.world.jobs))
            self.tell(f"cancel {uid}")
            del self.world.jobs[uid]
            self.promises.drop(uid)
            self.pool.leave(uid)

    def retry(self) -> None:
        if not self.world.held:
            return
        uid = self.random.choice(sorted(self.world.held))
        del self.world.held[uid]
        self.stuck.discard(uid)
        wait = min(300, 10 * 2 ** self.attempts[uid])
        self.attempts[uid] += 1
        missed = self.random.random() < 0.4  # a run that missed its hole returns at once
        self.wait(replace(self.specs[uid], not_before=0 if missed else self.world.now + wait * SECOND))
        self.covered["retry that returned at once" if missed else "retry with back-off"] += 1

    def reprioritise(self) -> None:
        if self.world.jobs:
            uid = self.random.choice(sorted(self.world.jobs))
            weight = draws.weight(self.random)
            self.specs[uid] = replace(self.specs[uid], weight=weight, critical=weight == 0)
            changed = replace(self.world.jobs[uid], weight=weight, critical=weight == 0)
            if weight != self.world.jobs[uid].weight:
                self.promises.drop(uid)
            self.wait(changed)

    def start(self) -> None:
        """A pod is bound and its container started: its end is known better, and its node for sure."""
        waiting = [held for held in self.world.held.values() if not held.bound]
        if not waiting:
            return
        held = self.random.choice(waiting)
        node: str | None = None
        if self.world.nodes is not None:
            node = self._kubernetes_places(held)
            if node is None:
                return
            if node != held.node:
                self.covered["pod bound elsewhere"] += 1
                self.promises.disturb("Placement")
        until = held.until
        if until is not None and held.uid not in self.stuck:
            left = self.specs[held.uid].timeout + GRACE
            until = min(until, self.world.now + left * SECOND)
        self.hold(replace(held, until=until, node=node, bound=True))

    def lose_track(self) -> None:
        """A run is overdue or its end is not known: it may hold for ever."""
        if self.world.held:
            uid = self.random.choice(sorted(self.world.held))
            self.stuck.add(uid)
            self.promises.disturb("LostCapacity")
            if self.random.random() < 0.5:
                self.hold(replace(self.world.held[uid], until=None))

    def pass_time(self) -> None:
        """The clock moves on; what ends on the way ends, at the latest moment that it may."""
        to = self.world.now + draws.span(self.random, self.world)
        while True:
            due = [(held.until, uid) for uid, held in self.world.held.items() if uid not in self.stuck]
            ends = sorted((until, uid) for until, uid in due if until is not None and until <= to)
            if not ends:
                break
            self.world.now = max(self.world.now, ends[0][0])
            self.end(ends[0][1])
            self.look()
        self.tell(f"time +{(to - self.world.now) / SECOND} s")
        self.world.now = max(self.world.now, to)

    def step_back(self) -> None:
        self.world.now -= self.random.choice((1, SECOND, 40 * SECOND, 700 * SECOND))
        self.tell(f"the clock goes back to {self.world.now}")
        self.covered["clock went back"] += 1

    def edit_pool(self) -> None:
        edit = self.random.choice(EDITS)
        if edit == "delete":
            self.tell("the pool is deleted")
            self.world.exists = False
            self.promises.disturb("Edit")
            self.pool.retire()
            return
        draws.edit_pool(self.random, self.world, edit)
        self.configure("Edit")

    def edit_team(self) -> None:
        team = self.random.choice(TEAMS)
        if self.random.random() < 0.2:
            self.world.owed.pop(team, None)
        else:
            self.world.owed[team] = draws.owed(self.random)
        self.configure("Edit")

    def change_nodes(self) -> None:
        """A node comes or goes, or foreign pods take some of it or leave."""
        if self.world.nodes is None:
            return
        before, nodes = self.world.nodes, dict(self.world.nodes)
        name = self.random.choice(("n0", "n1", "n2"))
        if name in nodes and len(nodes) > 1 and self.random.random() < 0.4:
            del nodes[name]
        else:
            nodes[name] = draws.node(self.random)
        self.world.nodes = nodes
        # What only grows breaks no promise.
        lost = any(
            now < then
            for node, offer in before.items()
            for now, then in zip(nodes.get(node, ZERO), offer, strict=True)
        )
        self.configure("LostCapacity" if lost else None)

    def full_quota(self) -> None:
        namespace = self.random.choice(("n1", "n2"))
        until = self.world.now + 10 * SECOND
        self.tell(f"quota of {namespace} is full")
        self.world.closed[namespace] = until
        self.promises.disturb(
            "Quota", [job.uid for job in self.world.jobs.values() if job.namespace == namespace]
        )
        self.pool.close_namespace(namespace, until)

    def _kubernetes_places(self, held: Held) -> str | None:
        """Any node on which the pod really fits beside those bound there."""
        assert self.world.nodes is not None
        bound = self.world.copy()
        bound.held = {uid: other for uid, other in bound.held.items() if other.bound}
        fitting = [
            node
            for node, left in sorted(sums.node_free(bound).items())
            if node != self.avoid.get(held.uid) and sums.holds(left, held.request)
        ]
        return self.random.choice(fitting) if fitting else None


EVENTS = {
    "submit": 18,
    "preview": 3,
    "finish": 7,
    "cancel": 1,
    "retry": 2,
    "reprioritise": 2,
    "start": 6,
    "lose_track": 1,
    "pass_time": 6,
    "step_back": 1,
    "edit_pool": 2,
    "edit_team": 2,
    "change_nodes": 2,
    "full_quota": 1,
    "restart": 1,
}

_CHANCES = tuple(name for name, chance in EVENTS.items() for _ in range(chance))


def play(seed: int, steps: int, covered: Counter[str]) -> None:
    """Play one seeded history to its end; a failure names the seed."""
    history = None
    try:
        history = History(Random(seed), covered)
        for _ in range(steps):
            history.step()
        history.rebuilt()
    except Exception as error:
        told = "" if history is None or isinstance(error, MismatchError) else "\n".join(history.told[-40:])
        raise AssertionError(f"history {seed} of {steps} steps: {error}\n{told}") from error
