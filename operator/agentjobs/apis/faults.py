"""What is wrong with a manifest, in words: the field, the value, the rule and the way out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import ErrorDetails

from agentjobs.apis import nesting
from agentjobs.apis.base import REFUSED, RESERVED, Refusal
from agentjobs.apis.schema import Schema, span

Location = tuple[int | str, ...]

SHOWN = 60
"""At most so many characters of a value or of a key are shown."""

_WANTED = {
    "string": "text",
    "integer": "a whole number",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
}


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong; its text is a sentence for the person who wrote the manifest."""

    path: str
    """The field, such as ``spec.resources.cpuMillicores``; empty for the manifest itself."""
    value: str
    """The value as it is shown: shortened and escaped; empty where there is none."""
    problem: str
    """The rule that is broken, to be read after the value."""
    use: str
    """The way out, an imperative."""

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        return printable(f"{where}{self.value} {self.problem}; {self.use}".replace(":  ", ": ").strip())


def shown(value: Any) -> str:
    """Return a value for people: quoted, unprintable characters escaped, cut to a bearable length."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() if value.bit_length() > 128:
            return "a very large number"
        case int() | float():
            return str(value)
        case str():
            return f'"{escaped(value)}"'
        case Mapping():
            return "an object"
        case _:
            return "a list"


def escaped(text: str) -> str:
    """Return ``text`` with what is not printable escaped, direction marks included, and cut."""
    safe = text[:SHOWN].replace("\\", "\\\\").replace('"', '\\"')
    return printable(safe) + ("…" if len(text) > SHOWN else "")


def printable(text: str) -> str:
    """Return text in which nothing moves a cursor or turns a line around, whoever wrote which part of it."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape", "replace").decode()
        for character in text
    )


def faults(errors: Sequence[ErrorDetails], schema: Schema, root: str = "") -> list[Fault]:
    """Return what pydantic found, in its order.

    Args:
        errors: The errors of one validation.
        schema: The annotated schema of the model that was validated.
        root: Path of the validated value, to be put before those of the faults.
    """
    reserved = sorted({str(error["input"]) for error in errors if error["type"] == RESERVED})
    found: list[Fault] = []
    for error in errors:
        if error["type"] != RESERVED:
            found.extend(_faults_of(error, schema, root))
        elif reserved:
            path, _ = _path(error["loc"][:-2], schema, root)
            problem = f"Reserved env vars: {', '.join(reserved)}"
            found.append(Fault(path, "", problem, "the runtime sets them, choose other names"))
            reserved = []  # told once, all together
    return found


def _faults_of(error: ErrorDetails, schema: Schema, root: str) -> Iterator[Fault]:
    path, node = _path(error["loc"], schema, root)
    value = error["input"]
    if error["type"] == REFUSED:
        for refusal in error["ctx"]["refusals"]:
            yield _refused(refusal, path, value)
        return
    problem, use = _explained(error, node)
    hidden = error["type"] == "missing" or value == nesting.PLACEHOLDER
    yield Fault(path, "" if hidden else shown(value), problem, use)


def _refused(refusal: Refusal, path: str, value: Any) -> Fault:
    for key in refusal.at:
        value = value.get(key) if isinstance(value, Mapping) else None
    scalar = value is not None and not isinstance(value, (Mapping, list))
    return Fault(".".join((path, *refusal.at)), shown(value) if scalar else "", refusal.problem, refusal.use)


def _path(location: Location, schema: Schema, root: str) -> tuple[str, Schema]:
    """Return the manifest path of an error and the schema of the value there."""
    path, node = root, schema
    for step in location:
        if step == "[key]":
            node = node.get("keys", {"type": "string"})
        elif "properties" in node:
            path = f"{path}.{step}" if path else str(step)
            node = node["properties"].get(step, {})
        else:
            path += f"[{step if isinstance(step, int) else escaped(step)}]"
            # A key's own schema follows its step, when the error is about the key.
            node = node.get("items") or {**node.get("additionalProperties", {}), "keys": node.get("keys", {})}
    return path, node


def _explained(error: ErrorDetails, node: Schema) -> tuple[str, str]:
    """Return the rule that is broken and the way out."""
    value, unit = error["input"], node.get("unit", "")
    if value == nesting.PLACEHOLDER:
        return f"is nested deeper than {nesting.LIMIT} levels", "flatten it"
    bounds = _way_out(node)
    match error["type"]:
        case "missing":
            return "is required", node.get("hint") or bounds or "set it"
        case "greater_than_equal":
            return f"is below the minimum of {node['minimum']} {unit}".strip(), bounds
        case "less_than_equal":
            return f"is above the maximum of {node['maximum']} {unit}".strip(), bounds
        case "string_too_short":
            return f"has {len(value)} characters, the minimum is {node['minLength']}", bounds
        case "string_too_long":
            return f"has {len(value)} characters, the maximum is {node['maxLength']}", bounds
        case "too_long":
            most = node.get("maxItems", node.get("maxProperties"))
            return f"has more than {most} entries", bounds
        case "string_pattern_mismatch":
            return "is not of the required form", node.get("hint", f"match {node.get('pattern')}")
        case "string_unicode":
            return "is not valid Unicode", "remove the unpaired surrogate"
        case "enum":
            return f"is none of {', '.join(node['enum'])}", _nearest(value, node["enum"])
        case kind if kind.endswith("_type") or kind == "int_from_float":
            return f"is not {_WANTED.get(node.get('type', ''), 'what belongs here')}", _convert(value, node)
    return error["msg"].lower(), "see kubectl explain"


def _way_out(node: Schema) -> str:
    bounds = span({key: value for key, value in node.items() if key != "unit"})
    return f"use {bounds}" if bounds else ""


def _nearest(value: Any, choices: Sequence[str]) -> str:
    if isinstance(value, str):
        for choice in choices:
            if choice.lower() == value.strip().lower():
                return f'use "{choice}"'
    return "use one of them"


def _convert(value: Any, node: Schema) -> str:
    """Return how to write a value of the wrong type."""
    match node.get("type"):
        case "string" if isinstance(value, (bool, int, float)):
            return "put it in quotes"
        case "integer" | "boolean" if isinstance(value, str):
            return " and ".join(filter(None, ("write it without quotes", _way_out(node))))
        case "boolean":
            return "use true or false"
    return _way_out(node) or node.get("hint") or f"write {_WANTED.get(node.get('type', ''), 'another type')}"
