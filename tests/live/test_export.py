"""`agentjobs export` of a real cluster, and its replay."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.live.lab import Lab

COMMAND = (sys.executable, "-m", "agentjobs.cli.main")


def test_what_a_cluster_ran_can_be_replayed(lab: Lab, tmp_path: Path) -> None:
    pool = lab.pool(maxConcurrency=1, maxPendingPerTeam=20)
    ended = [lab.submit(pool, duration="1s") for _ in range(2)]
    lab.all_end(ended, seconds=60)
    waiting = [lab.submit(pool, duration="1h", priority="high") for _ in range(2)]
    waiting[0].reaches("RUNNING")

    environment = {**os.environ, "KUBECONFIG": str(lab.cluster.kubeconfig)}
    exported = subprocess.run(
        [*COMMAND, "export"], env=environment, capture_output=True, text=True, check=True
    )
    lines = [json.loads(line) for line in exported.stdout.splitlines()]
    runs = [line for line in lines if line.get("pool") == pool]
    assert {run["run"].partition("/")[2] for run in runs} == {run.name for run in (*ended, *waiting)}
    assert all(run["runSeconds"] <= 5 for run in runs[:2])

    trace, found = tmp_path / "trace.jsonl", tmp_path / "found.json"
    trace.write_text(exported.stdout)
    subprocess.run([*COMMAND, "simulate", str(trace), "--pool", pool, "--json", str(found)], check=True)
    replay = json.loads(found.read_text())
    assert replay["capacity"]["slots"] == 1
    assert replay["classes"]["high"]["runs"] == 2
    assert replay["promises"]["broken"] == {}
