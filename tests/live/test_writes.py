"""What a run costs the API server, counted from the audit log."""

from collections import Counter

import pytest

from tests.live.audit import Write
from tests.live.lab import Lab, Run
from tests.live.support import eventually

AT_ONCE = 200
STATUS = "patch agentjobs/status"
IN_ORDER = ["PENDING", "SCHEDULED", "RUNNING", "SUCCEEDED"]


def test_idle_run_costs_one_post_and_three_patches(lab: Lab) -> None:
    pool = lab.pool()
    lab.submit(pool).reaches("SUCCEEDED")  # the pool's NetworkPolicy stands from here on
    before = len(_of_runs(lab))
    runs = []
    for _ in range(3):
        run = lab.submit(pool, duration="1s")
        _completes(run)
        runs.append(run)
    # Everything that the operator wrote meanwhile, whatever it was, but what it tells of the pool.
    writes = _of_runs(lab)[before:]
    assert {write.name for write in writes} == {name for run in runs for name in (run.name, run.job_name)}
    for run in runs:
        costs = _costs(writes, run)
        assert costs["create jobs"] == 1
        assert costs[STATUS] <= 3
        assert set(costs) == {"create jobs", STATUS}
    assert all(write.done for write in writes)


def test_run_that_waits_is_told_once(lab: Lab) -> None:
    pool = lab.pool(maxConcurrency=1)
    holder = lab.submit(pool, duration="1h")
    holder.reaches("RUNNING")
    waiting = [lab.submit(pool) for _ in range(2)]
    # Nothing is written of a run before it has waited for two seconds, and then once.
    for run in waiting:
        run.reaches("PENDING", "BehindOwn" if run is waiting[1] else "NoFreeSlot")
    # The second is first in line now, has another reason, and yet hears of it only after half a minute.
    waiting[0].delete()
    lab.submit(pool).reaches("PENDING", "BehindOwn")
    eventually(lambda: [w.phase for w in lab.audit.by_operator(waiting[1].name)] == ["PENDING"])
    holder.delete()
    _completes(waiting[1])
    costs = _costs(lab.audit.by_operator(), waiting[1])
    assert costs["create jobs"] == 1
    assert costs[STATUS] <= 4


def test_run_that_starts_within_two_seconds_is_not_told_that_it_waits(lab: Lab) -> None:
    pool = lab.pool(maxConcurrency=1)
    first, second = (lab.submit(pool, duration="500ms") for _ in range(2))
    lab.all_end([first, second], seconds=30)
    assert "PENDING" not in [write.phase for write in lab.audit.by_operator(second.name)]


def test_many_at_once(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    pool = lab.pool()
    lab.submit(pool).reaches("SUCCEEDED")
    before = len(_of_runs(lab))
    runs = [lab.submit(pool, duration="500ms") for _ in range(AT_ONCE)]
    statuses = lab.all_end(runs, seconds=120)
    assert {status["phase"] for status in statuses} == {"SUCCEEDED"}
    eventually(lambda: all(_job_is_complete(run) for run in runs))
    writes = _of_runs(lab)[before:]
    for run in runs:
        costs = _costs(writes, run)
        assert costs["create jobs"] == 1
        assert sum(costs.values()) <= 4, costs
        told = [write.phase or "" for write in writes if write.name == run.name and write.done]
        assert told == sorted(set(told), key=IN_ORDER.index)
    mean = len(writes) / AT_ONCE
    with capsys.disabled():
        print(
            f"\n{AT_ONCE} runs at once: {mean:.2f} writes a run (goal: 3), {Counter(w.what for w in writes)}"
        )


def _of_runs(lab: Lab) -> list[Write]:
    """What the operator wrote so far, but for the status of pools: that is once a second at most."""
    return [write for write in lab.audit.by_operator() if write.resource != "agentpools/status"]


def _completes(run: Run) -> None:
    """Wait for the end, and until Kubernetes has nothing more to tell of it."""
    run.reaches("SUCCEEDED")
    eventually(lambda: _job_is_complete(run))


def _job_is_complete(run: Run) -> bool:
    job = run.job()
    assert job is not None
    conditions = job["status"].get("conditions", [])
    return any(condition["type"] == "Complete" for condition in conditions)


def _costs(writes: list[Write], run: Run) -> Counter[str]:
    return Counter(write.what for write in writes if write.name in (run.name, run.job_name))
