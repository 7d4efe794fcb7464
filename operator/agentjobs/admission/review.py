"""AdmissionReviews: what the API server asks, and what it is answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

import msgspec

from agentjobs.apis import nesting
from agentjobs.apis.faults import Fault
from agentjobs.apis.records import Wire

API_VERSION = "admission.k8s.io/v1"
_SPEC_FIELDS = 5  # their level in a review: request, object, spec, field
_WARNING_LENGTH = 250  # the API server cuts longer ones


class UserInfo(Wire):
    """Who asks, as the API server has authenticated them."""

    username: str = ""
    groups: list[str] = msgspec.field(default_factory=list)


class Request(Wire):
    """One question.

    Attributes:
        object: the object as it would be stored, defaults filled in; null on a delete.
        old_object: what is stored; null on a create.
        dry_run: nothing will be stored, whatever the answer.
    """

    uid: str
    operation: str = ""
    name: str = ""
    namespace: str = ""
    user_info: UserInfo = msgspec.field(default_factory=UserInfo)
    object: Any = None
    old_object: Any = None
    dry_run: bool = False


class Review(Wire):
    """The envelope of a question."""

    request: Request
    api_version: str = ""
    kind: str = ""


_REVIEW = msgspec.json.Decoder(Review)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a question is answered.

    Attributes:
        code, reason: as of a Status object; unused where it is allowed.
        warnings: shown to the user, allowed or not.
        unsure: it rests on something that may have changed a moment ago and not been seen: ask once more.
    """

    allowed: bool = True
    code: int = 200
    reason: str = ""
    message: str = ""
    warnings: tuple[str, ...] = ()
    unsure: bool = False


class MalformedError(ValueError):
    """Bytes that are no AdmissionReview; the message says why."""


def read(body: bytes) -> Request:
    """Return the question in a request's body.

    Raises:
        MalformedError: it is no AdmissionReview of a version that is understood.
    """
    try:
        review = nesting.decode(body, _REVIEW, _SPEC_FIELDS)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedError(f"the body is no AdmissionReview: {error}") from error
    if (review.api_version, review.kind) != (API_VERSION, "AdmissionReview"):
        raise MalformedError(f"the body is no AdmissionReview of {API_VERSION}")
    if not review.request.uid:
        raise MalformedError("request.uid is empty: the API server always sets it")
    return review.request


def written(uid: str, answer: Answer) -> bytes:
    """Return the body of the HTTP response."""
    response: dict[str, Any] = {"uid": uid, "allowed": answer.allowed}
    if answer.warnings:
        response["warnings"] = [_cut(warning) for warning in answer.warnings]
    if not answer.allowed:
        response["status"] = {"code": answer.code, "reason": answer.reason, "message": answer.message}
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response})


def invalid(faults: Sequence[Fault | str]) -> Answer:
    """Refuse a manifest for all that is wrong with it."""
    return _refused(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", faults)


def forbidden(sentences: Sequence[str], *, unsure: bool = False) -> Answer:
    """Refuse what the asker may not do."""
    return replace(_refused(HTTPStatus.FORBIDDEN, "Forbidden", sentences), unsure=unsure)


def taken(sentence: str, warnings: tuple[str, ...] = ()) -> Answer:
    """Refuse what exists already."""
    return Answer(False, HTTPStatus.CONFLICT, "AlreadyExists", sentence, warnings, unsure=True)


def too_many(sentence: str) -> Answer:
    """Refuse for now; without `retryAfterSeconds`, which kubectl would obey silently for minutes."""
    return Answer(False, HTTPStatus.TOO_MANY_REQUESTS, "TooManyRequests", sentence)


def unavailable(sentence: str) -> Answer:
    """Refuse for a moment: whoever asks cannot be answered here."""
    return Answer(False, HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable", sentence)


def _refused(code: HTTPStatus, reason: str, found: Sequence[Fault | str]) -> Answer:
    sentences = [str(each) for each in found]
    if len(sentences) > 1:
        sentences = [f"{len(sentences)} things are wrong:", *(f"- {each}" for each in sentences)]
    return Answer(False, code, reason, "\n".join(sentences))


def _cut(text: str) -> str:
    return text if len(text) <= _WARNING_LENGTH else f"{text[: _WARNING_LENGTH - 1]}…"
