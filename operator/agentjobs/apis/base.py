"""What every resource is made of: the base model and the types its fields are declared with.

The types carry what the API server needs (bounds, patterns, list types), what people need (the unit
of a number, the way out when a value is refused) and what Kubernetes does silently: a null counts as
absent, and ``1000.0`` is the integer 1000.
"""

import json
import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

T = TypeVar("T")
K = TypeVar("K", bound=str)

REFUSED = "refused"
"""The type of the errors that carry a :class:`Refusal`."""

RESERVED = "reserved_variable"
"""The type of the errors about environment variables that the runtime sets; they are told in one sentence."""


def camel(name: str) -> str:
    """Return the manifest's name of a field: ``k8s_job_name`` becomes ``k8sJobName``."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


class Model(BaseModel):
    """A part of a resource: immutable, camelCase in manifests, snake_case in code.

    Types are strict (``"5"`` is not 5, true is not 1). Unknown fields are ignored, so that objects
    stored by an older or newer version can be read.
    """

    model_config = ConfigDict(
        alias_generator=camel,
        populate_by_name=True,
        strict=True,
        extra="ignore",
        frozen=True,
        use_attribute_docstrings=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        return without_nulls(data)

    def to_manifest(self) -> dict[str, Any]:
        """Return the JSON form: camelCase keys, timestamps as text, unset fields left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def without_nulls(data: Any) -> Any:
    """Return a mapping without its null entries, as the API server stores it; anything else as it is."""
    if isinstance(data, dict) and None in data.values():
        return {key: value for key, value in data.items() if value is not None}
    return data


@dataclass(frozen=True)
class Refusal:
    """Why a value breaks a rule that is not a plain bound."""

    problem: str
    """What is wrong, to be read after the value: ``is not a CIDR block``."""
    use: str
    """The way out, an imperative: ``write it as 10.0.0.0/8``."""
    at: tuple[str, ...] = ()
    """Where below the validated field the fault lies, as manifest keys."""


def refused(problem: str, use: str, *, at: tuple[str, ...] = ()) -> PydanticCustomError:
    """Return the error with which a validator refuses a value; see :class:`Refusal`."""
    return refused_all([Refusal(problem, use, at)])


def refused_all(refusals: Sequence[Refusal]) -> PydanticCustomError:
    """Return the error with which a validator refuses a value for more than one reason."""
    text = "; ".join(f"{refusal.problem}; {refusal.use}" for refusal in refusals)
    return PydanticCustomError(REFUSED, "{text}", {"text": text, "refusals": list(refusals)})


def cel(
    rule: str,
    message: str,
    *,
    field: str | None = None,
    expression: str | None = None,
    reason: str | None = None,
) -> dict[str, str]:
    """Return one CEL rule of a schema.

    Args:
        rule: The CEL expression that must hold.
        message: What is said when it does not; also when ``expression`` fails.
        field: Path below the ruled node that the message is about, such as ``.priority``.
        expression: CEL expression of a message with values in it.
        reason: ``FieldValueForbidden`` and the like; the API server's default is FieldValueInvalid.
    """
    parts = {
        "rule": rule,
        "message": message,
        "messageExpression": expression,
        "fieldPath": field,
        "reason": reason,
    }
    return {key: value for key, value in parts.items() if value is not None}


def rules(*parts: dict[str, str]) -> dict[str, Any]:
    """Return the schema extension that carries CEL rules, for ``json_schema_extra``."""
    return {"x-kubernetes-validations": list(parts)}


# --- whole numbers; the unit is told in descriptions and in refusals ---------------------------------


def _integral(value: Any) -> Any:
    # JSON does not tell 1000.0 from 1000, and the API server takes both.
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(_integral)]
Millicores = Annotated[Whole, Field(json_schema_extra={"unit": "millicores"})]
Mebibytes = Annotated[Whole, Field(json_schema_extra={"unit": "MiB"})]
Gpus = Annotated[Whole, Field(json_schema_extra={"unit": "GPUs"})]
Seconds = Annotated[Whole, Field(json_schema_extra={"unit": "seconds"})]
Percent = Annotated[Whole, Field(json_schema_extra={"unit": "percent"})]
Runs = Annotated[Whole, Field(json_schema_extra={"unit": "runs"})]
Slots = Annotated[Whole, Field(json_schema_extra={"unit": "slots"})]
Retries = Annotated[Whole, Field(json_schema_extra={"unit": "retries"})]

