"""A stored spec that cannot be used is refused by its field, with the way out."""

import json

import pytest

from agentjobs.apis import nesting
from agentjobs.errors import InvalidRunError
from agentjobs.runs import spec


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"teamId": "ab"}, "spec.teamId: String should have at least 3 characters"),
        (
            {"inputPayload": nesting.PLACEHOLDER},
            "spec.inputPayload: is nested deeper than 100 levels; flatten it",
        ),
        ({"inputPayload": "text"}, "spec.inputPayload: Input should be a valid dictionary"),
    ],
)
def test_a_spec_that_cannot_be_used(changes: dict[str, object], message: str) -> None:
    raw = json.dumps({"agentImage": "agent:1", "teamId": "blue", **changes}).encode()
    with pytest.raises(InvalidRunError) as refused:
        spec.read(raw)
    assert str(refused.value) == f"{message}; create a new AgentJob"
    assert refused.value.reason == "InvalidSpec"
