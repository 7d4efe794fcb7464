"""The table of manifests, row by row: for the models (here) and for a real API server (`tests/live`)."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tests.unit.apis import bounds, fields
from tests.unit.apis.bounds import JOB, POOL, TEAM

Json = dict[str, Any]
NOT_SET = object()


@dataclass(frozen=True)
class Row:
    """One manifest, and whether it is taken."""

    id: str
    manifest: Json
    """Of a create; with a status, of a write of that status."""
    valid: bool
    path: str = ""
    """The field that a refusal names, when it is not valid."""
    webhook_only: bool = False
    """Refused by the webhook alone: neither schema nor CEL can say it."""

    @property
    def of_status(self) -> bool:
        return "status" in self.manifest


# Values that a field needs beside it, so that nothing but the field itself can be wrong.
_CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "Because",
    "message": "",
    "lastTransitionTime": "2026-01-31T09:30:00Z",
}
_AROUND: dict[str, Json] = {
    "spec.secrets.0.": {"spec.secrets": [{"name": "key"}]},
    "spec.sandbox.proxy.": {"spec.sandbox": {"egress": "proxy", "proxy": {"cidr": "10.0.0.1/32", "port": 1}}},
    "spec.sandbox.tolerations.0.": {"spec.sandbox.tolerations": [{"key": "k", "effect": "NoExecute"}]},
    "spec.capacity.fixed.": {"spec.capacity": {"fixed": {}}},
    "status.attempts.0.": {"status.attempts": [{"number": 1, "reason": "AgentFailed"}]},
    "status.conditions.0.": {"status.conditions": [_CONDITION]},
}


def minimal(resource: str, name: str = "row") -> Json:
    """Return the smallest valid manifest."""
    manifest: Json = {
        "apiVersion": "agentjobs.dev/v1alpha1",
        "kind": resource,
        "metadata": {"name": name},
    }
    if resource == JOB:
        manifest["spec"] = {"agentImage": "agent:1", "teamId": "red"}
    return manifest


def with_field(resource: str, path: str, value: Any) -> Json:
    """Return a manifest that is valid but, perhaps, for the field at ``path``; NOT_SET removes it."""
    manifest = minimal(resource)
    for prefix, around in _AROUND.items():
        if path.startswith(prefix):
            for place, content in around.items():
                put(manifest, place, deepcopy(content))
    put(manifest, path, value)
    return manifest


def put(manifest: Json, path: str, value: Any) -> None:
    """Set the field at a dotted path, making what is missing on the way."""
    steps = path.split(".")
    last = steps[-1]
    node: Any = manifest
    for step, following in pairwise(steps):
        if isinstance(node, list):
            if not node:
                node.append({})
            node = node[int(step)]
        else:
            node = node.setdefault(step, [] if following.isdigit() else {})
    if value is NOT_SET:
        node.pop(last, None)
    elif isinstance(node, list):
        node[int(last) :] = [value]
    else:
        node[last] = value


def _row(resource: str, path: str, value: Any, valid: bool, what: str) -> Row:
    return Row(f"{resource} {path} {what}", with_field(resource, path, value), valid, path)


def _wrong(resource: str, path: str, wanted: str, *values: Any) -> Iterator[Row]:
    for value in values:
        yield _row(resource, path, value, False, f"is no {wanted}: {value!r}")


def integers() -> Iterator[Row]:
    for resource, path, least, most in bounds.INTEGERS:
        if least is not None:
            yield _row(resource, path, least - 1, False, f"min-1 {least - 1}")
            yield _row(resource, path, least, True, f"min {least}")
        if most is not None:
            yield _row(resource, path, most, True, f"max {most}")
            yield _row(resource, path, most + 1, False, f"max+1 {most + 1}")
        some = least or 0
        yield from _wrong(resource, path, "integer", str(some), True, some + 0.5, [])


def texts() -> Iterator[Row]:
    for resource, path, least, most, text in bounds.TEXTS:
        if least > 0:
            yield _row(resource, path, text(least)[: least - 1], False, f"{least - 1} characters")
        yield _row(resource, path, text(least) if least else "", True, f"min {least} characters")
        yield _row(resource, path, text(most), True, f"max {most} characters")
        yield _row(resource, path, text(most + 1), False, f"{most + 1} characters")
        yield from _wrong(resource, path, "text", 5, False, {})


def timestamps() -> Iterator[Row]:
    for resource, path in bounds.TIMESTAMPS:
        for value in ("2026-01-31T09:30:00Z", "2026-01-31T09:30:00.123456Z"):
            yield _row(resource, path, value, True, value)
        yield from _wrong(resource, path, "time", "2026-01-31", "2026-02-30T09:30:00Z", "2026-01-31T09:30:00")
        yield from _wrong(resource, path, "time", "2026-01-31T24:00:00Z", "2026-01-31T09:30:00+01:00")
        yield from _wrong(resource, path, "time", "2026-01-31 09:30:00Z", "yesterday", "", 1769851800)


def lists() -> Iterator[Row]:
    for resource, path, most, twice, item in bounds.LISTS:
        yield _row(resource, path, [], True, "no items")
        yield _row(resource, path, [item(index) for index in range(most)], True, f"{most} items")
        yield _row(resource, path, [item(index) for index in range(most + 1)], False, f"{most + 1} items")
        yield _row(resource, path, [item(0), item(0)], twice, "the same item twice")
        yield from _wrong(resource, path, "list", "x", {})
        yield Row(
            f"{resource} {path} holds null", with_field(resource, path, [None]), valid=False, path=f"{path}.0"
        )


def maps() -> Iterator[Row]:
    for resource, path, most, least_key, most_key, key, value in bounds.MAPS:
        yield _row(resource, path, {}, True, "no entries")
        yield _row(resource, path, {f"k{n}": value for n in range(most)}, True, f"{most} entries")
        yield _row(resource, path, {f"k{n}": value for n in range(most + 1)}, False, f"{most + 1} entries")
        yield _row(resource, path, {"k": None}, True, "null counts as absent")
        for length in (least_key, most_key):
            yield _row(resource, path, {key(length): value}, True, f"key of {length} characters")
        for length in (least_key - 1, most_key + 1):
            wrong = key(length)
            manifest = with_field(resource, path, {wrong: value})
            yield Row(f"{resource} {path} key of {length} characters", manifest, False, f"{path}.{wrong}")
        yield from _wrong(resource, path, "map", "x", [], 5)


def enums() -> Iterator[Row]:
    for resource, path, choices in fields.ENUMS:
        for choice in choices:
            yield _row(resource, path, choice, True, choice)
            yield _row(resource, path, choice.swapcase(), False, choice.swapcase())
        yield from _wrong(resource, path, "choice", "", "other", 5, True)


def booleans() -> Iterator[Row]:
    for resource, path in fields.BOOLEANS:
        for value in (True, False):
            yield _row(resource, path, value, True, str(value))
        yield from _wrong(resource, path, "boolean", "true", 1, 0, [])


def required() -> Iterator[Row]:
    for resource, path in fields.REQUIRED:
        yield _row(resource, path, NOT_SET, False, "is not set")
        yield _row(resource, path, None, False, "is null")


def optional() -> Iterator[Row]:
    """A null counts as absent, wherever a field may be absent."""
    tables: tuple[Sequence[tuple[Any, ...]], ...] = (
        bounds.INTEGERS,
        bounds.TEXTS,
        bounds.LISTS,
        bounds.TIMESTAMPS,
        fields.BOOLEANS,
    )
    for resource, path in [(row[0], row[1]) for table in tables for row in table]:
        in_list_or_map = path.rsplit(".", 1)[-1] in ("0", "p")
        if (resource, path) not in [*fields.REQUIRED, *fields.NEEDED_HERE] and not in_list_or_map:
            yield _row(resource, path, None, True, "is null, which is absent")


def bound_rows() -> list[Row]:
    """Return the rows that follow from the bounds."""
    kinds = (integers, texts, timestamps, lists, maps, enums, booleans, required, optional)
    return [row for kind in kinds for row in kind()]


__all__ = ["JOB", "NOT_SET", "POOL", "TEAM", "Json", "Row", "bound_rows", "minimal", "put", "with_field"]