# --- text ---------------------------------------------------------------------------------------------

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"^{_LABEL}(\.{_LABEL})*$"
_LABEL_VALUE = "[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
_LABEL_NAME = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_LABEL_KEY = rf"^({_LABEL}(\.{_LABEL})*/)?{_LABEL_NAME}$"

_LOWER_CASE = "use lower-case letters, digits, '-' and '.', starting and ending with a letter or digit"

ObjectName = Annotated[
    str, Field(min_length=1, max_length=253, pattern=_SUBDOMAIN, json_schema_extra={"hint": _LOWER_CASE})
]
"""A name of a Kubernetes object (a DNS subdomain)."""

PoolName = Annotated[
    str, Field(min_length=1, max_length=63, pattern=_SUBDOMAIN, json_schema_extra={"hint": _LOWER_CASE})
]
"""A name of an AgentPool: it becomes a label value, hence at most 63 characters."""

NamespaceName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=63,
        pattern=f"^{_LABEL}$",
        json_schema_extra={"hint": "use lower-case letters, digits and '-'"},
    ),
]

NamespacedName = Annotated[
    str,
    Field(
        min_length=3,
        max_length=317,
        pattern=rf"^{_LABEL}/{_LABEL}(\.{_LABEL})*$",
        json_schema_extra={"hint": "write it as namespace/name"},
    ),
]

LabelKey = Annotated[
    str,
    Field(
        min_length=1,
        max_length=317,
        pattern=_LABEL_KEY,
        json_schema_extra={"hint": "write it as name or domain/name, such as node.example.com/kind"},
    ),
]

LabelValue = Annotated[
    str,
    Field(
        max_length=63,
        pattern=f"^({_LABEL_VALUE})?$",
        json_schema_extra={"hint": "use letters, digits, '-', '_' and '.'"},
    ),
]

# A NUL byte ends a string in execve: such a container could never start.
ProcessText = Annotated[
    str,
    Field(max_length=16_384, pattern=r"^[^\x00]*$", json_schema_extra={"hint": "remove the NUL character"}),
]
"""Text handed to a process, as an argument or a variable's value."""

TeamId = Annotated[str, Field(min_length=3, max_length=64)]

_TIMESTAMP = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?Z$"


def timestamp(moment: datetime) -> str:
    """Return RFC 3339 in UTC with six decimals; ``moment`` must be aware."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _parse_timestamp(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    way_out = "write RFC 3339 in UTC, such as 2026-01-31T09:30:00.000000Z"
    if not re.fullmatch(_TIMESTAMP, value):
        raise refused("is not a timestamp", way_out)
    try:
        return datetime.fromisoformat(value)
    except ValueError as error:
        raise refused(f"is not a timestamp ({error})", way_out) from error


Timestamp = Annotated[
    datetime,
    BeforeValidator(_parse_timestamp),
    PlainSerializer(timestamp, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time", "maxLength": 40, "pattern": _TIMESTAMP}),
]

# --- JSON of any shape --------------------------------------------------------------------------------


def fits(value: Any, most: int, use: str) -> None:
    """Refuse what is no JSON, or has more than ``most`` bytes when serialised; ``use`` is the way out."""
    try:
        size = len(json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode())
    except RecursionError as error:
        raise refused("is nested too deeply", use) from error
    except (TypeError, ValueError) as error:  # dates of YAML, NaN, unpaired surrogates
        raise refused(
            f"is not JSON ({error})", "use objects, lists, text, numbers, true and false"
        ) from error
    if size > most:
        raise refused(f"has {size} bytes when serialised, the maximum is {most}", use)


# --- lists and maps -----------------------------------------------------------------------------------


def no_duplicates(values: list[T], key: Callable[[T], Hashable] = lambda value: value) -> list[T]:
    """Return ``values``, or raise a refusal that names the first key that comes a second time."""
    seen: set[Hashable] = set()
    for value in values:
        if key(value) in seen:
            raise refused(f"names {key(value)} twice", "name each once")
        seen.add(key(value))
    return values


Unique = Annotated[
    list[T], AfterValidator(no_duplicates), Field(json_schema_extra={"x-kubernetes-list-type": "set"})
]
"""A list in which no value comes twice."""

MapOf = Annotated[dict[K, T], BeforeValidator(without_nulls)]
"""A map whose null entries count as absent."""
