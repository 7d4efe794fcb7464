"""What people are told, and that nothing which can be sent breaks the telling."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agentjobs.apis.agentjob import AgentJobSpec, Priority
from agentjobs.apis.validation import validate, validate_status, validate_update
from tests.unit.apis.bounds import JOB, POOL, TEAM
from tests.unit.apis.rows import minimal, put, with_field

ROOT = Path(__file__).parents[3]


def told(manifest: Any) -> list[str]:
    return [str(fault) for fault in validate(manifest)]


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        (
            "spec.resources.cpuMillicores",
            50,
            "spec.resources.cpuMillicores: 50 is below the minimum of 100 millicores; use 100 to 8000",
        ),
        (
            "spec.resources.timeoutSeconds",
            7201,
            "spec.resources.timeoutSeconds: 7201 is above the maximum of 7200 seconds; use 30 to 7200",
        ),
        (
            "spec.resources.memoryMb",
            "2048",
            'spec.resources.memoryMb: "2048" is not a whole number; '
            "write it without quotes and use 128 to 32768",
        ),
        ("spec.retries", True, "spec.retries: true is not a whole number; use 0 to 5"),
        ("spec.retries", 1.5, "spec.retries: 1.5 is not a whole number; use 0 to 5"),
        (
            "spec.agentImage",
            "nginx",
            'spec.agentImage: "nginx" is not of the required form; name a tag or a digest, such as '
            "registry.example.com/team/agent:1.0 or agent@sha256:<64 hex digits>",
        ),
        ("spec.teamId", "ab", 'spec.teamId: "ab" has 2 characters, the minimum is 3; use 3 to 64 characters'),
        ("spec.teamId", None, "spec.teamId: is required; use 3 to 64 characters"),
        (
            "spec.priority",
            "CRITICAL",
            'spec.priority: "CRITICAL" is none of critical, high, default, low; use "critical"',
        ),
        (
            "spec.priority",
            "urgent",
            'spec.priority: "urgent" is none of critical, high, default, low; use one of them',
        ),
        ("spec.environment", {"A": 5}, "spec.environment[A]: 5 is not text; put it in quotes"),
        (
            "spec.environment",
            {"A=B": "x"},
            'spec.environment[A=B]: "A=B" is not of the required form; '
            "use printable ASCII characters other than '='",
        ),
        (
            "spec.environment",
            {"POD_NAME": "x", "K8S_NAMESPACE": "y"},
            "spec.environment: Reserved env vars: K8S_NAMESPACE, POD_NAME; "
            "the runtime sets them, choose other names",
        ),
        (
            "spec.cancel",
            False,
            "spec.cancel: false is not a request; leave it out to let the run go on, set true to cancel",
        ),
        (
            "spec.inputPayload",
            {"a": "x" * 70_000},
            "spec.inputPayload: has 70008 bytes when serialised, the maximum is 65536; "
            "pass a reference to the data instead",
        ),
        ("spec.command", ["x"] * 65, "spec.command: a list has more than 64 entries; use at most 64 items"),
        ("spec.secrets", [{"name": "a"}] * 2, "spec.secrets: names a twice; name each once"),
        ("spec", 5, "spec: 5 is not an object; write an object"),
    ],
)
def test_a_fault_names_field_value_rule_and_way_out(path: str, value: Any, sentence: str) -> None:
    assert told(with_field(JOB, path, value)) == [sentence]


def test_all_faults_are_told_at_once_in_the_order_of_the_fields() -> None:
    manifest = minimal(JOB)
    manifest["spec"] = {
        "retries": 9,
        "environment": {"POD_NAME": "", "A": 1, "NODE_NAME": "x"},
        "resources": {"gpuCount": -1, "cpuMillicores": 1},
        "teamId": "x",
        "agentImage": "x",
    }
    faults = validate(manifest)
    assert [fault.path for fault in faults] == [
        "spec.agentImage",
        "spec.teamId",
        "spec.resources.cpuMillicores",
        "spec.resources.gpuCount",
        "spec.environment",
        "spec.environment[A]",
        "spec.retries",
    ]
    assert faults == validate(json.loads(json.dumps(manifest)))


def test_every_resource_above_its_limit_is_told() -> None:
    pools = {"p": {"guaranteed": {"slots": 3, "gpuCount": 2}, "limit": {"slots": 1, "gpuCount": 1}}}
    assert told(with_field(TEAM, "spec.pools", pools)) == [
        "spec.pools[p].guaranteed.slots: 3 is above limit.slots, which is 1; "
        "lower the one or raise the other",
        "spec.pools[p].guaranteed.gpuCount: 2 is above limit.gpuCount, which is 1; "
        "lower the one or raise the other",
    ]


@pytest.mark.parametrize(
    ("manifest", "paths"),
    [
        (None, [""]),
        ([], [""]),
        ({}, ["apiVersion", "kind"]),
        ({"apiVersion": "agentjobs.dev/v1", "kind": "AgentJob"}, ["apiVersion"]),
        ({"apiVersion": "agentjobs.dev/v1alpha1", "kind": ["AgentJob"]}, ["kind"]),
        ({"apiVersion": "agentjobs.dev/v1alpha1", "kind": "AgentJob", "metadata": 5}, ["metadata", "spec"]),
    ],
)
def test_what_is_no_manifest_is_told_too(manifest: Any, paths: list[str]) -> None:
    assert [fault.path for fault in validate(manifest)] == paths


def test_long_and_hostile_values_are_cut_and_escaped() -> None:
    (sentence,) = told(with_field(JOB, "spec.environment", {"\u202eevil\n": "x"}))
    assert "\\u202eevil\\n" in sentence
    (sentence,) = told(with_field(JOB, "spec.teamId", "x" * 1000))
    assert len(sentence) < 200
    (sentence,) = told(with_field(JOB, "spec.retries", 10**5000))
    assert "a very large number" in sentence


def test_input_that_is_nested_too_deeply_is_refused() -> None:
    payload: dict[str, Any] = {}
    for _ in range(100_000):
        payload = {"a": payload}
    manifest = with_field(JOB, "spec.inputPayload", payload)
    (fault,) = validate(manifest)
    assert (fault.path, fault.problem) == ("spec.inputPayload", "is nested too deeply")
    assert "spec.inputPayload" in {fault.path for fault in validate_update(minimal(JOB), manifest)}
    while payload:  # or the interpreter takes it apart by recursion
        payload = payload.pop("a")


def test_an_update_is_not_refused_for_what_was_stored_before() -> None:
    old = with_field(JOB, "spec.teamId", "x")  # stored when ids could be shorter
    new = with_field(JOB, "spec.teamId", "x")
    put(new, "spec.cancel", True)
    assert validate_update(old, new) == []
    put(new, "spec.retries", 9)
    assert [fault.path for fault in validate_update(old, new)] == ["spec.retries", "spec.retries"]


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        (
            "spec.agentImage",
            "agent:2",
            'spec.agentImage: "agent:2" is immutable after creation (it is "agent:1"); create a new AgentJob',
        ),
        (
            "spec.resources.cpuMillicores",
            2000,
            "spec.resources.cpuMillicores: 2000 is immutable after creation (it is 1000); "
            "create a new AgentJob",
        ),
        (
            "spec.priority",
            "high",
            'spec.priority: "high" is immutable once the run has left PENDING (it is default and RUNNING); '
            "cancel the run and create a new AgentJob",
        ),
        ("spec.args", ["x"], "spec.args: is immutable after creation; create a new AgentJob"),
    ],
)
def test_a_refused_change_says_what_is_stored(path: str, value: Any, sentence: str) -> None:
    old = {**minimal(JOB), "status": {"phase": "RUNNING"}}
    assert [str(fault) for fault in validate_update(old, with_field(JOB, path, value))] == [sentence]


def test_objects_of_other_versions_can_be_read() -> None:
    spec = AgentJobSpec.model_validate(
        {"agentImage": "a:1", "teamId": "red", "removedField": {"x": 1}, "resources": {"diskMb": 5}}
    )
    assert spec.priority is Priority.DEFAULT
    assert spec.resources.cpu_millicores == 1000
    assert spec.to_manifest()["resources"]["timeoutSeconds"] == 600


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
NAMES = [
    *("agentImage", "teamId", "resources", "environment", "inputPayload", "secrets", "cancel", "priority"),
    *("pools", "members", "namespaces", "capacity", "sandbox", "drain", "conditions", "phase", "result"),
]


@given(
    kind=st.sampled_from([JOB, TEAM, POOL]),
    spec=st.dictionaries(st.sampled_from(NAMES), JSON, max_size=6) | JSON,
    status=st.dictionaries(st.sampled_from(NAMES), JSON, max_size=6) | JSON,
    old=JSON,
)
def test_whatever_is_sent_gets_an_answer(kind: str, spec: Any, status: Any, old: Any) -> None:
    manifest = {**minimal(kind), "spec": spec, "status": status}
    before = {**minimal(kind), "spec": old, "status": old}
    found = [*validate(manifest), *validate_update(before, manifest), *validate_status(before, manifest)]
    for fault in found:
        assert str(fault).isprintable()
        assert fault.path
        assert fault.use


SHIPPED = [
    pytest.param(document, id=f"{file.relative_to(ROOT)} {document['metadata']['name']}")
    for folder in ("examples", "deploy")
    for file in sorted((ROOT / folder).rglob("*.yaml"))
    for document in yaml.safe_load_all(file.read_text(encoding="utf-8"))
    if document and str(document.get("apiVersion")).startswith("agentjobs.dev/")
]


@pytest.mark.parametrize("manifest", SHIPPED)
def test_manifests_that_are_shipped_are_valid(manifest: Any) -> None:
    assert told(manifest) == []
