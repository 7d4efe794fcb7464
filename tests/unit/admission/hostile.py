"""Random AdmissionReviews that know the schema: mostly almost right, wrong in one to three places.

Every choice is drawn from the `Random` that is handed in: a seed is a review.
"""

import copy
import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from agentjobs.apis.agentjob import AgentJob
from agentjobs.apis.agentpool import AgentPool
from agentjobs.apis.agentteam import AgentTeam
from agentjobs.apis.root import Resource
from agentjobs.apis.schema import Schema, annotated

KINDS: dict[str, type[Resource]] = {"agentjobs": AgentJob, "agentteams": AgentTeam, "agentpools": AgentPool}
USERS = ("jane", "joe", "system:serviceaccount:ci:deployer", "", "\u202eenaj", "a\x00b")
DEEP = 3000

_SCHEMAS = {plural: annotated(model) for plural, model in KINDS.items()}
_VALID: dict[str, dict[str, Any]] = {
    "agentjobs": {
        "agentImage": "agent:1",
        "teamId": "blue",
        "priority": "default",
        "pool": "default",
        "retries": 1,
        "resources": {"cpuMillicores": 500, "memoryMb": 256, "gpuCount": 0, "timeoutSeconds": 60},
        "environment": {"NAME": "value"},
        "inputPayload": {"question": [1, "two", {"three": None}]},
        "idempotencyKey": "",
        "args": ["--fast"],
        "secrets": [],
    },
    "agentteams": {
        "teamId": "blue",
        "members": {"users": ["jane"], "groups": [], "serviceAccounts": ["ci/deployer"]},
        "pools": {"default": {"weight": 2, "limit": {"slots": 3}, "guaranteed": {"slots": 1}}},
    },
    "agentpools": {"maxConcurrency": 4, "capacity": {"fixed": {"gpuCount": 8}}, "sharePercent": 25},
}
_TEXTS = (
    "",
    "x",
    "blue",
    "red",
    "critical",
    "POD_NAME",
    "a\ud800b",
    "\u202egnp.exe",
    "\u2066x\u2069",
    "\x00",
    "\x1b[2J",
    "line\nbreak",
    "team\u2028blue",
    "\uff42\uff4c\uff55\uff45",
    "\u0430gent:1",
    "agent:1\n",
    "../../x:1",
    "'; DROP TABLE",
    "${HOME}",
    "$(K8S)",
    "x" * 300,
    "é" * 5000,
    "aj-" + "0" * 32,
)
_NUMBERS = (0, -1, 1, 2**31, 2**63, -(2**63), 10**400, 1.5, 1e308, True)
_OTHERS: tuple[Any, ...] = (None, [], {}, [None], [[]], {"": None}, {"a": {"b": {}}}, False)


def body(random: Random) -> tuple[str, bytes]:
    """Return the last segment of a path and what is sent there."""
    plural = random.choice((*KINDS, "agentjobs", "agentjobs"))
    review = _review(random, plural)
    if random.random() < 0.1:
        _break_envelope(random, review)
    text = json.dumps(review).replace('"DEEP"', _deep(random))
    content = text.encode()
    return plural, _broken_bytes(random, content) if random.random() < 0.1 else content


def _review(random: Random, plural: str) -> dict[str, Any]:
    new = _manifest(random, plural)
    old = None
    if random.random() < 0.3:
        old = _manifest(random, plural) if random.random() < 0.2 else copy.deepcopy(new)
        new = _mutated(random, plural, new)
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": f"question-{random.randrange(10**9)}",
            "operation": "CREATE" if old is None else "UPDATE",
            "name": f"run-{random.randrange(40)}",
            "namespace": random.choice(("default", "other")),
            "userInfo": {"username": random.choice(USERS), "groups": random.choice(([], ["blue-devs"]))},
            "object": new,
            "oldObject": old,
            "dryRun": random.random() < 0.2,
            "options": {"kind": "CreateOptions"},
        },
    }


