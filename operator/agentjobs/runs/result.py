"""What an agent returned, read from its termination message. Hostile input: capped, never interpreted."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from agentjobs.apis.runstatus import RESULT_MAX_BYTES

MESSAGE_LIMIT = 4096  # bytes: the kubelet keeps the last ones of a longer message
_TRACEBACK_LIMIT = 4096
_ERROR_LIMIT = 1024
_DEPTH_LIMIT = 32
_TRACEBACK = "Traceback (most recent call last):"
_ERROR_LINE = re.compile(r"^[A-Za-z_][\w.]*(Error|Exception|Exit|Interrupt|Warning|Failure)?: .*")


@dataclass(frozen=True, slots=True)
class Returned:
    """An agent's last words.

    Attributes:
        result: any JSON value, or plain text; None when there is none.
        error: the last `Type: message` of a failure, or whatever the agent called its error.
        traceback: the whole of it.
        too_large: the message had 4,096 bytes and so has lost its head, or its result needs more as JSON.
    """

    result: Any = None
    error: str | None = None
    traceback: str | None = None
    too_large: bool = False


def parse(message: str | None, *, failed: bool) -> Returned:
    """Read a termination message: `{"result": …}`, `{"error": …, "traceback": …}`, or plain text.

    Args:
        message: as the kubelet reports it; None and "" mean that nothing was returned.
        failed: whether the exit code was not 0: plain text is then the log's tail, read for an error.
    """
    # A lone surrogate is no character: nothing that holds one can be sent or stored.
    text = (message or "").encode(errors="replace").decode().strip()
    if not text:
        return Returned()
    document = _json_object(text)
    if document is None and len((message or "").encode(errors="replace")) >= MESSAGE_LIMIT and not failed:
        return Returned(too_large=True)
    if document is not None and any(document.get(key) not in (None, "") for key in ("error", "traceback")):
        return _failure(document)
    if failed and "result" not in (document or {}):
        return Returned(error=last_error(text), traceback=text[-_TRACEBACK_LIMIT:] if "\n" in text else None)
    result = text if document is None else document.get("result", document)
    if len(json.dumps(result, ensure_ascii=False, separators=(",", ":")).encode()) > RESULT_MAX_BYTES:
        return Returned(too_large=True)
    return Returned(result=result)


def last_error(text: str) -> str:
    """Return the error that a log's tail ends with: `Type: message`, with all lines of the message.

    That is what follows the frames of the last traceback; without one the last line that looks like
    it, with what follows; without that the last line.
    """
    lines = text.splitlines()
    for index in range(len(lines) - 1, -1, -1):
        if lines[index] == _TRACEBACK:
            found = next((at for at in range(index + 1, len(lines)) if lines[at][:1].strip()), None)
            if found is not None:
                return "\n".join(lines[found:]).strip()[:_ERROR_LIMIT]
    for index in range(len(lines) - 1, -1, -1):
        if _ERROR_LINE.match(lines[index]):
            return "\n".join(lines[index:]).strip()[:_ERROR_LIMIT]
    return lines[-1].strip()[:_ERROR_LIMIT] if lines else ""


def _failure(document: dict[str, Any]) -> Returned:
    traceback, error = document.get("traceback"), document.get("error")
    trace = traceback[-_TRACEBACK_LIMIT:] if isinstance(traceback, str) else None
    if not isinstance(error, str):
        error = json.dumps(error) if error is not None else last_error(trace or "")
    return Returned(error=error[:_ERROR_LIMIT], traceback=trace)


def _json_object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
        # NaN, infinity and lone surrogates are not JSON to the API server: they could never be stored.
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
        storable = _storable(value, _DEPTH_LIMIT)
    except (ValueError, RecursionError):
        return None
    return value if storable and isinstance(value, dict) else None


def _storable(value: Any, depth: int) -> bool:
    """Whether a JSON value comes back from the API server as it was: integers of 64 bits, not too deep."""
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        return depth > 0 and all(_storable(part, depth - 1) for part in parts)
    return True
