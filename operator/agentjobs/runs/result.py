"""What an agent returned, read from its termination message. Hostile input: capped, never interpreted."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

MESSAGE_LIMIT = 4096  # bytes: the kubelet keeps the last ones of a longer message
_TRACEBACK_LIMIT = 4096
_ERROR_LIMIT = 1024
_DEPTH_LIMIT = 32
_ERROR_LINE = re.compile(r"^[A-Za-z_][\w.]*(Error|Exception|Exit|Interrupt|Warning|Failure)?: .*")


@dataclass(frozen=True, slots=True)
class Returned:
    """An agent's last words.

    Attributes:
        result: any JSON value, or plain text; None when there is none.
        error: the last `Type: message` of a failure, or whatever the agent called its error.
        traceback: the whole of it.
        too_large: the message had 4,096 bytes and so has lost its head.
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
    if not message or not message.strip():
        return Returned()
    document = _json_object(message)
    if document is None and len(message.encode()) >= MESSAGE_LIMIT and not failed:
        return Returned(too_large=True)
    if document is not None and ("error" in document or "traceback" in document):
        return _failure(document)
    if document is not None and "result" in document:
        return Returned(result=document["result"])
    if failed:
        text = message.strip()
        return Returned(error=last_error(text), traceback=text[-_TRACEBACK_LIMIT:] if "\n" in text else None)
    return Returned(result=document if document is not None else message.strip())


def last_error(text: str) -> str:
    """Return the last line that looks like `Type: message` with what follows it, else the last line."""
    lines = text.splitlines()
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


def _json_object(message: str) -> dict[str, Any] | None:
    try:
        value = json.loads(message)
        # NaN, infinity and lone surrogates are not JSON to the API server: they could never be stored.
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and _depth(value) <= _DEPTH_LIMIT else None


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0
