"""One pool: its books, and what it lets its policy decide."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace

from agentjobs.scheduling import explain, explanation
from agentjobs.scheduling.aside import Aside
from agentjobs.scheduling.books import Books
from agentjobs.scheduling.explanation import Explanation, Started
from agentjobs.scheduling.guard import Guard
from agentjobs.scheduling.model import Holding, Plan, PoolSettings, Reservation, Run, Start, Wait, WaitReason
from agentjobs.scheduling.nodes import shrank
from agentjobs.scheduling.policies import Policy
from agentjobs.scheduling.promises import Promises
from agentjobs.scheduling.reservation import latest_end

_NEWCOMER = ""  # stands for every team that has no books yet; no id is empty


class Pool:
    """Bookkeeping and decisions of one pool; free of I/O. `now` is microseconds since the epoch.

    A run is known as waiting or as holding, never as both. One that may not start at all (its team is not
    admitted, it is in back-off, it never fits) is set aside: it leaves its line and returns to its old place.
    """

    def __init__(self, name: str, policy: Policy) -> None:
        self.name = name
        self.books = Books()
        self.promises = Promises()
        self.exists = False
        self._guard = Guard(policy, self.books)
        self._aside = Aside(name)
        self._looked = 0  # when it was last decided
        self._look_again: int | None = None
        self._settled = False  # nothing has changed since the last look
        self._started = Started()
        self._resumed: dict[str, int] = {}  # promises of before a restart, until the first look

    # -- what is true now ------------------------------------------------------------------------

    def configure(self, settings: PoolSettings) -> None:
        """Take the pool's settings as they are now; nothing that runs is interrupted."""
        if not self.exists or settings != self.books.settings:
            if replace(self.books.settings, nodes=settings.nodes) != settings:
                self.promises.note("Edit")
            elif shrank(self.books.settings.nodes, settings.nodes):
                self.promises.note("LostCapacity")
            self.exists = True
            self._settled = False
            self.books.configure(settings)
            self._recall()

    def retire(self) -> None:
        """The AgentPool is gone: what runs goes on, what waits waits."""
        self.exists = False
        self.promises.note("Edit")

    def wait(self, run: Run, not_before: int = 0) -> None:
        """Put a run in line, or move it when it changed; one that held gives its slot up.

        Args:
            not_before: end of its back-off, microseconds since the epoch.
        """
        self.books.drop(run.uid)
        if not_before > self._looked:
            self._aside.not_before[run.uid] = not_before
        known = self.books.waiting.get(run.uid) or self._aside.runs.get(run.uid, (None,))[0]
        if known != run:
            if known is not None and known.weight != run.weight:
                self.promises.dropped(run.uid)
            self._withdraw(run.uid)
            self._line_up(run)

    def hold(self, holding: Holding) -> None:
        """Count a run as holding, or replace what is counted; an unbound pod keeps its likely node."""
        self._withdraw(holding.uid)
        known = self.books.holdings.get(holding.uid)
        if holding.node is None and self.books.nodes is not None:
            likely = known.node if known is not None else self.books.nodes.roomiest(holding.request)
            holding = holding._replace(node=likely)
        if known is not None:
            self.promises.moved(known, holding)
        if known != holding:
            self.books.hold(holding)

    def leave(self, uid: str, ended: int | None = None) -> None:
        """A run neither waits nor holds any more; unknown ones are no error.

        Args:
            ended: when it ended, where it did; its team counts as known for a while after.
        """
        run = self._withdraw(uid)
        holding = self.books.drop(uid)
        self.promises.dropped(uid)
        gone = holding or run
        if gone is not None and ended is not None:
            self.remember(gone.team, ended=ended)
            if holding is not None and holding.until is not None and ended > holding.until:
                self.promises.note("LostCapacity")

    def remember(self, team: str, *, served: int = 0, ended: int = 0) -> None:
        """Note when a team's newest run was scheduled and its last one ended, as stored runs tell."""
        books = self.books.team(team)
        books.last_served = max(books.last_served, served)
        books.last_end = max(books.last_end, ended)
        self.books.last_scheduled = max(self.books.last_scheduled, served)
        self.books.changed.add(team)
        self._settled = False

    def resume(self, uid: str, before: int) -> None:
        """Take up a promise that was made before a restart; of several, the most urgent run's."""
        self._resumed[uid] = before

    def close_namespace(self, namespace: str, until: int) -> None:
        """Start nothing in a namespace whose quota is full before `until`, microseconds since the epoch."""
        self._aside.closed_until[namespace] = until
        for run in [run for run in self.books.waiting.values() if run.namespace == namespace]:
            self.promises.note("Quota", run.uid)
            self._withdraw(run.uid)
            self._line_up(run)

    # -- what follows ----------------------------------------------------------------------------

    def decide(self, now: int) -> Plan:
        """Return what starts now; those runs hold from this moment on.

        A policy that raises, or proposes what must not start, is stopped there; `fault` says what it did.
        """
        self._looked = now
        if self._aside.end_back_offs(now):
            self._recall()
        self._take_up()
        if self.books.ends and self.books.ends[0][0] < now:
            self.promises.note("LostCapacity")  # a run holds on beyond its latest end
        asked = self.exists and not self.books.settings.on_hold
        self._guard.forget()
        starts = [self._admit(start, now) for start in self._guard.starts(now)] if asked else []
        looks = (self._aside.look_again, self.books.look_again if asked else None)
        self._promise()
        self._look_again = min((look for look in looks if look is not None), default=None)
        self._settled = True
        return Plan(tuple(starts), self.books.reservation, self._look_again)

    def why(self, uid: str, now: int) -> Wait | None:
        """Return why a run waits; None when it does not wait here, or would start at the next look."""
        wait, run = self._why(uid, now, left=self._is_settled(now)), self.books.waiting.get(uid)
        ahead = self._started.ahead_of(run) if run else ""
        return wait._replace(message=f"{wait.message}; {ahead} went ahead") if wait and ahead else wait

    def _why(self, uid: str, now: int, *, left: bool) -> Wait | None:
        """Say why; of a run that was left in line, a policy's silence does not mean that it would start."""
        aside, run = self._aside.runs.get(uid), self.books.waiting.get(uid)
        if aside is None and run is None:
            return None
        if not self.exists:
            return Wait(WaitReason.POOL_MISSING, f"there is no AgentPool named {self.name}")
        if self.books.settings.on_hold:
            return Wait(WaitReason.POOL_ON_HOLD, f"pool {self.name} is on hold: nothing new starts in it")
        if aside is not None:
            return aside[1]
        assert run is not None
        if self._guard.fault:
            return Wait(WaitReason.HELD_BACK, self._guard.fault)
        wait = self._guard.why(run, now) or explain.lack(self.books, run)
        return self._guard.silence if wait is None and left else wait

    def explain(self, uid: str, now: int) -> Explanation | None:
        """Return everything that can be said of a run that waits; None when it does not wait here."""
        lined = self.books.waiting.get(uid)
        run = lined or self._aside.runs.get(uid, (None,))[0]
        if run is None:
            return None
        wait = self._why(uid, now, left=self._is_settled(now))
        return Explanation(
            place_in_team=explanation.place_in_team(self.books, lined) if lined else None,
            place=explanation.place(self.books, lined) if lined and self._guard.takes_turns else None,
            wait=wait,
            unblocks=explanation.unblocks(self.books, run, wait),
            went_ahead=self._started.ahead_of(run),
            starts_before=self.promise(uid),
            hole_seconds=wait.hole_seconds if wait is not None else None,
        )

    def promise(self, uid: str) -> int | None:
        """Return when a run starts at the latest; None where that is not promised, or nothing starts."""
        held = self.books.reservation if self.exists and not self.books.settings.on_hold else None
        return held.before if held is not None and held.uid == uid else None

    def preview(self, run: Run, now: int) -> tuple[int, Wait | None]:
        """Return what would become of a run that is not here: what goes before it, and why it would wait.

        Nothing has changed afterwards. The first is the number of runs of its team and class; the second is
        None when it would start at the next look, and says why the first of its line waits where that is
        what it waits for.
        """
        wait = self._aside.why(self.books.settings, run)
        if wait is not None and self.exists and not self.books.settings.on_hold:
            return 0, wait
        if run.team not in self.books.teams and run.team not in self.books.settings.teams:
            run = run._replace(team=_NEWCOMER)  # asking about any number of teams must not fill the books
        self.books.wait(run)
        try:
            wait, ahead = self._why(run.uid, now, left=False), explanation.place_in_team(self.books, run) - 1
            if wait is not None and wait.reason is WaitReason.BEHIND_OWN and ahead:
                wait = self.why(self.books.teams[run.team].lines[run.weight].head.uid, now)
        finally:
            self.books.withdraw(run.uid)
        return ahead, self._guard.silence if wait is None and self._is_silent(now) else wait

    def _is_silent(self, now: int) -> bool:
        """Whether the policy says nothing of a run that it left in line: so it may of one that comes."""
        left = next(iter(self.books.waiting.values()), None) if self._is_settled(now) else None
        return left is not None and self._guard.why(left, now) is None

    def _is_settled(self, now: int) -> bool:
        """Whether a look would start none of those that the last one left in line: nothing has changed.

        Time alone changes what was asked for, and whether a run holds on beyond its latest end.
        """
        if not self._settled or (self._look_again is not None and now >= self._look_again):
            return False
        position = bisect_left(self.books.ends, (self._looked + 1,))
        return all(now < until for until, _ in self.books.ends[position : position + 1])

    @property
    def fault(self) -> str:
        """What the policy did wrong at the last look, or said since when it was asked why; "" for nothing."""
        return self._guard.fault or self._guard.misspoke

    @property
    def waiting(self) -> int:
        """How many runs wait, those set aside among them."""
        return len(self.books.waiting) + len(self._aside.runs)

    def waiting_of(self, team: str) -> int:
        """How many runs of a team wait, those set aside among them."""
        known = self.books.teams.get(team)
        return self._aside.of[team] + (sum(map(len, known.lines.values())) if known is not None else 0)

    # -- what was decided ------------------------------------------------------------------------

    def _admit(self, start: Start, now: int) -> Start:
        run, books = start.run, self.books
        # Strictly increasing, so that the order of starts can be read from the stored runs.
        scheduled = books.last_scheduled = max(now, books.last_scheduled + 1)
        self.promises.started(start, now, books.reservation)
        self._started.add(scheduled, run)
        books.withdraw(run.uid)
        node = books.nodes.roomiest(run.request, start.avoid_node) if books.nodes is not None else None
        until = latest_end(scheduled, start.start_seconds, run.timeout_seconds)
        books.hold(Holding(run.uid, run.team, run.critical, run.request, until, node))
        books.teams[run.team].last_served = scheduled
        return Start(run, start.start_seconds, start.avoid_node, start.backfill, start.guaranteed, scheduled)

    def _take_up(self) -> None:
        runs = [self.books.waiting[uid] for uid in self._resumed if uid in self.books.waiting]
        if runs:
            run = min(runs, key=lambda run: (run.weight, run.age))
            held = self.books.reservation = Reservation(run.uid, run.weight, self._resumed[run.uid])
            self.promises.made(held)
            self.promises.note("Outage")
        self._resumed = {}

    def _promise(self) -> None:
        held = self.books.reservation
        holder = None if held is None else self.books.waiting.get(held.uid)
        if held is None or holder is None or holder.weight != held.weight:
            self.books.reservation = None  # the pool is on hold or gone: its policy was not asked
            return
        self.promises.made(held)
        if self.books.has_room(holder.request):
            self.promises.note("GuaranteeDemand")  # there is room, and it is kept for others

    # -- setting aside ---------------------------------------------------------------------------

    def _line_up(self, run: Run) -> None:
        wait = self._aside.why(self.books.settings, run)
        if wait is None:
            self.books.wait(run)
        else:
            self._aside.put(run, wait)
            self.books.moved.add(run.team)

    def _withdraw(self, uid: str) -> Run | None:
        self._settled = False
        run = self._aside.take(uid)
        if run is None:
            return self.books.withdraw(uid)
        self.books.moved.add(run.team)
        return run

    def _recall(self) -> None:
        """Look again at every run that was set aside, and at those in line that may not be any more."""
        runs = [run for run, _ in self._aside.runs.values()]
        runs += [run for run in self.books.waiting.values() if self._aside.why(self.books.settings, run)]
        for run in runs:
            self._withdraw(run.uid)
            self._line_up(run)
