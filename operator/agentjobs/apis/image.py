"""The image reference of an agent: which names are taken, and what to do about the others."""

from typing import Annotated

from pydantic import Field

_NAME = "[A-Za-z0-9_./-]+"
_TAG = ":[A-Za-z0-9_.-]+"
_DIGEST = "@sha256:[a-f0-9]{64}"
_REGISTRY_WITH_PORT = "[A-Za-z0-9_.-]+:[0-9]{1,5}/"

# Everything of the form name:tag, however odd (`a//b:1`): whether it can be pulled, the registry
# decides. A tag or a digest is required, since a run must say what it runs. Character classes are
# spelled out because `\w` and `$` differ between regular expression engines.
PATTERN = f"^({_REGISTRY_WITH_PORT})?{_NAME}({_TAG}({_DIGEST})?|{_DIGEST})$"

MAX_LENGTH = 512  # a name of 255, a tag of 128 and a digest of 71 characters, and room

Image = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_LENGTH,
        pattern=PATTERN,
        json_schema_extra={
            "hint": "name a tag or a digest, such as registry.example.com/team/agent:1.0 "
            "or agent@sha256:<64 hex digits>"
        },
    ),
]
