"""Random histories of one pool, told to the core and to the oracle, compared and checked after every event.

Every choice is drawn from the `Random` that is handed in, so the same code serves seeded runs by the hundred
thousand and Hypothesis, which shrinks what it finds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random

from agentjobs.scheduling.model import Plan
from tests.unit.scheduling import situations
from tests.unit.scheduling.bridge import new_pool, to_holding, to_promise, to_run, to_settings
from tests.unit.scheduling.invariants import Guarantees, Promises, check_look
from tests.unit.scheduling.oracle import look, sums
from tests.unit.scheduling.oracle.world import (
    GRACE,
    NONE,
    SECOND,
    ZERO,
    Begin,
    Bound,
    Four,
    Held,
    Job,
    Owed,
    World,
)

TEAMS = ("blue", "red", "gold", "jade")
CLASSES = (0, 1, 2, 3)  # critical, high, default, low
TIMEOUTS = (30, 60, 120, 300, 600, 1800)


class MismatchError(AssertionError):
    """The core and the oracle disagree."""


class History:
    """One pool and what happened to it.

    Attributes:
        world: what is true, in the oracle's words.
        covered: how often each situation was reached.
        told: every event so far, for whoever must understand a failure.
    """

    def __init__(self, random: Random, covered: Counter[str] | None = None) -> None:
        self.random = random
        self.covered = Counter() if covered is None else covered
        self.told: list[str] = []
        self.world = World(now=1_000_000 * SECOND + random.choice((0, 0, 1, 999_999)))
        self._shape_pool()
        self.unplaced = False
        self.pool = new_pool(self.world)
        self.promises = Promises()
        self.guarantees = Guarantees()
        self.specs: dict[str, Job] = {}
        self.attempts: Counter[str] = Counter()
        self.avoid: dict[str, str] = {}
        self.stuck: set[str] = set()
        self.count = 0
        self.plan = Plan()
        self.look()

    # -- what happens ----------------------------------------------------------------------------

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
        weight = self._class()
        request = self._request()
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
            self._wait(job)

    def preview(self) -> None:
        """Someone asks what would become of a run; the looks that follow show that nothing has changed."""
        weight = self._class()
        team, timeout = self.random.choice((*TEAMS, "newcomer")), self.random.choice(TIMEOUTS)
        now, request = self.world.now, self._request()
        job = Job("preview", "n1", team, weight, weight == 0, now, 1_000_000, request, timeout)
        self._tell(f"asks: {job}")
        ahead, wait = self.pool.preview(to_run(job), now)
        world = self.world.copy()
        world.jobs[job.uid] = job
        expected = look.reasons(world)[job.uid]
        if expected != "BehindOwn" or not ahead:
            self._same("reason of a preview", wait and wait.reason.value, expected)
        self.covered["preview of what would start" if wait is None else "preview of what would wait"] += 1

    def finish(self) -> None:
        if self.world.held:
            self._end(self.random.choice(sorted(self.world.held)))

    def cancel(self) -> None:
        if self.world.jobs:
            uid = self.random.choice(sorted(self.world.jobs))
            self._tell(f"cancel {uid}")
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
        self._wait(replace(self.specs[uid], not_before=0 if missed else self.world.now + wait * SECOND))
        self.covered["retry that returned at once" if missed else "retry with back-off"] += 1

    def reprioritise(self) -> None:
        if self.world.jobs:
            uid = self.random.choice(sorted(self.world.jobs))
            weight = self._class()
            self.specs[uid] = replace(self.specs[uid], weight=weight, critical=weight == 0)
            changed = replace(self.world.jobs[uid], weight=weight, critical=weight == 0)
            if weight != self.world.jobs[uid].weight:
                self.promises.drop(uid)
            self._wait(changed)

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
        self._hold(replace(held, until=until, node=node, bound=True))

    def lose_track(self) -> None:
        """A run is overdue or its end is not known: it may hold for ever."""
        if self.world.held:
            uid = self.random.choice(sorted(self.world.held))
            self.stuck.add(uid)
            self.promises.disturb("LostCapacity")
            if self.random.random() < 0.5:
                self._hold(replace(self.world.held[uid], until=None))

    def pass_time(self) -> None:
        """The clock moves on; what ends on the way ends, at the latest moment that it may."""
        to = self.world.now + self._span()
        while True:
            due = [(held.until, uid) for uid, held in self.world.held.items() if uid not in self.stuck]
            ends = sorted((until, uid) for until, uid in due if until is not None and until <= to)
            if not ends:
                break
            self.world.now = max(self.world.now, ends[0][0])
            self._end(ends[0][1])
            self.look()
        self._tell(f"time +{(to - self.world.now) / SECOND} s")
        self.world.now = max(self.world.now, to)

    def step_back(self) -> None:
        self.world.now -= self.random.choice((1, SECOND, 40 * SECOND, 700 * SECOND))
        self._tell(f"the clock goes back to {self.world.now}")
        self.covered["clock went back"] += 1

    def edit_pool(self) -> None:
        world, pick = self.world, self.random.choice
        kind = pick(_EDITS)
        if kind == "slots":
            world.capacity = (self._slots(), *world.capacity[1:])
        elif kind == "share":
            world.share = pick((0, 25, 50, 100))
        elif kind == "headroom":
            world.headroom = pick((0, 10, 34, 100))
        elif kind == "window":
            world.window = pick((0, 60, 3600))
        elif kind == "start":
            world.start_timeout = pick((20, 60, 300))
        elif kind == "hold":
            world.on_hold = not world.on_hold
        elif kind == "delete":
            self._tell("the pool is deleted")
            world.exists = False
            self.promises.disturb("Edit")
            self.pool.retire()
            return
        elif kind == "require":
            world.admitted = None if world.admitted is not None else frozenset(TEAMS[: pick((1, 3, 4))])
        elif world.nodes is None:
            world.capacity = (world.capacity[0], *self._bounds(0.5)[1:])
        self._configure("Edit")

    def edit_team(self) -> None:
        team = self.random.choice(TEAMS)
        if self.random.random() < 0.2:
            self.world.owed.pop(team, None)
        else:
            self.world.owed[team] = self._owed()
        self._configure("Edit")

    def change_nodes(self) -> None:
        """A node comes or goes, or foreign pods take some of it or leave."""
        if self.world.nodes is None:
            return
        nodes = dict(self.world.nodes)
        name = self.random.choice(("n0", "n1", "n2"))
        if name in nodes and len(nodes) > 1 and self.random.random() < 0.4:
            del nodes[name]
        else:
            nodes[name] = self._node()
        self.world.nodes = nodes
        self.promises.disturb("LostCapacity")
        self._configure("LostCapacity")

    def full_quota(self) -> None:
        namespace = self.random.choice(("n1", "n2"))
        until = self.world.now + 10 * SECOND
        self._tell(f"quota of {namespace} is full")
        self.world.closed[namespace] = until
        self.promises.disturb(
            "Quota", [job.uid for job in self.world.jobs.values() if job.namespace == namespace]
        )
        self.pool.close_namespace(namespace, until)

    def restart(self) -> None:
        """A new operator reads the stored objects: where unbound pods will land is guessed anew."""
        self._tell("restart")
        self.covered["restart while a promise stood"] += self.world.promise is not None
        loose = [held for held in self.world.held.values() if not held.bound]
        for held in loose:
            self.world.held[held.uid] = replace(held, node=None)
        self.unplaced = not self.world.exists  # until the pool is there, nobody knows its nodes
        for held in loose if self.world.exists else []:
            self._guess(held)
        self.pool = new_pool(self.world)
        self.promises.restarted(self.world)

    # -- looking ---------------------------------------------------------------------------------

    def look(self, *, by_time: bool = False) -> None:
        """Let both decide on the same facts; compare, and check what must always hold."""
        before = self.world.copy()
        begins = look.decide(self.world)
        plan = self.pool.decide(self.world.now)
        seen = [
            Begin(s.run.uid, s.start_seconds, s.avoid_node, s.backfill, s.guaranteed) for s in plan.starts
        ]
        self._same("fault of the policy", self.pool.fault, "")
        self._same("starts", seen, begins)
        self._same("reservation", to_promise(plan.reservation), self.world.promise)
        reasons = look.reasons(self.world)
        for uid, reason in reasons.items():
            wait = self.pool.why(uid, self.world.now)
            self._same(f"reason of {uid}", wait and wait.reason.value, reason)
        if begins and by_time:
            asked = self.plan.look_again
            self._same("time alone let runs start, look_again", bool(asked and asked <= self.world.now), True)
        self.plan = plan
        for begin in begins:
            self.avoid.pop(begin.uid, None)
            if begin.avoid is not None:
                self.avoid[begin.uid] = begin.avoid
        demanded = check_look(before, self.world, plan, self.pool)
        self.promises.check(before, self.world, plan, self.pool, demanded=demanded)
        self.guarantees.check(before, self.world)
        situations.note(self.covered, before, self.world, begins, reasons)

    def rebuilt(self) -> None:
        """Invariant 7: a pool built from the stored objects decides the same."""
        self.restart()
        self.look()

    def _same(self, what: str, core: object, expected: object) -> None:
        if core != expected:
            told = "\n".join(self.told[-40:])
            raise MismatchError(
                f"{what}:\n  core   {core}\n  oracle {expected}\n{self.world}\nevents:\n{told}"
            )

    def _tell(self, event: str) -> None:
        self.told.append(f"{self.world.now}: {event}")

    # -- telling both ----------------------------------------------------------------------------

    def _wait(self, job: Job) -> None:
        self._tell(f"waits: {job}")
        self.world.jobs[job.uid] = job
        self.pool.wait(to_run(job), job.not_before)

    def _hold(self, held: Held) -> None:
        self._tell(f"holds: {held}")
        self.world.held[held.uid] = held
        self.pool.hold(to_holding(held))

    def _guess(self, held: Held) -> None:
        if self.world.nodes is not None:
            node = sums.roomy(self.world, held.request)
            self.world.held[held.uid] = replace(held, node=node)

    def _end(self, uid: str) -> None:
        self._tell(f"ends: {uid}")
        held = self.world.held.pop(uid)
        self.stuck.discard(uid)
        self.world.ended[held.team] = max(self.world.now, self.world.ended.get(held.team, 0))
        self.pool.leave(uid, ended=self.world.now)

    def _configure(self, cause: str) -> None:
        self.world.exists = True
        for uid in sorted(self.world.held) if self.unplaced else []:
            if not self.world.held[uid].bound:
                self._guess(self.world.held[uid])
        self.unplaced = False
        self._tell(f"configured: {to_settings(self.world)}")
        self.promises.disturb(cause)
        self.guarantees.forget()
        self.pool.configure(to_settings(self.world))

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

    # -- drawing ---------------------------------------------------------------------------------

    def _shape_pool(self) -> None:
        world, pick = self.world, self.random.choice
        kind = pick(("slots", "slots", "gpus", "gpus", "mixed", "scarce", "nodes", "nodes", "unbounded"))
        self.kind = kind
        if kind == "slots":
            world.capacity = (self._slots(), None, None, None)
        elif kind == "gpus":
            world.capacity = (self._slots(), None, None, pick((1, 2, 3, 4)))
        elif kind == "mixed":
            world.capacity = (pick((None, self._slots())), pick((4, 8)), pick((None, 4)), pick((None, 2, 4)))
        elif kind == "scarce":  # shares are of CPU, and what is waited for are GPUs
            world.capacity = (12, pick((8, 12, 16)), None, pick((1, 2)))
        elif kind == "nodes":
            world.capacity = (pick((None, 3, 6)), None, None, None)
            world.nodes = {name: self._node() for name in ("n0", "n1", "n2")[: pick((1, 2, 3, 3))]}
        world.window = pick((0, 60, 3600))
        world.share = pick((25, 25, 25, 50))
        world.start_timeout = pick((20, 60, 300))
        for team in TEAMS:
            if self.random.random() < 0.4:
                world.owed[team] = self._owed()

    def _slots(self) -> int:
        return self.random.choice((0, 1, 1, 2, 2, 3, 3, 4, 4, 6, 8))

    def _node(self) -> Four:
        return (
            0,
            self.random.choice((0, 2, 4)),
            self.random.choice((2, 4)),
            self.random.choice((0, 1, 2, 4)),
        )

    def _class(self) -> int:
        return self.random.choice((0, 0, 1, 2, 2, 2, 3))

    def _request(self) -> Four:
        pick = self.random.choice
        if self.kind == "slots":
            return (1, 1, 1, 0)
        return (1, pick((0, 1, 1, 2, 4)), pick((0, 1, 1, 2)), pick((0, 0, 0, 1, 1, 2, 4)))

    def _span(self) -> int:
        """How far the clock moves: a little, to where something happens, or far."""
        instants = [held.until for held in self.world.held.values() if held.until is not None]
        instants += [job.not_before for job in self.world.jobs.values() if job.not_before]
        if self.world.promise is not None:
            instants.append(self.world.promise.before)
        ahead = sorted(instant - self.world.now for instant in instants if instant > self.world.now)
        if ahead and self.random.random() < 0.5:
            return self.random.choice(ahead) + self.random.choice((0, 0, 1))
        return self.random.choice((0, 1, SECOND, 10 * SECOND, 61 * SECOND, 4000 * SECOND))

    def _owed(self) -> Owed:
        pick = self.random.choice
        guaranteed, limit, critical = ZERO, NONE, NONE
        if self.random.random() < 0.6:
            guaranteed = (pick((1, 2, 2, 4)), pick((0, 4, 8, 8)), pick((0, 4, 4)), pick((0, 1, 2, 4)))
        if self.random.random() < 0.4:
            limit = self._bounds(0.6)
        if self.random.random() < 0.5:
            critical = (pick((None, 1, 1, 2)), None, None, pick((None, 1)))
        return Owed(pick((1, 1, 1, 2, 3, 1000)), guaranteed, limit, critical)

    def _bounds(self, chance: float) -> Bound:
        pick = self.random.choice
        return (
            pick((1, 2, 3)) if self.random.random() < chance else None,
            pick((2, 4)) if self.random.random() < chance else None,
            pick((2, 4)) if self.random.random() < chance / 2 else None,
            pick((1, 2, 3)) if self.random.random() < chance else None,
        )


_EDITS = (
    "slots",
    "slots",
    "share",
    "headroom",
    "window",
    "start",
    "hold",
    "hold",
    "require",
    "capacity",
    "delete",
)
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
