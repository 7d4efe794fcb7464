"""The core and the oracle side by side: both are told the same, and after every event they must agree."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from agentjobs.scheduling.model import Plan
from tests.unit.scheduling import situations
from tests.unit.scheduling.bridge import new_pool, to_holding, to_promise, to_run, to_settings
from tests.unit.scheduling.invariants import Guarantees, Promises, check_look
from tests.unit.scheduling.oracle import look, sums
from tests.unit.scheduling.oracle.world import Begin, Held, Job, World


class MismatchError(AssertionError):
    """The core and the oracle disagree."""


class SideBySide:
    """One pool, as the core keeps it and as the oracle sees it.

    Attributes:
        world: what is true, in the oracle's words.
        pool: the same, as the core was told it.
        covered: how often each situation was reached.
        told: every event so far, for whoever must understand a failure.
        avoid: by run, the node on which its pod is not put.
        unplaced: whether unbound pods have no likely node yet, because nobody knows the nodes.
        plan: what was decided at the last look.
    """

    def __init__(self, world: World, covered: Counter[str]) -> None:
        self.world = world
        self.pool = new_pool(world)
        self.covered = covered
        self.told: list[str] = []
        self.unplaced = False
        self.promises = Promises()
        self.guarantees = Guarantees()
        self.avoid: dict[str, str] = {}
        self.plan = Plan()

    # -- looking ---------------------------------------------------------------------------------

    def look(self, *, by_time: bool = False) -> None:
        """Let both decide on the same facts; compare, and check what must always hold."""
        before = self.world.copy()
        begins = look.decide(self.world)
        plan = self.pool.decide(self.world.now)
        seen = [
            Begin(s.run.uid, s.start_seconds, s.avoid_node, s.backfill, s.guaranteed) for s in plan.starts
        ]
        self.same("fault of the policy", self.pool.fault, "")
        self.same("starts", seen, begins)
        self.same("reservation", to_promise(plan.reservation), self.world.promise)
        reasons = look.reasons(self.world)
        for uid, reason in reasons.items():
            wait = self.pool.why(uid, self.world.now)
            self.same(f"reason of {uid}", wait and wait.reason.value, reason)
        if begins and by_time:
            asked = self.plan.look_again
            self.same("time alone let runs start, look_again", bool(asked and asked <= self.world.now), True)
        self.plan = plan
        for begin in begins:
            self.avoid.pop(begin.uid, None)
            if begin.avoid is not None:
                self.avoid[begin.uid] = begin.avoid
        demanded = check_look(before, self.world, plan, self.pool)
        self.promises.check(before, self.world, plan, self.pool, demanded=demanded)
        self.guarantees.check(before, self.world)
        situations.note(self.covered, before, self.world, begins, reasons)

    def same(self, what: str, core: object, expected: object) -> None:
        if core != expected:
            told = "\n".join(self.told[-40:])
            raise MismatchError(
                f"{what}:\n  core   {core}\n  oracle {expected}\n{self.world}\nevents:\n{told}"
            )

    def tell(self, event: str) -> None:
        self.told.append(f"{self.world.now}: {event}")

    # -- telling both ----------------------------------------------------------------------------

    def wait(self, job: Job) -> None:
        self.tell(f"waits: {job}")
        self.world.jobs[job.uid] = job
        self.pool.wait(to_run(job), job.not_before)

    def hold(self, held: Held) -> None:
        self.tell(f"holds: {held}")
        self.world.held[held.uid] = held
        self.pool.hold(to_holding(held))

    def guess(self, held: Held) -> None:
        if self.world.nodes is not None:
            node = sums.roomy(self.world, held.request)
            self.world.held[held.uid] = replace(held, node=node)

    def end(self, uid: str) -> None:
        self.tell(f"ends: {uid}")
        held = self.world.held.pop(uid)
        self.world.ended[held.team] = max(self.world.now, self.world.ended.get(held.team, 0))
        self.pool.leave(uid, ended=self.world.now)

    def configure(self, cause: str | None) -> None:
        """Tell the pool of the settings as they are; a cause is what they may break promises by."""
        self.world.exists = True
        for uid in sorted(self.world.held) if self.unplaced else []:
            if not self.world.held[uid].bound:
                self.guess(self.world.held[uid])
        self.unplaced = False
        self.tell(f"configured: {to_settings(self.world)}")
        if cause is not None:
            self.promises.disturb(cause)
        self.guarantees.forget()
        self.pool.configure(to_settings(self.world))

    def restart(self) -> None:
        """A new operator reads the stored objects: where unbound pods will land is guessed anew."""
        self.tell("restart")
        self.covered["restart while a promise stood"] += self.world.promise is not None
        loose = [held for held in self.world.held.values() if not held.bound]
        for held in loose:
            self.world.held[held.uid] = replace(held, node=None)
        self.unplaced = not self.world.exists  # until the pool is there, nobody knows its nodes
        for held in loose if self.world.exists else []:
            self.guess(held)
        self.pool = new_pool(self.world)
        self.promises.restarted(self.world)

    def rebuilt(self) -> None:
        """Invariant 7: a pool built from the stored objects decides the same."""
        self.restart()
        self.look()
