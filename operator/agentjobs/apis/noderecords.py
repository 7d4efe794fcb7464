"""Nodes and the pods that are not ours, as a pool that is bound to nodes needs them."""

from __future__ import annotations

from fractions import Fraction

import msgspec

from agentjobs.apis import quantities
from agentjobs.apis.jobrecords import PodCondition
from agentjobs.apis.records import Object, Record, Wire, lenient
from agentjobs.scheduling.resources import NOTHING, Amounts

_GPU = "nvidia.com/gpu"
_MILLI = Fraction(1, 1000)


class _NodeSpec(Wire):
    unschedulable: bool = False


class _NodeStatus(Wire):
    allocatable: dict[str, str] = msgspec.field(default_factory=dict)
    conditions: list[PodCondition] = msgspec.field(default_factory=list)


class NodeRecord(Record):
    """A node; `offers` is what it has for pods, nothing while it is not ready or cordoned."""

    __slots__ = ("labels", "offers")

    def __init__(self, raw: bytes | msgspec.Raw) -> None:
        found = msgspec.json.decode(raw, type=Object)
        super().__init__(found.metadata)
        self.labels = found.metadata.labels
        status = lenient(found.status, _NodeStatus)
        ready = any(c.type == "Ready" and c.status == "True" for c in status.conditions)
        cordoned = lenient(found.spec, _NodeSpec).unschedulable
        there = status.allocatable
        self.offers = NOTHING
        if ready and not cordoned and not self.deleting:
            self.offers = Amounts(
                0,
                quantities.floor(there.get("cpu", "0"), _MILLI),
                quantities.floor(there.get("memory", "0"), quantities.MEBI),
                quantities.floor(there.get(_GPU, "0")),
            )


class _Resources(Wire):
    requests: dict[str, str] = msgspec.field(default_factory=dict)


class _Container(Wire):
    resources: _Resources = msgspec.field(default_factory=_Resources)
    restart_policy: str = ""


class _PodSpec(Wire):
    node_name: str = ""
    containers: list[_Container] = msgspec.field(default_factory=list)
    init_containers: list[_Container] = msgspec.field(default_factory=list)
    overhead: dict[str, str] = msgspec.field(default_factory=dict)


class ForeignPodRecord(Record):
    """A pod that is not ours and has not ended; `takes` is what the scheduler counts for it."""

    __slots__ = ("node", "takes")

    def __init__(self, raw: bytes | msgspec.Raw) -> None:
        found = msgspec.json.decode(raw, type=Object)
        super().__init__(found.metadata)
        spec = lenient(found.spec, _PodSpec)
        self.node = spec.node_name
        sidecars = [c for c in spec.init_containers if c.restart_policy == "Always"]
        together = _sum([*spec.containers, *sidecars])
        before = [_asked(c.resources.requests) for c in spec.init_containers if c.restart_policy != "Always"]
        most = [max(column) for column in zip(together, *before, strict=True)]
        self.takes = Amounts(*most).plus(_asked(spec.overhead))


def _asked(requests: dict[str, str]) -> Amounts:
    return Amounts(
        0,
        quantities.ceil(requests.get("cpu", "0"), _MILLI),
        quantities.ceil(requests.get("memory", "0"), quantities.MEBI),
        quantities.ceil(requests.get(_GPU, "0")),
    )


def _sum(containers: list[_Container]) -> Amounts:
    total = NOTHING
    for container in containers:
        total = total.plus(_asked(container.resources.requests))
    return total
