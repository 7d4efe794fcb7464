"""Objects that no schema would let through, and hands that meddle: no crash, and an end that says why.

The CRD is relaxed for these tests, as an administrator's edit or another version of it would do.
"""

import json
import sys
from collections.abc import Iterator

import pytest

from deploy.local import install
from tests.live.api import AGENTS, MERGE_PATCH, Object, RefusedError
from tests.live.lab import Lab, Run, agentjob, unique
from tests.live.support import eventually

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/agentjobs.agentjobs.dev"
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEEP = 5000  # within the API server's own limit of 10,000


@pytest.fixture(scope="module", autouse=True)
def steady(lab: Lab) -> Iterator[None]:
    """Whatever is thrown at the operator, it is the same process at the end, and ready."""
    limit, before = sys.getrecursionlimit(), lab.cluster.pid("operator")
    sys.setrecursionlimit(4 * DEEP)  # the tests themselves read what is nested deeply
    yield
    sys.setrecursionlimit(limit)
    assert lab.cluster.pid("operator") == before
    assert lab.cluster.operator.ready()


@pytest.fixture(scope="module")
def relaxed(lab: Lab) -> Iterator[Lab]:
    """The lab with a CRD that takes anything."""
    crd = lab.api.request("GET", CRD)
    [version] = crd["spec"]["versions"]
    version |= {"schema": {"openAPIV3Schema": ANYTHING}, "selectableFields": None}
    with lab.without_admission():
        lab.api.patch(CRD, {"spec": {"versions": [version]}})
        eventually(lambda: _takes(lab))
        yield lab
        lab.api.delete(f"{AGENTS}/namespaces/default/agentjobs")
        install.custom_resources(lab.cluster.kubectl)
        eventually(lambda: not _takes(lab))


def test_input_that_is_nested_without_end(lab: Lab) -> None:
    """The API server takes what would overflow the stack of most readers."""
    manifest = agentjob(unique("run"), lab.pool(), "1s", "", 0, {"inputPayload": {"list": "HERE"}})
    text = json.dumps(manifest).replace('"HERE"', "[" * DEEP + "]" * DEEP)
    with pytest.raises(RefusedError, match=r"spec\.inputPayload"):
        _create(lab, text)
    with lab.without_admission():
        run = _create(lab, text)
    assert "inputPayload" in run.reaches("SCHEDULE_FAILED", "InvalidSpec")["message"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"agentImage": None}, "agentImage"),
        ({"teamId": 7}, "teamId"),
        ({"resources": {"cpuMillicores": 50}}, "cpuMillicores"),
        ({"resources": {"cpuMillicores": "1"}}, "cpuMillicores"),
        ({"resources": []}, "resources"),
        ({"priority": "urgent"}, "priority"),
        ({"environment": {"POD_NAME": "mine"}}, "environment"),
        ({"environment": {"A": None, "B": 1}}, "environment"),
        ({"inputPayload": "text"}, "inputPayload"),
        ({"secrets": {"name": "x"}}, "secrets"),
    ],
)
def test_spec_past_the_schema(relaxed: Lab, spec: Object, field: str) -> None:
    run = relaxed.submit(relaxed.pool(), **spec)
    status = run.reaches("SCHEDULE_FAILED", "InvalidSpec")
    assert field in status["message"]
    assert run.job() is None


def test_no_spec_at_all(relaxed: Lab) -> None:
    specs: list[object] = [None, [], "text", {}]
    for spec in specs:
        manifest = agentjob(unique("run"), "default", "1s", "", 0, {}) | {"spec": spec}
        _create(relaxed, manifest).reaches("SCHEDULE_FAILED", "InvalidSpec")


def test_edited_past_the_schema_while_it_waits(relaxed: Lab) -> None:
    pool = relaxed.pool(hold=True)
    run, other = relaxed.submit(pool), relaxed.submit(pool)
    run.reaches("PENDING", "PoolOnHold")
    relaxed.api.patch(run.path, {"spec": {"resources": {"cpuMillicores": 1}}})
    relaxed.edit_pool(pool, hold=False)
    assert "cpuMillicores" in run.reaches("SCHEDULE_FAILED", "InvalidSpec")["message"]
    other.reaches("SUCCEEDED")


def test_moved_to_another_pool_while_it_waits(relaxed: Lab) -> None:
    full, free = relaxed.pool(maxConcurrency=1, hold=True), relaxed.pool()
    run, behind = relaxed.submit(full), relaxed.submit(full)
    run.reaches("PENDING", "PoolOnHold")
    relaxed.api.patch(run.path, {"spec": {"pool": free}})
    run.reaches("SUCCEEDED")
    relaxed.edit_pool(full, hold=False)
    behind.reaches("SUCCEEDED")


def test_edited_past_the_schema_while_it_runs(relaxed: Lab) -> None:
    run = relaxed.submit(relaxed.pool(), duration="3s", message='{"result": 1}')
    run.reaches("RUNNING")
    relaxed.api.patch(run.path, {"spec": {"agentImage": None, "resources": "none", "pool": 3}})
    assert run.reaches("SUCCEEDED")["result"] == 1


@pytest.mark.parametrize(
    "status",
    [
        {"phase": "QUEUED", "observedGeneration": "first", "jobId": 5, "createdAt": "yesterday"},
        {"phase": ["PENDING"], "startedAt": {}, "conditions": "none", "k8sJobName": 1, "result": []},
        {"phase": None, "observedGeneration": None, "exitCode": "x", "attempts": {}, "unknown": {"a": 1}},
    ],
)
def test_status_of_another_version(relaxed: Lab, status: Object) -> None:
    pool = relaxed.pool(hold=True)
    run = relaxed.submit(pool)
    relaxed.api.request("PATCH", f"{run.path}/status", {"status": status}, MERGE_PATCH)
    relaxed.edit_pool(pool, hold=False)
    ended = run.reaches("SUCCEEDED")
    assert len(ended["jobId"]) == 26
    assert ended["createdAt"] <= ended["completedAt"]
    assert ended["observedGeneration"] == 1


def test_stored_past_the_schema_that_is_strict_again(lab: Lab, relaxed: Lab) -> None:
    """Last, since it ends the relaxed schema: what it let through is still told how it ended."""
    pool = lab.pool(hold=True)
    runs = [lab.submit(pool, **spec) for spec in ({"agentImage": None}, {"priority": "urgent"}, {})]
    runs[2].reaches("PENDING", "PoolOnHold")
    lab.api.patch(f"{runs[2].path}/status", {"status": {"exitCode": "x", "attempts": {}}})
    install.custom_resources(lab.cluster.kubectl)
    eventually(lambda: not _takes(lab))
    lab.edit_pool(pool, hold=False)
    for run in runs[:2]:
        run.reaches("SCHEDULE_FAILED", "InvalidSpec")
    runs[2].reaches("SUCCEEDED")


def _takes(lab: Lab) -> bool:
    """Whether the API server lets an AgentJob through that breaks the schema."""
    manifest = agentjob("probe", "nowhere", "1s", "", 0, {"agentImage": None})
    try:
        lab.api.create(f"{AGENTS}/namespaces/default/agentjobs?dryRun=All", manifest)
    except RefusedError:
        return False
    return True


def _create(lab: Lab, manifest: Object | str) -> Run:
    created = lab.api.create(f"{AGENTS}/namespaces/default/agentjobs", manifest)["metadata"]
    return Run(lab.api, "default", created["name"], created["uid"])
