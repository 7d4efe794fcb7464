"""How many admission reviews the webhook's server answers, and how fast, over TLS as API servers ask."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import ssl
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection

from agentjobs.admission.server import Server
from agentjobs.apis.records import AgentJobRecord, SettingsRecord
from agentjobs.cluster.certificates import Certificates
from agentjobs.cluster.session import Session
from agentjobs.controller.boundary import Boundary
from agentjobs.controller.state import State
from agentjobs.scheduling.fairshare import FairShare
from benchmarks import usage
from benchmarks.client import run
from benchmarks.report import Report

CONNECTIONS = (1, 16, 64)
REVIEWS = 6000
TEAMS, PENDING = 100, 4000
PREFIX = "/secret/1"
HOST = "127.0.0.1"


def measure() -> Report:
    """Ask a server in a process of its own, over 1, 16 and 64 connections that are kept."""
    report = Report(
        "admission",
        f"{REVIEWS:,} reviews of creates over TLS connections that are kept, asked by a process beside the "
        f"server's. {TEAMS} teams have {PENDING:,} waiting runs in a pool of 16 slots, all taken; a create "
        "is validated, counted, reserved and told what to expect. On one core: per CPU second of the server.",
    )
    for connections in CONNECTIONS:
        ours, theirs = multiprocessing.get_context("spawn").Pipe()
        server = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,), daemon=True)
        server.start()
        try:
            port, authority = ours.recv()
            assert server.pid is not None
            _measure(report, server.pid, port, authority, connections)
        finally:
            server.terminate()
            server.join()
    return report


def _measure(report: Report, pid: int, port: int, authority: bytes, connections: int) -> None:
    run(_ask(port, authority, _bodies("warm-up", 200), connections))
    bodies = _bodies(f"run-{connections}", REVIEWS)
    used, began, before = usage.cpu_seconds(pid), time.perf_counter(), usage.machine()
    own = time.process_time()
    delays = sorted(run(_ask(port, authority, bodies, connections)))
    took, cpu = time.perf_counter() - began, usage.cpu_seconds(pid) - used
    busy, total = (now - then for now, then in zip(usage.machine(), before, strict=True))
    report.noise.append(max(0.0, busy - cpu - (time.process_time() - own)) / total)
    words = f"{connections} connection{'s' if connections > 1 else ''}"
    goal = {16: 20.0}.get(connections)
    report.add(f"{words}: reviews on one core", [REVIEWS / cpu], "/s", goal=1500, at_least=True)
    report.add(f"{words}: reviews in all", [REVIEWS / took], "/s")
    report.add(f"{words}: p50", [delays[len(delays) // 2] * 1000], "ms")
    report.add(f"{words}: p99", [delays[len(delays) * 99 // 100] * 1000], "ms", goal=goal)


# -- the server's process --------------------------------------------------------------------------------


def _serve(pipe: Connection) -> None:
    run(_answer(pipe))


async def _answer(pipe: Connection) -> None:
    state = State(lambda: time.time_ns() // 1000, FairShare, lambda *_: {})
    spec = {"requireTeams": False, "maxConcurrency": 16, "maxPendingPerTeam": 100_000}
    state.catalogue.agentpools.stored(
        SettingsRecord(json.dumps({"metadata": {"name": "default"}, "spec": spec}).encode())
    )
    state.catalogue_changed()
    state.take_edits()
    boundary = Boundary(Session(), state)
    for number in range(PENDING):
        record = AgentJobRecord(_stored(number))
        state.agentjob_changed(None, record)
        boundary.ledger.changed(None, record)
    for uid in list(state.runs):
        state.settle(state.runs[uid])
    for start in state.pools["default"].decide(time.time_ns() // 1000).starts:
        state.decide(start)
    boundary.open()
    certificates = Certificates([HOST])
    server = Server(boundary.hooks, lambda: PREFIX, boundary.closed)
    async with server.listening(HOST, 0, certificates.ssl_context) as port:
        pipe.send((port, certificates.bundle))
        await asyncio.Event().wait()


def _manifest(name: str, team: int) -> dict[str, object]:
    return {
        "apiVersion": "agentjobs.dev/v1alpha1",
        "kind": "AgentJob",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "creationTimestamp": "2026-11-29T12:00:00Z",
            "generation": 1,
            "managedFields": [
                {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {"f:teamId": {}}}}
            ],
        },
        "spec": {
            "agentImage": "registry.example.com/agents/compute:1.4.2",
            "teamId": f"team-{team % TEAMS}",
            "priority": "default",
            "pool": "default",
            "retries": 0,
            "idempotencyKey": f"key-of-{name}",
            "environment": {"MODEL": "large", "REGION": "north"},
            "inputPayload": {"question": "what is the answer?", "context": ["a" * 500]},
            "resources": {"cpuMillicores": 1000, "memoryMb": 2048, "gpuCount": 0, "timeoutSeconds": 600},
        },
        "status": {"observedGeneration": -1, "phase": "PENDING"},
    }


def _stored(number: int) -> bytes:
    manifest = _manifest(f"stored-{number}", number)
    metadata = manifest["metadata"]
    assert isinstance(metadata, dict)
    metadata["resourceVersion"] = str(number + 1)
    return json.dumps(manifest).encode()


# -- the asking process ----------------------------------------------------------------------------------


def _bodies(name: str, count: int) -> list[bytes]:
    """Return whole HTTP requests: what asks must cost little beside what answers."""
    requests = []
    for number in range(count):
        manifest = _manifest(f"{name}-{number}", number)
        request = {
            "uid": f"question-{number}",
            "operation": "CREATE",
            "name": f"{name}-{number}",
            "namespace": "default",
            "userInfo": {"username": "jane", "groups": ["system:authenticated"]},
            "object": manifest,
            "oldObject": None,
            "dryRun": False,
        }
        body = json.dumps(
            {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        ).encode()
        head = f"POST {PREFIX}/agentjobs HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        requests.append(head.encode() + body)
    return requests


async def _ask(port: int, authority: bytes, requests: Sequence[bytes], connections: int) -> list[float]:
    """Send every request; return how long each answer took, in seconds."""
    tls = ssl.create_default_context(cadata=authority.decode())
    waiting, delays = iter(requests), list[float]()

    async def client() -> None:
        reader, writer = await asyncio.open_connection(HOST, port, ssl=tls)
        for request in waiting:
            began = time.perf_counter()
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            answer = await reader.readexactly(length)
            delays.append(time.perf_counter() - began)
            assert b'"allowed":true' in answer, answer
        writer.close()

    await asyncio.gather(*(client() for _ in range(connections)))
    return delays
