"""Validate manifests for people: everything that is wrong at once, in a stable order.

The same rules as the API server's, and the few that only the webhook can decide. What is already
stored and wrong by a newer rule may stay: an update is not refused for what it does not touch.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, cast

from pydantic import ValidationError

from agentjobs.apis.agentjob import IMMUTABLE, AgentJob
from agentjobs.apis.agentpool import AgentPool
from agentjobs.apis.agentteam import AgentTeam
from agentjobs.apis.base import Model
from agentjobs.apis.faults import Fault, faults, shown
from agentjobs.apis.names import API_VERSION
from agentjobs.apis.root import Resource
from agentjobs.apis.runstatus import TERMINAL_PHASES, Phase
from agentjobs.apis.schema import Schema, annotated

KINDS: dict[str, type[Resource]] = {model.__name__: model for model in (AgentJob, AgentTeam, AgentPool)}

_ANEW = "create a new AgentJob"


def validate(manifest: Any) -> list[Fault]:
    """Return what is wrong with a manifest on create; its status does not count, the API server drops it.

    Args:
        manifest: Anything; when it is a resource, its JSON form.
    """
    found = read(manifest)
    return found if isinstance(found, list) else []


def read(manifest: Any) -> Resource | list[Fault]:
    """Return the resource that a manifest describes, without a status, or all that is wrong with it."""
    envelope = _envelope(manifest)
    if envelope:
        return envelope
    resource = KINDS[manifest["kind"]]
    data = {key: value for key, value in manifest.items() if key != "status"}
    try:
        # By alias alone: a field under its Python name is an unknown one to the API server.
        return resource.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        return faults(error.errors(include_url=False), _schema(resource))


def validate_update(old: Any, new: Any) -> list[Fault]:
    """Return what is wrong with replacing ``old``, which is stored, by ``new``.

    Faults that ``old`` has as well are left out.
    """
    found = validate(new)
    if found:
        known = set(validate(old))
        found = [fault for fault in found if fault not in known]
    if isinstance(old, Mapping) and isinstance(new, Mapping) and new.get("kind") == AgentJob.__name__:
        found += _immutability(old, new)
    return found


def validate_status(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Fault]:
    """Return what is wrong with writing the status of ``new`` over ``old``, which is stored."""
    resource = KINDS[new["kind"]]
    model = cast("type[Model]", resource.model_fields["status"].annotation)
    schema = _schema(resource)["properties"]["status"]
    known = set(_status_faults(model, _status(old), schema))
    found = [fault for fault in _status_faults(model, _status(new), schema) if fault not in known]
    before, after = _phase(old), _phase(new)
    if resource is AgentJob and before in TERMINAL_PHASES and after != before:
        found.append(Fault("status.phase", shown(after), f"follows {before}, which is final", _ANEW))
    return found


def _envelope(manifest: Any) -> list[Fault]:
    """Return what is wrong with a manifest before its kind is known."""
    if not isinstance(manifest, Mapping):
        return [Fault("", shown(manifest), "is not a manifest", "send apiVersion, kind, metadata and spec")]
    found = []
    if manifest.get("apiVersion") != API_VERSION:
        found.append(
            Fault("apiVersion", shown(manifest.get("apiVersion")), "is not served", f"use {API_VERSION}")
        )
    kind = manifest.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        found.append(Fault("kind", shown(kind), f"is none of {', '.join(KINDS)}", "use one of them"))
    return found


@cache
def _schema(resource: type[Resource]) -> Schema:
    return annotated(resource)


def _status_faults(model: type[Model], data: Any, schema: Schema) -> list[Fault]:
    try:
        model.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        return faults(error.errors(include_url=False), schema, "status")
    return []


# --- updates ------------------------------------------------------------------------------------------


def _immutability(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Fault]:
    schema = _schema(AgentJob)["properties"]["spec"]["properties"]
    before, after = _spec(old), _spec(new)
    found = [
        fault
        for field in IMMUTABLE
        for fault in _unchanged(
            f"spec.{field}",
            _stored(before.get(field), schema[field]),
            _stored(after.get(field), schema[field]),
            schema[field],
        )
    ]
    return found + _cancel_stays(before, after) + _priority_stays(old, before, after, schema["priority"])


def _unchanged(path: str, was: Any, now: Any, schema: Schema) -> Iterator[Fault]:
    if _same(was, now):
        return
    if "properties" in schema and isinstance(was, Mapping) and isinstance(now, Mapping):
        for part, inner in schema["properties"].items():
            yield from _unchanged(f"{path}.{part}", was.get(part), now.get(part), inner)
        return
    history = f" (it is {shown(was)})" if isinstance(was, (str, int)) else ""
    value = shown(now) if isinstance(now, (str, int)) else ""
    yield Fault(path, value, f"is immutable after creation{history}", _ANEW)


def _cancel_stays(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Fault]:
    if before.get("cancel") is not None and after.get("cancel") is None:
        return [Fault("spec.cancel", "", "is immutable once it is true", _ANEW)]
    return []


def _priority_stays(
    old: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any], schema: Schema
) -> list[Fault]:
    was, now = (_stored(spec.get("priority"), schema) for spec in (before, after))
    phase = _phase(old)
    if was == now or phase == Phase.PENDING:
        return []
    problem = f"is immutable once the run has left PENDING (it is {was} and {phase})"
    return [Fault("spec.priority", shown(now), problem, f"cancel the run and {_ANEW}")]


def _stored(value: Any, schema: Schema) -> Any:
    """Return a value as the API server compares it: defaults filled in, nulls and emptiness left out."""
    if value is None:
        value = schema.get("default")
    if "properties" in schema and isinstance(value, Mapping):
        parts = {key: _stored(value.get(key), part) for key, part in schema["properties"].items()}
        return {key: part for key, part in parts.items() if part is not None}
    if "items" in schema and isinstance(value, list):
        items = [_stored(item, schema["items"]) for item in value]
        # A list with keys is a map written as a list: its order says nothing.
        value = sorted(items, key=_canonical) if "x-kubernetes-list-type" in schema else items
    elif "additionalProperties" in schema and isinstance(value, Mapping):
        value = {key: item for key, item in value.items() if item is not None}
    return None if value in ("", [], {}) else value


def _same(one: Any, other: Any) -> bool:
    try:
        return one == other and _canonical(one) == _canonical(other)  # 1 == True in Python, not in JSON
    except (RecursionError, TypeError):  # nothing that could be stored, hence nothing that is
        return False


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _spec(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    spec = manifest.get("spec")
    return spec if isinstance(spec, Mapping) else {}


def _status(manifest: Mapping[str, Any]) -> Any:
    status = manifest.get("status")
    return {} if status is None else status


def _phase(manifest: Mapping[str, Any]) -> Any:
    status = _status(manifest)
    phase = status.get("phase") if isinstance(status, Mapping) else None
    return Phase.PENDING if phase is None else phase