def _manifest(random: Random, plural: str) -> dict[str, Any]:
    kind = KINDS[plural].__name__
    manifest: dict[str, Any] = {
        "apiVersion": "agentjobs.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": f"run-{random.randrange(40)}", "uid": f"uid-{random.randrange(10**9)}"},
        "spec": copy.deepcopy(_VALID[plural]),
        "status": {"phase": "PENDING", "observedGeneration": -1} if kind == "AgentJob" else {},
    }
    if plural == "agentjobs" and random.random() < 0.5:
        manifest["spec"]["idempotencyKey"] = random.choice("kqz")
    for _ in range(random.choice((0, 0, 1, 1, 2, 3))):
        manifest = _mutated(random, plural, manifest)
    return manifest


def _mutated(random: Random, plural: str, manifest: dict[str, Any]) -> dict[str, Any]:
    """Return a copy with one place changed, as far as it is still there."""
    manifest = copy.deepcopy(manifest)
    path, node = random.choice(list(_places(_SCHEMAS[plural], ())))
    where: Any = manifest
    for step in path[:-1]:
        if isinstance(where, list):
            where = where[0] if where else {}
        if not isinstance(where, dict):
            return manifest
        where = where.setdefault(step, {})
    if isinstance(where, dict):
        change: Callable[[Random, Schema], Any] = random.choice((_near, _near, _near, _anything))
        value = change(random, node)
        if value is _NOTHING:
            where.pop(path[-1], None)
        else:
            where[path[-1]] = value
    return manifest


_NOTHING = object()


def _places(schema: Schema, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Schema]]:
    """Yield every field of a schema with its path; the elements of lists and maps stand for all of theirs."""
    for name, node in schema.get("properties", {}).items():
        yield (*path, name), node
        yield from _places(node, (*path, name))
        for inner in ("items", "additionalProperties"):
            if isinstance(node.get(inner), dict):
                yield from _places(node[inner], (*path, name, "x"))
    yield (*path, "unknownField"), {}


def _near(random: Random, node: Schema) -> Any:
    """Return a value at or just beyond a bound of the schema."""
    match node.get("type"):
        case "integer":
            low, high = node.get("minimum", 0), node.get("maximum", 100)
            return random.choice((low - 1, low, low + 1, high - 1, high, high + 1))
        case "string":
            if "enum" in node:
                return random.choice((*node["enum"], node["enum"][0].upper(), " " + node["enum"][0]))
            size = random.choice((node.get("minLength", 0), node.get("maxLength", 64)))
            return random.choice("aé\u202e") * max(0, size + random.choice((-1, 0, 1)))
        case "boolean":
            return random.choice((True, False))
        case "array":
            most = node.get("maxItems", 5)
            return [random.choice(_TEXTS)] * min(600, most + random.choice((-1, 0, 1)))
        case "object":
            most = node.get("maxProperties", 5)
            keys = range(min(600, most + random.choice((-1, 0, 1))))
            return {random.choice(_TEXTS) + str(key): random.choice(_TEXTS) for key in keys}
    return _anything(random, node)


def _anything(random: Random, _: Schema) -> Any:
    return random.choice(
        (random.choice(_TEXTS), random.choice(_NUMBERS), random.choice(_OTHERS), _NOTHING, "DEEP")
    )


def _break_envelope(random: Random, review: dict[str, Any]) -> None:
    where = random.choice((review, review["request"], review["request"]["userInfo"]))
    if where:
        where[random.choice(sorted(where))] = random.choice((*_TEXTS, *_OTHERS, *_NUMBERS))


def _broken_bytes(random: Random, content: bytes) -> bytes:
    at = random.randrange(len(content))
    match random.randrange(4):
        case 0:
            return content[:at]
        case 1:
            return content[:at] + bytes([random.randrange(256)]) + content[at + 1 :]
        case 2:
            return content[:at] + b"\xff\xfe" + content[at:]
    return content + content[at:]


def _deep(random: Random) -> str:
    left, right = random.choice((("[", "]"), ('{"a":', "}")))
    return left * DEEP + ("1" if left != "[" else "") + right * DEEP
