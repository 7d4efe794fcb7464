"""Admission beside an API server that commits in any order and a watch that lags: exact all the same.

Few names, keys and teams, so that creates meet: under one name, with one key, after a deletion not seen yet.
The server serves every create before it is looked for.
"""

from collections import deque
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.unit.admission.desk import Desk, manifest, pool

LIMIT = 3
TEAMS, NAMES, KEYS = ("blue", "red"), ("a", "b", "c", "d", "e"), ("", "", "k", "q")
Job = dict[str, Any]


class Ledgers(RuleBasedStateMachine):
    """What is stored, what the watch has still to tell, and what was allowed and has still to be stored."""

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk(pools={"default": pool(maxPendingPerTeam=LIMIT)})
        self.stored: dict[str, Job] = {}
        self.events: deque[tuple[str, Job]] = deque()
        self.flying: list[Job] = []

    @rule(team=st.sampled_from(TEAMS), name=st.sampled_from(NAMES), key=st.sampled_from(KEYS))
    def ask(self, team: str, name: str, key: str) -> None:
        job = manifest(name, team, idempotencyKey=key)
        if self.desk.create(job).allowed:
            self.flying.append(job)

    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        if not self.flying:
            return
        job = self.flying.pop(data.draw(st.integers(0, len(self.flying) - 1)))
        name = job["metadata"]["name"]
        if name not in self.stored:
            self.stored[name] = job
            self.events.append(("PENDING", job))

    @rule(data=st.data(), how=st.sampled_from(["gone", "SCHEDULED"]))
    def leave(self, data: st.DataObject, how: str) -> None:
        waiting = sorted(name for name, job in self.stored.items() if job["status"]["phase"] == "PENDING")
        if not waiting:
            return
        name = data.draw(st.sampled_from(waiting))
        job = self.stored[name]
        self.events.append((how, job))
        if how == "gone":
            del self.stored[name]
        else:
            job["status"] = {"phase": how}

    @rule()
    def watch(self) -> None:
        if self.events:
            what, job = self.events.popleft()
            if what == "gone":
                self.desk.gone(job)
            else:
                self.desk.seen(job, what)

    @rule()
    def look(self) -> None:
        """A consistent read for every create that is due; those on their way are served before it."""
        flying = {job["metadata"]["uid"] for job in self.flying}
        for create in self.desk.ledger.due(self.desk.now):
            found = self.stored.get(create.name[1])
            if create.uid in flying:
                continue
            if found is None and self.desk.now < create.until:
                self.desk.ledger.postpone(create.uid)
            elif found is None or found["metadata"]["uid"] != create.uid:
                self.desk.ledger.release(create.uid)

    @rule()
    def time(self) -> None:
        self.desk.now += 2.0

    @invariant()
    def exact(self) -> None:
        for team in TEAMS:
            theirs = [job for job in self.stored.values() if job["spec"]["teamId"] == team]
            assert sum(job["status"]["phase"] == "PENDING" for job in theirs) <= LIMIT
            keys = [job["spec"]["idempotencyKey"] for job in theirs if job["spec"]["idempotencyKey"]]
            assert len(keys) == len(set(keys))
        assert self.desk.over == []

    def teardown(self) -> None:
        """When everything has been told, nothing is left that counts what is not there."""
        while self.flying:
            job = self.flying.pop()
            if job["metadata"]["name"] not in self.stored:
                self.stored[job["metadata"]["name"]] = job
                self.events.append(("PENDING", job))
        while self.events:
            self.watch()
        self.desk.now += 10.0
        self.look()
        assert self.desk.ledger.reservations == 0
        for team in TEAMS:
            jobs = [job for job in self.stored.values() if job["spec"]["teamId"] == team]
            waiting = sum(job["status"]["phase"] == "PENDING" for job in jobs)
            assert self.desk.ledger.pending(team, ("default", "none")) == waiting


TestLedgers = Ledgers.TestCase
TestLedgers.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
