"""A stream of runs under faults, and the verdict: every run ends once, none runs twice, none is lost."""

import itertools
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

from tests.live.api import AGENTS, Api, RefusedError
from tests.live.audit import Write
from tests.live.lab import Lab, Run, agentjob, unique
from tests.live.support import eventually

COUNT = 60
SLOTS = 8
_PACE_SECONDS = 0.04  # between two submissions; the whole stream takes about ten times a run
_OUTAGE_SECONDS = 180
_SIMULATOR_TRIES = 3


@dataclass
class Stream:
    """Runs that are submitted one after the other beside the test."""

    pool: str
    before: int
    """How many writes of the operator there were when it began."""
    runs: list[Run] = field(default_factory=list)


@contextmanager
def stream(lab: Lab, random: Random, count: int = COUNT) -> Iterator[Stream]:
    """Submit runs of 50 to 800 ms to a pool of `SLOTS` slots while the block runs; after it all have ended.

    The verdict is the test's: see `assert_once`.
    """
    found = Stream(lab.pool(maxConcurrency=SLOTS), len(lab.audit.by_operator()))
    durations = [random.randint(50, 800) for _ in range(count)]
    failures: list[BaseException] = []

    def submit() -> None:
        try:
            with Api(lab.cluster) as api:
                for duration in durations:
                    found.runs.append(_submit(lab, api, found.pool, f"{duration}ms"))
                    pace.wait(_PACE_SECONDS)
        except BaseException as error:
            failures.append(error)

    pace = threading.Event()
    thread = threading.Thread(target=submit, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        thread.join(_OUTAGE_SECONDS)
    assert not failures, failures
    assert len(found.runs) == count
    _all_end(lab, found.runs)


def after_writes(lab: Lab, stream: Stream, count: int) -> None:
    """Return when the operator has done so many writes since the stream began."""
    eventually(lambda: len(lab.audit.by_operator()) - stream.before >= count, seconds=60, every=0.002)


def assert_once(lab: Lab, stream: Stream, *, outage: bool = False) -> None:
    """Judge a stream that has ended from the audit log and from what is stored.

    Args:
        outage: the API server or etcd was away: what a killed server did last may not be in its log, and
            Kubernetes' own Job controller may have started a pod again whose creation was not answered.
    """
    writes = lab.audit.by_operator()[stream.before :]
    creates = _by_name(write for write in writes if write.what == "create jobs")
    ends = _by_name(write for write in writes if write.terminal)
    jobs, pods = (_by_run(lab, path) for path in ("/apis/batch/v1", "/api/v1"))
    for run, status in zip(stream.runs, lab.statuses(stream.runs), strict=True):
        assert status["phase"] == "SUCCEEDED", status
        for attempts in (creates.get(run.job_name, []), ends.get(run.name, [])):
            done = [write for write in attempts if write.done]
            assert len(done) <= 1, attempts
            # Of a write whose client was killed the log cannot tell whether it was done: what is stored can.
            assert done or outage or any(write.uncertain for write in attempts), attempts
        assert jobs.get(run.uid) == [run.job_name] == [status["k8sJobName"]], (jobs.get(run.uid), status)
        assert outage or pods.get(run.uid) == [status["podName"]], (pods.get(run.uid), status)
    assert len({run.uid for run in stream.runs}) == len(stream.runs)
    # What is there was created once: nothing was ever removed to make room for a second one.
    names = {run.job_name for run in stream.runs}
    assert [w for w in lab.audit.writes() if w.verb == "delete" and w.name in names and w.done] == []
    if not outage:
        assert _peak(lab, stream, creates) <= SLOTS


def _all_end(lab: Lab, runs: list[Run]) -> None:
    """Wait until every run has ended.

    After an outage the simulator sometimes forgets pods that it had begun; started again, it plays them to
    their end. A kubelet would not forget, and the verdict is on the operator alone.
    """
    for _ in range(_SIMULATOR_TRIES - 1):
        try:
            lab.all_end(runs, seconds=_OUTAGE_SECONDS / _SIMULATOR_TRIES)
        except AssertionError:
            lab.cluster.restart("kwok-controller")
        else:
            return
    lab.all_end(runs, seconds=_OUTAGE_SECONDS)


def _submit(lab: Lab, api: Api, pool: str, duration: str) -> Run:
    """Create an AgentJob, also when the answer to it is lost."""
    collection = f"{AGENTS}/namespaces/default/agentjobs"
    manifest = agentjob(unique("storm"), pool, duration, "", 0, {})
    name = manifest["metadata"]["name"]

    def create() -> Run:
        try:
            metadata = api.create(collection, manifest)["metadata"]
        except RefusedError as error:
            if error.code != 409:
                raise
            metadata = api.request("GET", f"{collection}/{name}")["metadata"]
        return Run(lab.api, "default", name, metadata["uid"])

    return eventually(create, seconds=_OUTAGE_SECONDS, every=0.2)


def _by_name(writes: Iterable[Write]) -> dict[str, list[Write]]:
    found: dict[str, list[Write]] = {}
    for write in writes:
        found.setdefault(write.name, []).append(write)
    return found


def _by_run(lab: Lab, group: str) -> dict[str, list[str]]:
    """The names of the Jobs or pods of every run, by its uid."""
    kind = "pods" if group == "/api/v1" else "jobs"
    found: dict[str, list[str]] = {}
    for item in lab.api.items(f"{group}/namespaces/default/{kind}?labelSelector=agentjobs.dev/run-uid"):
        metadata = item["metadata"]
        found.setdefault(metadata["labels"]["agentjobs.dev/run-uid"], []).append(metadata["name"])
    return found


def _peak(lab: Lab, stream: Stream, creates: dict[str, list[Write]]) -> int:
    """The most runs that were between the creation of their Job and the end of their pod at one time."""
    ended = {
        write.name: write.received  # the last one counts: the end
        for write in lab.audit.writes()
        if write.what == "patch pods/status" and write.done
    }
    moments = []
    for run, status in zip(stream.runs, lab.statuses(stream.runs), strict=True):
        attempts = sorted(creates[run.job_name], key=lambda write: (write.done, write.uncertain))
        moments.append((attempts[-1].answered, 1))
        moments.append((ended[status["podName"]], -1))
    return max(itertools.accumulate(step for _, step in sorted(moments)))
