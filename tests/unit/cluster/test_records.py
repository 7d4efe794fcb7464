"""Stored objects are never trusted to be complete, nor to be of the types they should be."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentjobs.apis import times
from agentjobs.apis.jobrecords import JobRecord, PodRecord
from agentjobs.apis.records import AgentJobRecord, Record, as_dict

JSON = dict[str, Any]
METADATA = {
    "name": "nightly",
    "namespace": "agents",
    "uid": "6f0cfb6a-0a0e-4d0c-9d0a-3f2f5b1c7d11",
    "resourceVersion": "41",
    "generation": 2,
    "creationTimestamp": "2026-03-02T12:00:00Z",
    "labels": {"a": "b"},
    "annotations": {"sim.agentjobs.dev/duration": "20s", "other": "x"},
}


def agentjob(**parts: Any) -> AgentJobRecord:
    return AgentJobRecord(json.dumps({"metadata": METADATA, **parts}).encode())


def test_an_agentjob_as_it_should_be() -> None:
    spec = {"agentImage": "agent:1", "teamId": "blue", "priority": "high", "pool": "gpu"}
    record = agentjob(spec=spec, status={"phase": "RUNNING", "observedGeneration": 2, "jobId": "01"})
    assert (record.name, record.namespace, record.version, record.generation) == ("nightly", "agents", 41, 2)
    assert record.created == times.parse("2026-03-02T12:00:00Z")
    assert not record.deleting
    assert (record.team, record.priority, record.pool) == ("blue", "high", "gpu")
    assert (record.status.phase, record.status.observed_generation) == ("RUNNING", 2)
    assert as_dict(record.spec) == spec
    assert record.simulation == {"sim.agentjobs.dev/duration": "20s"}


def test_an_ended_run_is_kept_without_its_spec() -> None:
    record = agentjob(spec={"teamId": "blue"}, status={"phase": "FAILED"})
    assert (record.spec, record.simulation) == (b"", {})
    assert record.team == "blue"


def test_a_status_of_an_older_version_is_read_as_far_as_it_goes() -> None:
    record = agentjob(
        spec={"teamId": "blue", "priority": 7, "pool": None},
        status={"phase": "RUNNING", "observedGeneration": "two", "startedAt": 5, "podName": "p", "old": [1]},
    )
    assert (record.team, record.priority, record.pool) == ("blue", "default", "default")
    status = record.status
    assert (status.phase, status.observed_generation, status.started_at) == ("RUNNING", -1, None)
    assert status.pod_name == "p"


@pytest.mark.parametrize("missing", METADATA)
def test_no_part_of_the_metadata_is_needed(missing: str) -> None:
    metadata = {key: value for key, value in METADATA.items() if key != missing}
    for kind in (AgentJobRecord, JobRecord, PodRecord):
        kind(json.dumps({"metadata": metadata}).encode())
        kind(b"{}")


def test_a_job_that_failed() -> None:
    conditions = [
        {"type": "FailureTarget", "status": "True"},
        {"type": "Failed", "status": "True", "reason": "DeadlineExceeded"},
    ]
    record = JobRecord(json.dumps({"metadata": METADATA, "status": {"conditions": conditions}}).encode())
    assert record.finished is not None
    assert record.finished.reason == "DeadlineExceeded"


def test_a_pod_of_another_form_is_a_pod_without_a_status() -> None:
    status = {"phase": "Running", "containerStatuses": [{"name": "agent", "state": "running"}]}
    record = PodRecord(json.dumps({"metadata": METADATA, "status": status, "spec": []}).encode())
    assert (record.status.phase, record.status.container_statuses) == ("Running", [])
    assert (record.node, record.deadline, record.terminal) == ("", None, False)


@pytest.mark.parametrize(
    ("version", "number"), [("41", 41), ("0", 0), ("", 0), ("4x", 0), ("-1", 0), ("²", 0)]
)
def test_a_version_that_is_no_number_is_older_than_any(version: str, number: int) -> None:
    metadata = {**METADATA, "resourceVersion": version}
    assert JobRecord(json.dumps({"metadata": metadata}).encode()).version == number


# -- anything ------------------------------------------------------------------------------------------

fields = st.sampled_from(
    [
        *("phase", "teamId", "priority", "pool", "reason", "observedGeneration", "startedAt", "conditions"),
        *("type", "status", "containerStatuses", "state", "terminated", "exitCode", "nodeName"),
    ]
)
keys = fields | st.text(max_size=4)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda parts: st.lists(parts, max_size=4) | st.dictionaries(keys, parts, max_size=6),
    max_leaves=25,
)


@given(anything, anything)
@example("1e400", {"phase": float("inf")})
@example({"pool": 10**400}, {"conditions": [{"type": {}}]})
def test_nothing_in_spec_and_status_does_harm(spec: Any, status: Any) -> None:
    raw = json.dumps({"metadata": METADATA, "spec": spec, "status": status}).replace("Infinity", "1e400")
    record: Record
    for kind in (AgentJobRecord, JobRecord, PodRecord):
        record = kind(raw.encode())
        assert record.name == "nightly"
    stored = AgentJobRecord(raw.encode())
    assert isinstance(stored.pool, str)
    assert isinstance(as_dict(stored.spec), dict)
    assert isinstance(stored.status.observed_generation, int)


@pytest.mark.parametrize("raw", [b"", b"[", b"[1]", b'"\xff"', b"1e400", b"[" * 5000 + b"]" * 5000])
def test_what_is_no_object_has_no_fields(raw: bytes) -> None:
    assert as_dict(raw) == {}


@pytest.mark.parametrize(
    "raw", [b"[]", b'{"metadata": 1}', b'{"metadata": {"labels": {"a": 1}}}', b'{"metadata": {}, "spec": }']
)
def test_what_no_server_sends_is_refused(raw: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        AgentJobRecord(raw)
