"""The table of `tests/unit/apis` against a real API server: it and the models must agree, row by row."""

import os
from collections.abc import Iterator
from copy import deepcopy
from functools import partial
from typing import Any

import pytest

from agentjobs.apis.crds import RESOURCES, definition
from tests.live.support import eventually
from tests.live.wire import Kubeconfig, Wire
from tests.unit.apis.bounds import JOB, POOL, TEAM
from tests.unit.apis.cases import CASES
from tests.unit.apis.changes import CHANGES, TRANSITIONS, Change
from tests.unit.apis.fields import DEFAULTS
from tests.unit.apis.forms import RESERVED
from tests.unit.apis.rows import Row, bound_rows, minimal, put, with_field

NAMESPACE = f"schema-{os.getpid()}"
ROWS = [*bound_rows(), *CASES]
GROUP = "/apis/agentjobs.dev/v1alpha1"
COLLECTIONS = {
    JOB: f"{GROUP}/namespaces/{NAMESPACE}/agentjobs",
    TEAM: f"{GROUP}/agentteams",
    POOL: f"{GROUP}/agentpools",
}
DRY_RUN = {"dryRun": "All"}


@pytest.fixture(scope="module")
def wire(cluster: Any) -> Iterator[Wire]:
    """The API server as the administrator, with a namespace for these tests."""
    with Wire(Kubeconfig(cluster.kubeconfig)) as wire:
        code, answer = wire.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        assert code == 201, answer
        for collection in COLLECTIONS.values():
            eventually(partial(served, wire, collection))
        yield wire
        wire.request("DELETE", COLLECTIONS[JOB])
        for kind in (TEAM, POOL):
            wire.request("DELETE", f"{COLLECTIONS[kind]}/schema-base")
        wire.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}")


def served(wire: Wire, collection: str) -> bool:
    code, _ = wire.request("GET", collection)
    return code == 200


@pytest.fixture(scope="module")
def stored(wire: Wire) -> dict[str, dict[str, Any]]:
    """One stored object of each kind, whose status the rows try to write."""
    objects = {}
    for kind, collection in COLLECTIONS.items():
        code, answer = wire.request("POST", collection, minimal(kind, "schema-base"))
        assert code == 201, answer
        objects[kind] = answer
    return objects


def assert_answer(code: int, answer: Any, *, valid: bool) -> None:
    if valid:
        assert code in (200, 201), answer
    else:
        assert (code, answer["reason"]) == (422, "Invalid"), answer


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_row(wire: Wire, stored: dict[str, dict[str, Any]], row: Row) -> None:
    kind = row.manifest["kind"]
    if row.of_status:
        base = {**stored[kind], "status": row.manifest["status"]}
        path = f"{COLLECTIONS[kind]}/schema-base/status"
        code, answer = wire.request("PUT", path, base, DRY_RUN)
    else:
        code, answer = wire.request("POST", COLLECTIONS[kind], row.manifest, DRY_RUN)
    assert_answer(code, answer, valid=row.valid or row.webhook_only)


def create(wire: Wire, manifest: dict[str, Any]) -> dict[str, Any]:
    """Store a manifest under a new name, with its status; return what is stored."""
    manifest = {**manifest, "metadata": {"generateName": "schema-"}}
    code, made = wire.request("POST", COLLECTIONS[JOB], manifest)
    assert code == 201, made
    made["status"] |= manifest.get("status", {})
    code, stored = wire.request("PUT", f"{COLLECTIONS[JOB]}/{made['metadata']['name']}/status", made)
    assert code == 200, stored
    return dict(stored)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.id)
def test_change(wire: Wire, change: Change) -> None:
    old = create(wire, change.old)
    path = f"{COLLECTIONS[JOB]}/{old['metadata']['name']}"
    code, answer = wire.request("PUT", path, {**old, "spec": change.new["spec"]}, DRY_RUN)
    assert_answer(code, answer, valid=change.valid or change.webhook_only)
    if code == 422 and change.path != "spec.priority":
        causes = answer["details"]["causes"]
        assert any(change.path.startswith(cause["field"]) for cause in causes), causes


