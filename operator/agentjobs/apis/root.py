"""What is common to the three resources: metadata, and how kubectl shows them."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from agentjobs.apis.base import Model, Whole, without_nulls

NOT_OBSERVED: dict[str, Any] = {"default": {"observedGeneration": -1}}
"""Schema of a status: what was just created is on its way to kstatus, not there already."""

READY_REASON = '.status.conditions[?(@.type=="Ready")].reason'
"""Path of the one word for how an object stands."""


@dataclass(frozen=True)
class Column:
    """A column of ``kubectl get``."""

    name: str
    """The heading; kubectl prints it in upper case."""
    path: str
    """JSONPath of the value."""
    type: Literal["string", "integer", "date"] = "string"
    wide: bool = False
    """Whether only ``-o wide`` shows it."""


class ObjectMeta(Model):
    """The metadata that is read."""

    name: str = ""
    """Unique in its namespace, or in the cluster."""

    namespace: str = ""
    """Empty for what is cluster-scoped."""

    uid: str = ""
    """Never used twice, unlike a name."""

    generation: Whole = 0
    """Counts the changes of the spec."""

    resource_version: str = ""
    """Which write this is; opaque."""

    creation_timestamp: str = ""
    """RFC 3339 in UTC, whole seconds."""

    deletion_timestamp: str | None = None
    """Set once a delete was asked for."""

    labels: Annotated[dict[str, str], BeforeValidator(without_nulls)] = Field(default_factory=dict)
    """Labels, without length limits: the API server has its own."""

    annotations: Annotated[dict[str, str], BeforeValidator(without_nulls)] = Field(default_factory=dict)
    """Annotations, likewise."""


class Resource(Model):
    """A whole object, as the API server stores it."""

    plural: ClassVar[str]
    short_name: ClassVar[str]
    namespaced: ClassVar[bool]
    columns: ClassVar[tuple[Column, ...]]
    selectable: ClassVar[tuple[str, ...]] = ()
    """JSONPaths that field selectors may use."""

    metadata: ObjectMeta = ObjectMeta()
    """Name, namespace, labels and so on."""
