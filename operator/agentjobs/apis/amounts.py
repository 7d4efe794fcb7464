"""Amounts of resources: what a pool has, and what a team holds, is guaranteed or is limited to."""

from typing import Annotated

from pydantic import Field

from agentjobs.apis.base import Gpus, Mebibytes, Millicores, Model, Slots

_MOST = 1_000_000_000


class ComputeAmounts(Model):
    """Amounts of what nodes offer; a resource that is not named is left out of account."""

    cpu_millicores: Annotated[Millicores, Field(ge=0, le=_MOST)] | None = None
    """CPU in thousandths of a core."""

    memory_mb: Annotated[Mebibytes, Field(ge=0, le=_MOST)] | None = None
    """Memory in MiB."""

    gpu_count: Annotated[Gpus, Field(ge=0, le=1_000_000)] | None = None
    """Whole GPUs."""


class Amounts(ComputeAmounts):
    """Amounts of every resource that is shared out; one that is not named is left out of account."""

    slots: Annotated[Slots, Field(ge=0, le=1_000_000)] | None = None
    """Execution slots: runs that hold capacity at the same time."""


RESOURCES = ("slots", "cpu_millicores", "memory_mb", "gpu_count")
"""The attributes of :class:`Amounts`, in the order in which they are told to people."""
