"""The spec of a stored AgentJob, which may have been edited past the schema since it was admitted."""

from __future__ import annotations

from pydantic import ValidationError

from agentjobs.apis import nesting
from agentjobs.apis.agentjob import AgentJobSpec
from agentjobs.apis.records import as_dict
from agentjobs.errors import InvalidRunError


def read(raw: bytes) -> AgentJobSpec:
    """Return the spec.

    Args:
        raw: its JSON.

    Raises:
        InvalidRunError: naming the first field that cannot be used.
    """
    try:
        return AgentJobSpec.model_validate(as_dict(raw))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field, problem = ".".join(("spec", *map(str, first["loc"]))), first["msg"]
        if first["input"] == nesting.PLACEHOLDER:
            problem = f"is nested deeper than {nesting.LIMIT} levels; flatten it"
        raise InvalidRunError("InvalidSpec", f"{field}: {problem}; create a new AgentJob") from error
