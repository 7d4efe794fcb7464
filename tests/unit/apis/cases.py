"""Rows that are no plain bounds: texts of a form, payloads, and fields that depend on others."""

from typing import Any

from tests.unit.apis.bounds import JOB, POOL, TEAM
from tests.unit.apis.forms import CIDRS, IMAGES, JOB_IDS, NAMES, REGISTRIES, RESERVED, VARIABLES
from tests.unit.apis.rows import Json, Row, minimal, with_field


def _table(resource: str, path: str, values: dict[str, bool]) -> list[Row]:
    return [
        Row(f"{resource} {path} {value!r}", with_field(resource, path, value), valid, path)
        for value, valid in values.items()
    ]


def _in(
    resource: str, path: str, value: Any, *, valid: bool, at: str = "", why: str, webhook_only: bool = False
) -> Row:
    manifest = with_field(resource, path, value)
    return Row(f"{resource} {path}: {why}", manifest, valid, at or path, webhook_only)


def _named(resource: str, name: str, *, valid: bool, at: str, spec: Json | None = None) -> Row:
    manifest = minimal(resource, name)
    if spec is not None:
        manifest["spec"] = spec
    return Row(f"{resource} named {name[:6]} ({len(name)}) with spec {spec}", manifest, valid, at)


def _whole(why: str, manifest: Json, *, valid: bool, at: str = "") -> Row:
    return Row(why, manifest, valid, at)


INPUT_LIMIT = 65_536
_EMPTY_OBJECT = len('{"a":""}')

