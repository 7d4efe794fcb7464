"""Conditions: the vocabulary in which a resource tells tools how it stands.

``kubectl wait`` reads one type at a time, and a condition older than the spec as unmet. kstatus (Flux,
Argo CD by its rules) reads ``Reconciling``, ``Stalled`` and ``Ready``; the first two are abnormal-true:
they are left out while false.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from agentjobs.apis.base import Model, Timestamp, Whole, no_duplicates

MESSAGE_MAX_LENGTH = 32_768

ConditionReason = Annotated[
    str,
    Field(
        min_length=1,
        max_length=128,
        pattern="^[A-Za-z][A-Za-z0-9_]*$",
        json_schema_extra={"hint": "write one CamelCase word"},
    ),
]


class ConditionType(StrEnum):
    """The types of conditions that are written."""

    ADMITTED = "Admitted"
    """The run was given a slot: it is SCHEDULED or further. False with the reason why it waits."""

    RUNNING = "Running"
    """The agent's container runs now."""

    FINISHED = "Finished"
    """The phase is terminal, whichever it is. Wait for this one, then read Succeeded."""

    SUCCEEDED = "Succeeded"
    """The run ended well. Unknown until it has ended."""

    READY = "Ready"
    """kstatus: nothing more is to be expected, and what was asked for is there."""

    RECONCILING = "Reconciling"
    """kstatus: still on its way. Left out when false."""

    STALLED = "Stalled"
    """kstatus: it ended, and not well. Left out when false."""


class ConditionStatus(StrEnum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(Model):
    """One aspect of the state, as in every Kubernetes resource."""

    type: Annotated[
        str,
        Field(
            min_length=1,
            max_length=316,
            pattern="^[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?$",
            json_schema_extra={"hint": "write one CamelCase word"},
        ),
    ]
    """What is told: Admitted, Running, Finished, Succeeded, Ready, Reconciling or Stalled."""

    status: ConditionStatus = Field(strict=False)
    """Whether it holds: True, False or Unknown."""

    reason: ConditionReason
    """The cause in one CamelCase word, for machines."""

    message: str = Field(max_length=MESSAGE_MAX_LENGTH)
    """The cause in a sentence, for people."""

    last_transition_time: Timestamp
    """When the status last changed, RFC 3339 in UTC."""

    observed_generation: Annotated[Whole, Field(ge=0)] | None = None
    """The metadata.generation that this condition was computed from."""


def _each_type_once(conditions: list[Condition]) -> list[Condition]:
    return no_duplicates(conditions, key=lambda condition: condition.type)


Conditions = Annotated[
    list[Condition],
    Field(
        max_length=16,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    ),
    AfterValidator(_each_type_once),
]
