"""`agentjobs export`: what a cluster stores, as a trace that `simulate` reads."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import kopf
import pytest

from agentjobs.apis import times
from agentjobs.cli import export
from agentjobs.cluster import session as sessions
from agentjobs.cluster.session import Session
from agentjobs.scheduling.fairshare import FairShare
from agentjobs.simulation.engine import simulate
from agentjobs.simulation.files import opened
from agentjobs.simulation.setup import of_trace
from tests.unit.cluster.fake_api import FakeApi
from tests.unit.cluster.fake_server import served

NOW = times.parse("2026-11-29T12:10:00Z") or 0


@pytest.fixture
async def api() -> FakeApi:
    return FakeApi()


@pytest.fixture
async def session(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Session]:
    async with served(api) as url, Session() as session:
        monkeypatch.setattr(sessions, "log_in", lambda: kopf.ConnectionInfo(server=url))
        yield session


def job(name: str, created: str, team: str = "blue", **status: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "creationTimestamp": f"2026-11-29T{created}Z"},
        "spec": {
            "teamId": team,
            "pool": "gpu",
            "priority": "high",
            "inputPayload": {"secret": "word"},
            "resources": {"gpuCount": 1, "timeoutSeconds": 900},
        },
        "status": {
            key: f"2026-11-29T{value}Z" if key.endswith("At") else value for key, value in status.items()
        },
    }


async def exported(session: Session) -> list[dict[str, Any]]:
    return [json.loads(line) for line in export.lines(*await export.read(session), NOW)]


async def test_runs_take_what_they_took_and_those_that_have_not_ended_what_others_did(
    api: FakeApi, session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    done = {"phase": "SUCCEEDED", "startedAt": "12:00:10"}
    api.put("agentjobs", job("took-20", "12:00:05", completedAt="12:00:30", **done))
    api.put("agentjobs", job("took-40", "12:00:00", createdAt="12:00:00.25", completedAt="12:00:50", **done))
    api.put("agentjobs", job("waits", "12:05:00"))
    api.put("agentjobs", job("runs", "12:00:01", phase="RUNNING", startedAt="12:00:02"))
    api.put("agentjobs", job("of-red", "12:06:00", team="red"))
    api.put("agentjobs", job("never-started", "12:00:00", phase="CANCELED", completedAt="12:00:01"))
    runs = await exported(session)
    assert [(run["run"], run["runSeconds"]) for run in runs] == [
        ("agents/took-40", 40),
        ("agents/runs", 598),  # it has run so long already
        ("agents/took-20", 20),
        ("agents/waits", 30),  # the median of its team
        ("agents/of-red", 30),  # the median of the pool
    ]
    assert runs[0] == {
        "run": "agents/took-40",
        "team": "blue",
        "pool": "gpu",
        "priority": "high",
        "submitted": "2026-11-29T12:00:00.250000Z",
        "runSeconds": 40,
        "cpuMillicores": 1000,
        "memoryMb": 2048,
        "gpuCount": 1,
        "timeoutSeconds": 900,
    }
    assert capsys.readouterr().err == "agentjobs: runs left out, because they ended without a start: 1\n"


async def test_without_any_that_ended_a_run_takes_its_timeout(api: FakeApi, session: Session) -> None:
    api.put("agentjobs", job("waits", "12:05:00"))
    assert [run["runSeconds"] for run in await exported(session)] == [900]


async def test_pools_and_teams_come_without_what_is_nobodys_business(
    api: FakeApi, session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = {"capacity": {"nodes": {"matchLabels": {"x": "y"}}}, "maxConcurrency": 4, "hold": True}
    api.put(
        "agentpools",
        {"metadata": {"name": "gpu"}, "spec": nodes, "status": {"capacity": {"slots": 4, "gpuCount": 2}}},
    )
    api.put("agentpools", {"metadata": {"name": "new"}, "spec": nodes})
    team = {
        "teamId": "Blue",
        "members": {"users": ["alice"]},
        "secrets": ["ns/key"],
        "pools": {"gpu": {"weight": 3}},
    }
    api.put("agentteams", {"metadata": {"name": "blue"}, "spec": team})
    pools_and_teams = await exported(session)
    assert [each["spec"] for each in pools_and_teams] == [
        {"maxConcurrency": 4, "capacity": {"fixed": {"gpuCount": 2}}},
        {"maxConcurrency": 4},
        {"teamId": "Blue", "pools": {"gpu": {"weight": 3}}},
    ]
    assert "the nodes of pool new" in capsys.readouterr().err


async def test_of_two_teams_with_one_id_the_older_one_is_written(
    api: FakeApi, session: Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def team(name: str, created: str, weight: int, **more: str) -> None:
        metadata = {"name": name, "creationTimestamp": f"2026-11-{created}T12:00:00Z"}
        api.put("agentteams", {"metadata": metadata, "spec": {**more, "pools": {"gpu": {"weight": weight}}}})

    team("blue", "29", 1)
    team("later", "30", 2, teamId="blue")
    team("older", "28", 3, teamId="blue")
    team("red", "30", 4)
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in await exported(session)))
    with opened(path) as trace:
        assert {name: spec.pools["gpu"].weight for name, spec in trace.teams.items()} == {"blue": 3, "red": 4}
    assert capsys.readouterr().err == (
        "agentjobs: AgentTeam blue left out: older, which is older, has its id blue\n"
        "agentjobs: AgentTeam later left out: older, which is older, has its id blue\n"
    )


async def test_what_is_exported_can_be_replayed(api: FakeApi, session: Session, tmp_path: Path) -> None:
    spec = {"maxConcurrency": 1, "requireTeams": False}
    api.put("agentpools", {"metadata": {"name": "gpu"}, "spec": spec})
    for number in range(600):  # more than a page
        api.put(
            "agentjobs",
            job(
                f"run-{number:03}",
                "12:00:00",
                phase="SUCCEEDED",
                startedAt="12:00:00",
                completedAt="12:00:10",
            ),
        )
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in await exported(session)))
    with opened(path) as trace:
        result = simulate(trace.runs, of_trace(trace), FairShare(), trace.pool_name)
    (part,) = result.parts.values()
    assert (len(part.waits), part.refused) == (50, 550)  # fifty may wait


def test_a_cluster_that_cannot_be_reached_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from agentjobs.cli.main import main

    monkeypatch.setattr(sessions, "log_in", lambda: kopf.ConnectionInfo(server="http://127.0.0.1:1"))
    assert main(["export"]) == 1
    assert "agentjobs: GET /apis/agentjobs.dev/v1alpha1/agentpools: " in capsys.readouterr().err