PAYLOADS = [
    _in(JOB, "spec.inputPayload", {}, valid=True, why="empty"),
    _in(JOB, "spec.inputPayload", {"a": None, "b": [1, 2.5, {"c": True}]}, valid=True, why="any JSON"),
    _in(JOB, "spec.inputPayload", {"a": "x" * (INPUT_LIMIT - _EMPTY_OBJECT)}, valid=True, why="64 KiB"),
    _in(
        JOB,
        "spec.inputPayload",
        {"a": "x" * (INPUT_LIMIT - _EMPTY_OBJECT + 1)},
        valid=False,
        why="a byte more than 64 KiB",
        webhook_only=True,
    ),
    _in(
        JOB,
        "spec.inputPayload",
        {"a": "é" * ((INPUT_LIMIT - _EMPTY_OBJECT) // 2 + 1)},
        valid=False,
        why="bytes are counted, not characters",
        webhook_only=True,
    ),
    _in(JOB, "spec.inputPayload", [], valid=False, why="a list is no object"),
    _in(JOB, "spec.inputPayload", "{}", valid=False, why="text is no object"),
    _in(JOB, "status.result", {"a": [1, None]}, valid=True, why="an object"),
    _in(JOB, "status.result", 42, valid=True, why="a number"),
    _in(JOB, "status.result", None, valid=True, why="null"),
    _in(JOB, "status.result", "x" * 4094, valid=True, why="4 KiB"),
    _in(JOB, "status.result", "x" * 4095, valid=False, why="a byte more than 4 KiB", webhook_only=True),
]

SPECIAL = [
    *[
        _in(
            JOB,
            "spec.environment",
            dict.fromkeys(names, "x"),
            valid=False,
            why=f"{', '.join(names)} is reserved",
        )
        for names in RESERVED
    ],
    *[
        _in(
            JOB,
            "spec.environment",
            {variable: "x"},
            valid=valid,
            at=f"spec.environment.{variable}",
            why=f"variable {variable!r}",
        )
        for variable, valid in VARIABLES.items()
    ],
    _in(JOB, "spec.environment", {"A": "x\x00"}, valid=False, at="spec.environment.A", why="NUL in a value"),
    _in(JOB, "spec.environment", {"A": 5}, valid=False, at="spec.environment.A", why="a number as value"),
    _in(JOB, "spec.args", ["a\x00"], valid=False, at="spec.args.0", why="NUL in an argument"),
    _in(JOB, "spec.cancel", True, valid=True, why="true"),
    _in(JOB, "spec.cancel", False, valid=False, why="false is no request"),
    _in(JOB, "spec.cancel", "true", valid=False, why="text"),
    _in(JOB, "spec.cancel", 1, valid=False, why="a number"),
    _in(JOB, "spec.unknown", 5, valid=True, why="unknown fields are ignored"),
    _in(JOB, "spec.agent_image", 5, valid=True, why="the name in code is an unknown field"),
    _in(JOB, "spec.retries", 3.0, valid=True, why="3.0 is the integer 3"),
    _in(JOB, "spec.teamId", "a/b c", valid=True, why="any characters"),
    _in(JOB, "spec.teamId", "\n\t🙂", valid=True, why="any characters, three of them"),
    _in(JOB, "spec.resources", [], valid=False, why="a list"),
    _whole("AgentJob with a list as spec", {**minimal(JOB), "spec": []}, valid=False, at="spec"),
    _whole("AgentPool without spec", minimal(POOL), valid=True),
    _whole("AgentTeam without spec", minimal(TEAM), valid=True),
]

TWO_FIELDS = [
    *[
        _in(
            TEAM,
            "spec.pools.p",
            {"guaranteed": {resource: 5}, "limit": {resource: limit}},
            valid=limit >= 5,
            at=f"spec.pools.p.guaranteed.{resource}",
            why=f"guaranteed {resource} 5, limit {limit}",
        )
        for resource in ("slots", "cpuMillicores", "memoryMb", "gpuCount")
        for limit in (4, 5, 6)
    ],
    _in(
        TEAM,
        "spec.pools.p",
        {"guaranteed": {"slots": 5}, "limit": {"gpuCount": 0}},
        valid=True,
        why="guaranteed and limited in different resources",
    ),
    _named(TEAM, "ab", valid=False, at="spec.teamId"),
    _named(TEAM, "abc", valid=True, at=""),
    _named(TEAM, "a" * 64, valid=True, at=""),
    _named(TEAM, "a" * 65, valid=False, at="spec.teamId"),
    _named(TEAM, "ab", valid=True, at="", spec={"teamId": "a team"}),
    _named(POOL, "a" * 63, valid=True, at=""),
    _named(POOL, "a" * 64, valid=False, at="metadata.name"),
    _in(POOL, "spec.capacity", {}, valid=False, at="spec.capacity.nodes", why="neither fixed nor nodes"),
    _in(POOL, "spec.capacity", {"nodes": {}}, valid=True, why="all nodes"),
    _in(POOL, "spec.capacity", {"fixed": {}}, valid=True, why="nothing limited"),
    _in(
        POOL,
        "spec.capacity",
        {"fixed": {}, "nodes": {}},
        valid=False,
        at="spec.capacity.nodes",
        why="both fixed and nodes",
    ),
    _in(POOL, "spec.sandbox", {"egress": "proxy"}, valid=False, at="spec.sandbox.proxy", why="no proxy"),
    _in(
        POOL,
        "spec.sandbox",
        {"egress": "proxy", "proxy": {"cidr": "10.0.0.1/32", "port": 3128}},
        valid=True,
        why="egress through a proxy",
    ),
    *[
        _in(
            POOL,
            "spec.sandbox",
            {"egress": egress, "proxy": {"cidr": "10.0.0.1/32", "port": 3128}},
            valid=False,
            at="spec.sandbox.proxy",
            why=f"a proxy with egress {egress}",
        )
        for egress in ("none", "dns", "internet")
    ],
    *[
        _in(
            POOL,
            "spec.sandbox.tolerations",
            [toleration],
            valid=not at,
            at=f"spec.sandbox.tolerations.0.{at}",
            why=str(toleration),
        )
        for toleration, at in (
            ({"operator": "Exists"}, ""),
            ({"key": "k", "operator": "Exists", "value": ""}, ""),
            ({"key": "k", "effect": "NoExecute", "tolerationSeconds": 5}, ""),
            *(({"key": "k", "effect": effect}, "") for effect in ("NoSchedule", "PreferNoSchedule")),
            ({}, "operator"),
            ({"operator": "Equal"}, "operator"),
            ({"key": "k", "operator": "Exists", "value": "v"}, "value"),
            ({"key": "k", "tolerationSeconds": 5}, "tolerationSeconds"),
            ({"key": "k", "effect": "NoSchedule", "tolerationSeconds": 5}, "tolerationSeconds"),
            ({"key": "k", "effect": "noexecute"}, "effect"),
        )
    ],
]

CASES: list[Row] = [
    *_table(JOB, "spec.agentImage", IMAGES),
    *_table(JOB, "spec.pool", NAMES),
    *_table(JOB, "spec.secrets.0.name", NAMES),
    *_table(JOB, "status.jobId", JOB_IDS),
    *_table(POOL, "spec.sandbox.proxy.cidr", CIDRS),
    *_table(POOL, "spec.sandbox.registries.0", REGISTRIES),
    *PAYLOADS,
    *SPECIAL,
    *TWO_FIELDS,
]
