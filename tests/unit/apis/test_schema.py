"""What every schema must have, whichever field comes next; and that the table misses none."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from agentjobs.apis.crds import RESOURCES, definition
from tests.unit.apis import bounds, fields

Node = dict[str, Any]


def schema(resource: type[Any]) -> Node:
    (version,) = definition(resource)["spec"]["versions"]
    root: Node = version["schema"]["openAPIV3Schema"]
    return root


def walk(node: Node, path: str = "") -> Iterator[tuple[str, Node]]:
    """Yield every node below ``node`` with its path, in the notation of the table."""
    for name, child in node.get("properties", {}).items():
        where = f"{path}.{name}" if path else name
        yield where, child
        yield from walk(child, where)
    for inner, step in (("items", "0"), ("additionalProperties", "p")):
        if inner in node:
            yield f"{path}.{step}", node[inner]
            yield from walk(node[inner], f"{path}.{step}")


NODES = [
    pytest.param(resource.__name__, path, node, id=f"{resource.__name__} {path}")
    for resource in RESOURCES
    for path, node in walk(schema(resource))
    if path.startswith(("spec", "status"))
]

UNITS = {
    "cpuMillicores": "millicores",
    "memoryMb": "MiB",
    "ephemeralStorageMb": "MiB",
    "gpuCount": "GPUs",
    "slots": "slots",
    "maxConcurrency": "slots",
    "retries": "retries",
    "infraRetries": "retries",
    "sharePercent": "percent",
    "headroomPercent": "percent",
    "share": "thousandths",
}


@pytest.mark.parametrize(("resource", "path", "node"), NODES)
def test_every_field_is_described_with_unit_and_default(resource: str, path: str, node: Node) -> None:
    name = path.rsplit(".", 1)[-1]
    if name in ("0", "p"):  # an item or a value: its list or map is described
        return
    text = node["description"]
    assert text.endswith(".")
    assert "  " not in text
    unit = "seconds" if name.endswith("Seconds") else UNITS.get(name, "")
    assert unit in text
    default = node.get("default")
    if isinstance(default, (str, int)):
        assert f"Default: {str(default).lower() if isinstance(default, bool) else default}." in text


@pytest.mark.parametrize(("resource", "path", "node"), NODES)
def test_every_text_list_and_map_has_a_maximum(resource: str, path: str, node: Node) -> None:
    match node.get("type"):
        case "string":
            assert node.get("maxLength") or node.get("enum")
        case "array":
            assert node["maxItems"]
        case "object" if "additionalProperties" in node:
            assert node["maxProperties"]
            assert any("size(key) <=" in rule["rule"] for rule in node["x-kubernetes-validations"])
        case None:  # any JSON, whose size the model bounds
            assert path == "status.result"


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.__name__)
def test_the_table_has_every_field(resource: type[Any]) -> None:
    kind = resource.__name__
    tables: tuple[Sequence[tuple[Any, ...]], ...] = (
        bounds.INTEGERS,
        bounds.TEXTS,
        bounds.TIMESTAMPS,
        bounds.LISTS,
        bounds.MAPS,
        fields.ENUMS,
        fields.BOOLEANS,
        fields.ELSEWHERE,
    )
    told = {row[1] for table in tables for row in table if row[0] == kind}
    found = {
        path
        for path, node in walk(schema(resource))
        if path.startswith(("spec", "status")) and "properties" not in node  # an object is told by its fields
    }
    assert told == found


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.__name__)
def test_the_table_has_every_default_and_every_required_field(resource: type[Any]) -> None:
    kind = resource.__name__
    nodes = list(walk(schema(resource)))
    defaults = {
        path: node["default"] for path, node in nodes if path.startswith("spec") and "default" in node
    }
    plain = {path: value for path, value in defaults.items() if value != {} and ".0." not in path}
    told = {path: value for path, value in fields.DEFAULTS[kind].items() if path.startswith("spec")}
    assert {path: value for path, value in plain.items() if ".p." not in path} == told
    required = {
        f"{path}.{name}".lstrip(".")
        for path, node in [("", schema(resource)), *nodes]
        for name in node.get("required", [])
    }
    assert required == {path for owner, path in fields.REQUIRED if owner == kind}


def test_names() -> None:
    found = {
        resource.__name__: (
            definition(resource)["metadata"]["name"],
            definition(resource)["spec"]["scope"],
            definition(resource)["spec"]["names"]["shortNames"],
            definition(resource)["spec"]["names"]["categories"],
        )
        for resource in RESOURCES
    }
    assert found == {
        "AgentJob": ("agentjobs.agentjobs.dev", "Namespaced", ["aj"], ["agents"]),
        "AgentTeam": ("agentteams.agentjobs.dev", "Cluster", ["agt"], ["agents"]),
        "AgentPool": ("agentpools.agentjobs.dev", "Cluster", ["agp"], ["agents"]),
    }


def test_selectable_fields() -> None:
    (version,) = definition(RESOURCES[0])["spec"]["versions"]
    paths = [field["jsonPath"] for field in version["selectableFields"]]
    assert paths == [".spec.teamId", ".spec.priority", ".status.phase"]
