"""Sends hostile reviews to a real server, sixteen at a time, and judges every answer."""

import asyncio
import io
import json
from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import Any

import aiohttp

from agentjobs.admission.administration import PoolReviews, TeamReviews
from agentjobs.admission.server import Server
from tests.unit.admission import hostile
from tests.unit.admission.desk import Desk, pool, team

CONNECTIONS = 16
LIMIT = 8
PREFIX = "/secret/1"
CODES = {403, 409, 422, 429}
OTHERWISE = {400: "no review at all", 413: "larger than two objects can be"}


class Target:
    """A server whose team `blue` has members and a small limit, so that every kind of answer is reached."""

    def __init__(self) -> None:
        self.desk = Desk(
            pools={"default": pool(maxPendingPerTeam=LIMIT), "other": pool(drain={"timeoutSeconds": 0})},
            teams={"blue": team(maxPending=LIMIT, members={"users": ["jane"], "groups": ["blue-devs"]})},
        )
        teams = TeamReviews(self.desk.pools, {"red": "red"}, lambda: self.desk.now)
        hooks = {
            "agentjobs": self.desk.admission.review,
            "agentteams": teams.review,
            "agentpools": PoolReviews(lambda _: 2).review,
        }
        self.server = Server(hooks, lambda: PREFIX, lambda: None)
        self.covered: Counter[str] = Counter()

    async def attack(self, seeds: Iterable[int]) -> None:
        """Send one review for every seed."""
        waiting = iter(seeds)
        async with (
            self.server.listening("127.0.0.1", 0, None) as port,
            aiohttp.ClientSession() as http,
            asyncio.TaskGroup() as group,
        ):
            for _ in range(CONNECTIONS):
                group.create_task(self._send(http, f"http://127.0.0.1:{port}{PREFIX}/", waiting))

    async def _send(self, http: aiohttp.ClientSession, url: str, seeds: Iterable[int]) -> None:
        for seed in seeds:
            plural, content = hostile.body(Random(seed))
            try:
                async with http.post(url + plural, data=io.BytesIO(content)) as answer:
                    self._judge(plural, answer.status, json.loads(await answer.read()))
            except Exception as error:
                raise AssertionError(f"review {seed}: {error}") from error
            self.desk.now += 0.1  # what is never stored is given up after a while

    def _judge(self, plural: str, status: int, answer: dict[str, Any]) -> None:
        if status != 200:
            assert status in OTHERWISE, status
            assert answer["message"]
            self.covered[OTHERWISE[status]] += 1
            return
        response = answer["response"]
        assert response["uid"]
        for warning in response.get("warnings", ()):
            assert warning.isprintable()
        outcome = "allowed"
        if not response["allowed"]:
            refusal = response["status"]
            outcome = refusal["reason"]
            assert refusal["code"] in CODES, refusal
            assert refusal["message"].replace("\n", "").isprintable(), refusal["message"]
        self.covered[f"{plural}: {outcome}"] += 1
        for create in self.desk.ledger.due(self.desk.now):
            self.desk.ledger.release(create.uid)
        assert self.desk.ledger.reserved("blue") <= LIMIT


WANTED = {
    *OTHERWISE.values(),
    *(
        f"agentjobs: {outcome}"
        for outcome in ("allowed", "Invalid", "Forbidden", "AlreadyExists", "TooManyRequests")
    ),
    *(
        f"{plural}: {outcome}"
        for plural in ("agentteams", "agentpools")
        for outcome in ("allowed", "Invalid")
    ),
}
