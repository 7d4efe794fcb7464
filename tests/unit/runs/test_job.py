"""The Job of a run: golden manifests whole, and what holds for every one."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from agentjobs.apis import names
from agentjobs.apis.agentjob import AgentJobSpec
from agentjobs.apis.agentpool import AgentPoolSpec
from agentjobs.errors import InvalidRunError
from agentjobs.runs import decision as decisions
from agentjobs.runs.job import job_manifest
from tests.unit.runs.objects import CREATED, DECISION, UID

JSON = dict[str, Any]
GOLDEN = Path(__file__).parent / "golden"

MINIMAL: JSON = {"agentImage": "agent:1", "teamId": "blue"}
EVERYTHING: JSON = {
    "agentImage": "registry.example.com:5000/team/agent:1.0@sha256:" + "0123456789abcdef" * 4,
    "teamId": "team $(blue)",
    "priority": "critical",
    "resources": {"cpuMillicores": 1500, "memoryMb": 4096, "gpuCount": 2, "timeoutSeconds": 3600},
    "environment": {"MODEL": "large", "HOME": "/workspace", "AGENT_ATTEMPT": "7", "PRICE": "$5 $(HOME) $$"},
    "inputPayload": {"question": "What is 6 · 7?", "limits": {"tokens": 1000}},
    "command": ["/bin/agent", "$(MODEL)"],
    "args": ["--verbose", "a$b"],
    "secrets": [
        {"name": "model-key", "exposeAs": "files"},
        {"name": "settings", "exposeAs": "env"},
        {"name": "more.files"},
    ],
    "pool": "gpu",
}
EVERYTHING_POOL: JSON = {
    "startTimeoutSeconds": 120,
    "capacity": {"nodes": {"matchLabels": {"pool": "gpu"}}},
    "sandbox": {
        "runtimeClassName": "gvisor",
        "registries": ["registry.example.com:5000/team"],
        "imagePullPolicy": "IfNotPresent",
        "imagePullSecrets": ["pull"],
        "nodeSelector": {"kind": "gpu"},
        "tolerations": [
            {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "lost", "value": "soon", "effect": "NoExecute", "tolerationSeconds": 60},
        ],
        "ephemeralStorageMb": 4000,
    },
}


def manifest(spec: JSON, pool: JSON | None = None, **changes: Any) -> JSON:
    settings = AgentPoolSpec.model_validate(pool or {})
    decided = structs.replace(DECISION, start_seconds=settings.start_timeout_seconds)
    arguments: JSON = {
        "name": "nightly",
        "namespace": "agents",
        "uid": UID,
        "created": CREATED,
        "spec": AgentJobSpec.model_validate(spec),
        "pool": settings,
        "decision": decided,
    }
    return job_manifest(**(arguments | changes))


def pod_of(job: JSON) -> JSON:
    pod: JSON = job["spec"]["template"]["spec"]
    return pod


def container_of(job: JSON) -> JSON:
    (container,) = pod_of(job)["containers"]
    assert isinstance(container, dict)
    return container


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("minimal", manifest(MINIMAL)),
        (
            "everything",
            manifest(
                EVERYTHING,
                EVERYTHING_POOL,
                allowed_secrets=frozenset({"agents/model-key", "agents/settings", "agents/more.files"}),
                annotations={"sim.agentjobs.dev/duration": "20s"},
                decision=structs.replace(
                    DECISION,
                    attempt=2,
                    pool="gpu",
                    priority="critical",
                    gpu_count=2,
                    start_seconds=45,
                    hole=True,
                    avoid_node="node-7",
                ),
            ),
        ),
    ],
)
def test_the_whole_job_is_as_agreed(name: str, made: JSON) -> None:
    """After a change on purpose, write the files anew with UPDATE_GOLDEN=1 and read the difference."""
    path = GOLDEN / f"{name}.yaml"
    plain = json.loads(json.dumps(made))
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=100))
    assert plain == yaml.safe_load(path.read_text())


# -- what holds for every run ------------------------------------------------------------------------

texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=30)
payloads: st.SearchStrategy[JSON] = st.dictionaries(
    texts,
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
        lambda parts: st.lists(parts, max_size=3) | st.dictionaries(texts, parts, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)
variables = st.dictionaries(
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,10}", fullmatch=True)
    | st.sampled_from(["AGENT_JOB_ID", "AGENT_RESULT_FILE", "HOME", "PATH", "TMPDIR"]),
    texts | st.text("$()AB", max_size=12),
    max_size=6,
)
specs = st.fixed_dictionaries(
    {
        "agentImage": st.just("agent:1"),
        "teamId": st.text(st.characters(codec="utf-8"), min_size=3, max_size=64),
        "resources": st.fixed_dictionaries(
            {
                "cpuMillicores": st.integers(100, 8000),
                "memoryMb": st.integers(128, 32768),
                "gpuCount": st.integers(0, 4),
                "timeoutSeconds": st.integers(30, 7200),
            }
        ),
        "environment": variables,
        "inputPayload": payloads,
        "command": st.lists(st.text("$()AB", max_size=12), max_size=3),
        "args": st.lists(texts, max_size=3),
    }
)
pools = st.fixed_dictionaries(
    {
        "startTimeoutSeconds": st.integers(20, 7200),
        "sandbox": st.fixed_dictionaries({"ephemeralStorageMb": st.integers(64, 1_048_576)}),
    }
)


@given(specs, pools)
def test_every_job_keeps_the_contract(spec: JSON, pool: JSON) -> None:
    job = manifest(spec, pool)
    check_restricted(job)
    check_one_pod_only(job)
    check_exactly_what_was_asked_for(job, spec, pool)
    check_environment(job, spec)
    annotations = job["spec"]["template"]["metadata"]["annotations"]
    assert json.loads(annotations[names.ANNOTATION_INPUT]) == spec["inputPayload"]
    assert [expanded(part) for part in container_of(job).get("command", [])] == spec["command"]
    assert [expanded(part) for part in container_of(job).get("args", [])] == spec["args"]


def check_restricted(job: JSON) -> None:
    """The rules of the Pod Security level `restricted`, and those of our own beyond it."""
    pod, container = pod_of(job), container_of(job)
    for field in ("hostNetwork", "hostPID", "hostIPC", "hostname", "priorityClassName", "serviceAccountName"):
        assert field not in pod
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert {kind for volume in pod["volumes"] for kind in volume if kind != "name"} <= {
        "emptyDir",
        "downwardAPI",
        "secret",
    }
    security = pod["securityContext"]
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert security["runAsNonRoot"] is True
    assert security["runAsUser"] > 0
    own = container["securityContext"]
    assert own["allowPrivilegeEscalation"] is False
    assert own["capabilities"] == {"drop": ["ALL"]}
    assert own["privileged"] is False
    assert own["readOnlyRootFilesystem"] is True
    assert own["runAsNonRoot"] is True
    assert not {"runAsUser", "seccompProfile", "procMount"} & own.keys()
    assert not {"ports", "lifecycle", "livenessProbe"} & container.keys()


def check_one_pod_only(job: JSON) -> None:
    assert job["spec"]["backoffLimit"] == 0
    assert job["spec"]["podReplacementPolicy"] == "Failed"
    assert pod_of(job)["restartPolicy"] == "Never"
    assert (
        not {"parallelism", "completions", "suspend", "managedBy", "ttlSecondsAfterFinished"}
        & job["spec"].keys()
    )


def check_exactly_what_was_asked_for(job: JSON, spec: JSON, pool: JSON) -> None:
    asked, storage = spec["resources"], pool["sandbox"]["ephemeralStorageMb"]
    amounts = container_of(job)["resources"]
    assert amounts["requests"] == amounts["limits"]
    assert amounts["limits"] == {
        "cpu": f"{asked['cpuMillicores']}m",
        "memory": f"{asked['memoryMb']}Mi",
        "ephemeral-storage": f"{storage}Mi",
        **({"nvidia.com/gpu": str(asked["gpuCount"])} if asked["gpuCount"] else {}),
    }
    sizes = [volume["emptyDir"]["sizeLimit"] for volume in pod_of(job)["volumes"] if "emptyDir" in volume]
    folders = [int(size.removesuffix("Mi")) for size in sizes]
    assert all(size > 0 for size in folders)
    assert sum(folders) <= storage
    start, timeout = pool["startTimeoutSeconds"], asked["timeoutSeconds"]
    assert pod_of(job)["activeDeadlineSeconds"] == start + timeout
    grace = pod_of(job)["terminationGracePeriodSeconds"]
    assert job["spec"]["activeDeadlineSeconds"] == 2 * start + timeout + grace


def check_environment(job: JSON, spec: JSON) -> None:
    entries = container_of(job)["env"]
    assert len({entry["name"] for entry in entries}) == len(entries)
    values = {entry["name"]: expanded(entry["value"]) for entry in entries if "value" in entry}
    ours = {
        "AGENT_JOB_ID": job["metadata"]["labels"][names.LABEL_JOB_ID],
        "AGENT_TEAM_ID": spec["teamId"],
        "AGENT_ATTEMPT": "1",
        "AGENT_INPUT_FILE": "/agent/input/payload.json",
        "AGENT_RESULT_FILE": container_of(job)["terminationMessagePath"],
    }
    assert values.items() >= (spec["environment"] | ours).items()
    sources = {entry["name"]: entry["valueFrom"]["fieldRef"] for entry in entries if "valueFrom" in entry}
    assert sources == {
        "K8S_NAMESPACE": {"fieldPath": "metadata.namespace"},
        "POD_NAME": {"fieldPath": "metadata.name"},
        "NODE_NAME": {"fieldPath": "spec.nodeName"},
    }


def expanded(text: str) -> str:
    """What the kubelet makes of a value: `$$` is `$`, `$(NAME)` a variable, all else stays."""
    return re.sub(
        r"\$(\$|\(([^)]*)\))", lambda found: "$" if found[1] == "$" else f"<variable {found[2]}>", text
    )


def test_the_job_tells_a_restart_what_was_decided() -> None:
    job = manifest(MINIMAL)
    assert decisions.read(job["metadata"]["annotations"][names.ANNOTATION_RUN]) == DECISION
    (owner,) = job["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("AgentJob", "nightly", UID)
    labels = job["metadata"]["labels"]
    assert labels == job["spec"]["template"]["metadata"]["labels"]
    for value in labels.values():
        assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", value)


@pytest.mark.parametrize("allowed", [frozenset(), {"other/key"}, {"agents/ke"}, {"key"}])
def test_a_secret_must_be_allowed_by_namespace_and_name(allowed: frozenset[str]) -> None:
    with pytest.raises(InvalidRunError, match="Secret agents/key; an administrator can add it") as caught:
        manifest({**MINIMAL, "secrets": [{"name": "key"}]}, allowed_secrets=allowed)
    assert caught.value.reason == "SecretNotAllowed"


def test_an_image_must_come_from_a_registry_of_the_pool() -> None:
    with pytest.raises(InvalidRunError, match=r"'agent:1' is not from .* allowed: quay\.io/team") as caught:
        manifest(MINIMAL, {"sandbox": {"registries": ["quay.io/team"]}})
    assert caught.value.reason == "RegistryNotAllowed"
