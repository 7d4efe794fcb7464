"""The spec of a stored AgentJob, which may have been edited past the schema since it was admitted."""

from __future__ import annotations

from pydantic import ValidationError

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
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(("spec", *map(str, first["loc"])))
        raise InvalidRunError("InvalidSpec", f"{field}: {first['msg']}; create a new AgentJob") from error
