"""The errors of the package, each carrying data: what to do is decided by class, not by text."""

from __future__ import annotations

import re

_NO_RIGHT = re.compile(r'forbidden: User "[^"]*" cannot \w+ resource ')


class AgentJobsError(Exception):
    """The root of every error that this package raises on purpose."""


class SettingsError(AgentJobsError):
    """An environment variable has a value that cannot be used."""

    def __init__(self, name: str, value: str, rule: str) -> None:
        super().__init__(f"{name}={value!r}: {rule}")
        self.name = name


class InvalidRunError(AgentJobsError):
    """A stored AgentJob cannot become a Job: it was edited past the schema, or its pool refuses it.

    Attributes:
        reason: CamelCase cause for `status.reason`.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class TraceError(AgentJobsError):
    """A trace cannot be read; the message names file, line, column, value, rule and way out."""

    def __init__(
        self, file: str, rule: str, way_out: str, *, line: int = 0, column: str = "", value: object = None
    ) -> None:
        place = f"{file}{f', line {line:,}' if line else ''}{f', {_short(column)}' if column else ''}"
        found = "" if value is None else f"{_clipped(value)} "
        super().__init__(f"{place}: {found}{rule}; {way_out}")
        self.line = line
        self.column = column


class OutputError(AgentJobsError):
    """A file that was asked for cannot be written."""


class OperatorError(AgentJobsError):
    """The operator did not answer a question, or not as expected."""


class PolicyError(AgentJobsError):
    """A scheduling policy cannot be loaded."""


class ApiError(AgentJobsError):
    """The API server answered with an error, or not at all.

    Attributes:
        status: HTTP status; 0 when no answer came (network, time-out).
        reason: the machine-readable reason of the Status object, "" when there was none.
        retry_after: seconds the server asked to wait; None when it did not say.
    """

    def __init__(self, status: int, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after

    @property
    def transient(self) -> bool:
        """Whether the same request may succeed later: no answer, 401 (a token was renewed), 429 or 5xx.

        Also where our own account may not ask: a server that has just started knows no roles yet, and
        an administrator can give the right back. It is no verdict on what was asked for.
        """
        return self.status in (0, 401, 408, 429) or self.status >= 500 or self._no_right

    @property
    def absent(self) -> bool:
        """Whether that very object is not there; not so where its whole kind is not served (yet)."""
        return self.status == 404 and self.reason == "NotFound" and self.message.endswith('" not found')

    @property
    def _no_right(self) -> bool:
        # The sentence of every authorizer; admission says "admission webhook" or "ValidatingAdmissionPolicy".
        return self.status == 403 and _NO_RIGHT.search(self.message) is not None

    @property
    def quota(self) -> bool:
        """Whether a ResourceQuota of the namespace refused the object."""
        return self.status == 403 and "exceeded quota" in self.message


def plain(text: str) -> str:
    """Return text for a terminal: nothing in it moves the cursor."""
    return "".join(each if each.isprintable() else "?" for each in text)


def _short(name: str) -> str:
    clean = plain(name)
    return clean if len(clean) <= 80 else f"{clean[:77]}..."


def _clipped(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