def test_immutable_fields_are_told_as_gitops_tools_expect(wire: Wire) -> None:
    old = create(wire, minimal(JOB))
    path = f"{COLLECTIONS[JOB]}/{old['metadata']['name']}"
    new = deepcopy(old)
    new["spec"] |= {"teamId": "blue", "environment": {"A": "1"}}
    code, answer = wire.request("PUT", path, new)
    assert code == 422
    told = {cause["field"]: cause["message"] for cause in answer["details"]["causes"]}
    assert set(told) == {"spec.teamId", "spec.environment"}
    assert all("is immutable" in message for message in told.values())


@pytest.mark.parametrize("change", TRANSITIONS, ids=lambda change: change.id)
def test_transition(wire: Wire, change: Change) -> None:
    old = create(wire, change.old)
    path = f"{COLLECTIONS[JOB]}/{old['metadata']['name']}/status"
    code, answer = wire.request("PUT", path, {**old, "status": change.new["status"]}, DRY_RUN)
    assert_answer(code, answer, valid=change.valid)


@pytest.mark.parametrize(("names", "sentence"), RESERVED.items(), ids=str)
def test_reserved_variables_are_told_sorted(wire: Wire, names: tuple[str, ...], sentence: str) -> None:
    manifest = with_field(JOB, "spec.environment", dict.fromkeys(names, "x"))
    _, answer = wire.request("POST", COLLECTIONS[JOB], manifest, DRY_RUN)
    assert f"{sentence};" in answer["message"]


@pytest.mark.parametrize("kind", [JOB, TEAM, POOL])
def test_defaults_are_those_of_the_contract_and_no_others(wire: Wire, kind: str) -> None:
    manifest = minimal(kind)
    _, answer = wire.request("POST", COLLECTIONS[kind], manifest, DRY_RUN)
    for path, value in DEFAULTS[kind].items():
        put(manifest, path, value)
    assert answer["spec"] == manifest.get("spec", {})
    assert answer.get("status") == manifest.get("status")


def test_a_status_sent_with_a_create_is_dropped(wire: Wire) -> None:
    manifest = {**minimal(JOB), "status": {"phase": "SUCCEEDED", "jobId": "forged"}}
    code, answer = wire.request("POST", COLLECTIONS[JOB], manifest, DRY_RUN)
    assert (code, answer["status"]) == (201, {"phase": "PENDING", "observedGeneration": -1})


@pytest.mark.parametrize(
    ("kind", "usual", "wide"),
    [
        (
            JOB,
            ["Name", "Team", "Priority", "Status", "Reason", "Age", "Duration"],
            ["Job-ID", "Pod", "Exit", "Message"],
        ),
        (TEAM, ["Name", "Team", "Pending", "Running", "Status", "Age"], []),
        (POOL, ["Name", "Slots", "Pending", "Running", "Status", "Age"], ["Egress", "Runtime"]),
    ],
)
def test_columns(wire: Wire, kind: str, usual: list[str], wide: list[str]) -> None:
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    _, answer = wire.request("GET", COLLECTIONS[kind], accept=table)
    columns = answer["columnDefinitions"]
    assert [column["name"] for column in columns if not column["priority"]] == usual
    assert [column["name"] for column in columns if column["priority"]] == wide


def test_field_selectors(wire: Wire) -> None:
    create(wire, with_field(JOB, "spec.teamId", "selected"))
    create(wire, {**with_field(JOB, "spec.priority", "low"), "status": {"phase": "RUNNING"}})
    for selector, count in (
        ("spec.teamId=selected", 1),
        ("spec.teamId=selected,status.phase=PENDING", 1),
        ("spec.teamId=selected,status.phase=RUNNING", 0),
        ("spec.priority=low,status.phase=RUNNING", 1),
    ):
        _, answer = wire.request("GET", COLLECTIONS[JOB], query={"fieldSelector": selector})
        assert len(answer["items"]) >= count if count else answer["items"] == []


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.__name__)
def test_what_is_installed_is_what_the_models_say(wire: Wire, resource: Any) -> None:
    wanted = definition(resource)
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{wanted['metadata']['name']}"
    _, installed = wire.request("GET", path)
    assert installed["spec"]["names"] == wanted["spec"]["names"]
    assert installed["spec"]["versions"] == wanted["spec"]["versions"]
