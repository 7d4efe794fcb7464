"""From a model to the structural schema that a CustomResourceDefinition takes.

What pydantic writes is not structural: it refers to definitions, marks optional fields by ``anyOf``
with null, and gives keys of maps a schema of their own. All of it is rewritten here; a keyword that is
not known is an error, so that no rule of a model gets lost on the way to the API server.
"""

import inspect
from typing import Any

from agentjobs.apis.base import Model, cel

Schema = dict[str, Any]

# Kept as they are. "unit" and "hint" are notes for people; `published` takes them out.
_KEPT = (
    "description",
    "type",
    "format",
    "enum",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "maxProperties",
    "required",
    "nullable",
    "default",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-validations",
    "unit",
    "hint",
)
_NOTES = ("unit", "hint", "keys")


def annotated(model: type[Model]) -> Schema:
    """Return the structural schema of ``model`` with notes for people.

    Notes are ``unit`` and ``hint`` beside a node's bounds, and ``keys``, the schema of a map's keys.
    """
    raw = model.model_json_schema(by_alias=True)
    return _structural(raw, raw.get("$defs", {}))


def published(schema: Schema) -> Schema:
    """Return ``schema`` without notes; units, bounds and defaults are told at the end of descriptions."""
    result = {key: value for key, value in schema.items() if key not in _NOTES}
    if "properties" in schema:
        result["properties"] = {
            name: {**published(node), "description": _described(node)}
            for name, node in schema["properties"].items()
        }
    for inner in ("items", "additionalProperties"):
        if inner in schema:
            result[inner] = published(schema[inner])
    return result


def _structural(node: Schema, definitions: dict[str, Schema]) -> Schema:
    node = _resolved(node, definitions)
    # Where a bound follows a validator, pydantic writes its own word for it.
    for word, keyword in (("ge", "minimum"), ("le", "maximum")):
        if word in node:
            node[keyword] = node.pop(word)
    result: Schema = {key: node.pop(key) for key in _KEPT if key in node}
    if "description" in result:
        result["description"] = " ".join(inspect.cleandoc(result["description"]).split())
    for name in ("title", "$defs"):
        node.pop(name, None)

    properties = node.pop("properties", None)
    if properties is not None:
        result["properties"] = {key: _structural(value, definitions) for key, value in properties.items()}
    if "items" in node:
        result["items"] = _structural(node.pop("items"), definitions)
    _map_of(node, result, definitions)
    _sensible_default(result)
    if node:
        raise ValueError(f"a CRD cannot say {sorted(node)}, found beside {result}")
    return result


def _resolved(node: Schema, definitions: dict[str, Schema]) -> Schema:
    """Return ``node`` with references inlined and ``anyOf`` with null collapsed; siblings win."""
    siblings = dict(node)
    if reference := siblings.pop("$ref", None):
        return _resolved(definitions[reference.removeprefix("#/$defs/")] | siblings, definitions)
    if choices := siblings.pop("anyOf", None):
        (choice,) = (choice for choice in choices if choice != {"type": "null"})
        return _resolved(choice | siblings, definitions)
    return siblings


def _map_of(node: Schema, result: Schema, definitions: dict[str, Schema]) -> None:
    """Move a map's values and keys to ``result``. Schemas cannot bound keys, hence a CEL rule does."""
    values = node.pop("additionalProperties", None)
    keys = node.pop("propertyNames", {})
    if patterns := node.pop("patternProperties", None):
        ((pattern, values),) = patterns.items()
        keys = {**keys, "pattern": pattern}
    if not isinstance(values, dict):  # True: any JSON object, whose unknown fields are preserved
        return
    result["additionalProperties"] = _structural(values, definitions)
    if keys:
        result["keys"] = _structural(keys, definitions)
        result["x-kubernetes-validations"] = [
            _key_rule(result["keys"]),
            *result.get("x-kubernetes-validations", []),
        ]


def _key_rule(keys: Schema) -> dict[str, str]:
    tests = [
        test
        for keyword, test in (
            ("minLength", f"size(key) >= {keys.get('minLength')}"),
            ("maxLength", f"size(key) <= {keys.get('maxLength')}"),
            ("pattern", f"key.matches(r'{keys.get('pattern')}')"),
        )
        if keyword in keys
    ]
    hint = f"; {keys['hint']}" if "hint" in keys else ""
    return cel(f"self.all(key, {' && '.join(tests)})", f"each key has {span(keys)}{hint}")


def _sensible_default(result: Schema) -> None:
    """Say a default only where it says something, and leave those of nested fields to these."""
    if result.get("default") in (None, "", [], {}):
        result.pop("default", None)
    elif result.get("type") == "object" and "observedGeneration" not in result["default"]:
        result["default"] = {}


def _described(node: Schema) -> str:
    """Return a node's description with its unit, bounds and default, which explain shows nowhere else."""
    sentences = [node["description"]]
    if "format" not in node and (bounds := span(node)):
        sentences.append(f"{bounds[0].upper()}{bounds[1:]}.")
    default = node.get("default")
    if default is not None and not isinstance(default, dict):
        sentences.append(f"Default: {str(default).lower() if isinstance(default, bool) else default}.")
    return " ".join(sentences)


def span(node: Schema) -> str:
    """Return what a node takes, in words: ``100 to 8000 millicores``, ``at most 16 items``, or nothing."""
    for low, high, unit in (
        ("minimum", "maximum", node.get("unit", "")),
        ("minLength", "maxLength", "characters"),
        ("minItems", "maxItems", "items"),
        ("minProperties", "maxProperties", "entries"),
    ):
        least, most = node.get(low), node.get(high)
        if least is not None and most is not None:
            return f"{least} to {most} {unit}".strip()
        if least is not None or most is not None:
            words = f"at most {most}" if least is None else f"at least {least}"
            return f"{words} {unit}".strip()
    return ""
