"""`agentjobs explain`: why a run waits, in the words of the operator that decides."""

from __future__ import annotations

import argparse
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import HTTPException
from typing import Any
from urllib.parse import quote

from agentjobs.cli.output import standard_output
from agentjobs.errors import OperatorError, plain

_TIMEOUT_SECONDS = 10
_MOST_BYTES = 1_000_000
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # the operator is near, or led here


def run(options: argparse.Namespace) -> None:
    """Ask, and print.

    Raises:
        OperatorError: nobody answers, the answer is no explanation, or it is that there is no such run.
        OutputError: when the standard output cannot be written.
    """
    found = _asked(options.operator, options.namespace, options.name)
    try:
        lines = [json.dumps(found, indent=2)] if options.json else [plain(line) for line in _lines(found)]
    except (KeyError, TypeError) as error:
        raise OperatorError(f"{options.operator} is not the operator of this version: {error!r}") from error
    with standard_output() as out:
        for line in lines:
            print(line, file=out)


def _asked(operator: str, namespace: str, name: str) -> dict[str, Any]:
    url = f"{operator.rstrip('/')}/explain/{quote(namespace, safe='')}/{quote(name, safe='')}"
    if not url.startswith(("http://", "https://")):
        raise OperatorError(f"--operator: {operator!r} is no URL; it begins with http:// or https://")
    try:
        with _DIRECT.open(url, timeout=_TIMEOUT_SECONDS) as answer:
            content = answer.read(_MOST_BYTES)
    except urllib.error.HTTPError as error:
        with error:
            raise OperatorError(_message(error.read(_MOST_BYTES), f"{url}: {error.code}")) from error
    except (OSError, ValueError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise OperatorError(
            f"the operator does not answer at {operator}: {reason}; name where it does with --operator, or "
            "AGENTJOBS_METRICS_URL (`. .local/env` on the local cluster)"
        ) from error
    try:
        found = json.loads(content)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise OperatorError(f"{operator} is no operator: its answer is no explanation")
    return found


def _message(content: bytes, otherwise: str) -> str:
    try:
        message = json.loads(content)["message"]
    except (ValueError, KeyError, TypeError):
        return otherwise
    return str(message)


def _lines(found: dict[str, Any]) -> Iterator[str]:
    name = f"{found['namespace']}/{found['name']}"
    whose = f"team {found['team']}, {found['priority']}, pool {found['pool']}"
    waits = found.get("waits")
    if waits is None:
        reason = f" ({found['reason']})" if found["reason"] else ""
        phase = "it is being deleted" if found["deleting"] else f"{found['phase']}{reason}"
        yield f"{name} of {whose} does not wait: {phase}"
        return
    yield f"{name} of {whose} waits"
    if waits["reason"]:
        yield f"  why     {waits['reason']}: {waits['message']}"
    yield f"  helps   {waits['unblocks']}"
    if waits["placeInTeam"]:
        of_all = f", {waits['place']} of all if teams take turns by their weights" if waits["place"] else ""
        yield f"  place   {waits['placeInTeam']} in its team and class{of_all}"
    if waits["wentAhead"]:
        yield f"  ahead   {waits['wentAhead']} started while it waited"
    yield f"  starts  {_promise(waits)}"


def _promise(waits: dict[str, Any]) -> str:
    if waits["startsBefore"]:
        return f"by {waits['startsBefore']} at the latest"
    if waits["holeSeconds"]:
        return f"no promise yet; with timeoutSeconds ≤ {waits['holeSeconds']} it would start now"
    return "no promise yet"
