"""Whatever is sent, the answer is well-formed and comes in time; and a fault of ours is no verdict."""

import asyncio
import contextlib
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from agentjobs.admission import server as module
from agentjobs.admission.review import Answer, Request
from agentjobs.admission.server import BODY_BYTES, Hook, Server
from tests.unit.admission.desk import Desk, manifest

PREFIX = "/secret/7"


def review(job: dict[str, Any] | None = None, **request: Any) -> dict[str, Any]:
    job = job or manifest()
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "question",
            "operation": "CREATE",
            "name": job["metadata"]["name"],
            "namespace": "default",
            "userInfo": {"username": "jane"},
            "object": job,
            **request,
        },
    }


class Client:
    """Sends bodies to a server."""

    def __init__(self, http: aiohttp.ClientSession, port: int) -> None:
        self.http = http
        self.port = port

    async def send(self, body: bytes, path: str = f"{PREFIX}/agentjobs") -> tuple[int, dict[str, Any]]:
        async with self.http.post(f"http://127.0.0.1:{self.port}{path}", data=io.BytesIO(body)) as answer:
            return answer.status, json.loads(await answer.read())

    async def ask(self, **request: Any) -> dict[str, Any]:
        """Send a review that is understood, and return its response."""
        status, body = await self.send(json.dumps(review(**request)).encode())
        assert status == 200
        assert (body["apiVersion"], body["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        assert body["response"]["uid"] == "question"
        response: dict[str, Any] = body["response"]
        return response


@asynccontextmanager
async def serving(hook: Hook | None = None, closed: str | None = None) -> AsyncIterator[Client]:
    server = Server({"agentjobs": hook or Desk().admission.review}, lambda: PREFIX, lambda: closed)
    async with server.listening("127.0.0.1", 0, None) as port, aiohttp.ClientSession() as http:
        yield Client(http, port)


async def test_allowed_with_warnings() -> None:
    async with serving() as client:
        assert await client.ask() == {"uid": "question", "allowed": True, "warnings": ["starts now"]}


async def test_refused_with_code_reason_and_message() -> None:
    async with serving() as client:
        response = await client.ask(job=manifest(retries=9))
    assert response["allowed"] is False
    assert response["status"]["code"] == 422
    assert response["status"]["reason"] == "Invalid"
    assert response["status"]["message"].startswith("spec.retries: 9 is above the maximum of 5")


async def test_too_many_has_no_retry_after_seconds() -> None:
    """The API server would make a header of it, and kubectl wait for it silently, again and again."""
    desk = Desk()
    for number in range(50):
        desk.submit(f"run-{number}")
    async with serving(desk.admission.review) as client:
        status = (await client.ask())["status"]
    assert status == {
        "code": 429,
        "reason": "TooManyRequests",
        "message": "Team blue has 50 pending jobs; retry after 30s",
    }


async def test_warning_is_cut_to_what_the_api_server_shows() -> None:
    async with serving(lambda _: Answer(warnings=("x" * 1000,))) as client:
        [warning] = (await client.ask())["warnings"]
    assert len(warning) == 250
    assert warning.endswith("x…")


WHOLE = json.dumps(review()).encode()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"7",
        b"not json",
        b"\xff\xfe",
        WHOLE[: len(WHOLE) // 2],
        WHOLE + b"}",
        b"{}",
        b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}',
        json.dumps({**review(), "apiVersion": "admission.k8s.io/v1beta1"}).encode(),
        json.dumps({**review(), "kind": "Pod"}).encode(),
        json.dumps(review(uid="")).encode(),
        json.dumps(review(uid=None)).encode(),
        json.dumps(review(operation=7)).encode(),
        json.dumps(review(userInfo={"groups": "admins"})).encode(),
        b"[" * 100_000,
        b'{"request":' * 100_000,
    ],
)
async def test_body_that_is_no_review(body: bytes) -> None:
    async with serving() as client:
        status, answer = await client.send(body)
    assert status == 400
    assert answer["message"].startswith(("the body is no AdmissionReview", "request.uid is empty"))


@pytest.mark.parametrize("deep", ["[" * 5000 + "]" * 5000, '{"a":' * 5000 + "1" + "}" * 5000])
async def test_payload_that_is_nested_without_end(deep: str) -> None:
    body = json.dumps(review(manifest(inputPayload={"deep": "HERE"}))).replace('"HERE"', deep).encode()
    async with serving() as client:
        status, answer = await client.send(body)
    assert status == 200
    assert answer["response"]["status"]["code"] == 422
    assert "spec.inputPayload" in answer["response"]["status"]["message"]


async def test_review_of_three_mebibytes_is_answered() -> None:
    big = manifest(inputPayload={"text": "x" * (3 * 1024 * 1024)})
    async with serving() as client:
        response = await client.ask(job=big)
    assert response["status"]["message"].startswith("spec.inputPayload: has 3145")


async def test_body_that_is_larger_than_two_objects_can_be() -> None:
    async with serving() as client:
        status, answer = await client.send(b" " * (BODY_BYTES + 1))
    assert (status, answer) == (413, {"message": f"the body has more than {BODY_BYTES} bytes"})


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/agentjobs",
        "/secret/6/agentjobs",
        "/secret/7/pods",
        "/secret/7/",
        "/Secret/7/agentjobs",
        "/secret/7",
    ],
)
async def test_wrong_path(path: str) -> None:
    async with serving() as client:
        assert (await client.send(WHOLE, path))[0] == 404


@pytest.mark.parametrize("headers", [{"Content-Encoding": "gzip"}, {"Content-Encoding": "deflate"}])
async def test_body_that_is_not_encoded_as_it_says(headers: dict[str, str]) -> None:
    async with serving() as client:
        url = f"http://127.0.0.1:{client.port}{PREFIX}/agentjobs"
        async with client.http.post(url, data=io.BytesIO(WHOLE), headers=headers) as answer:
            assert (answer.status, "message" in await answer.json()) == (400, True)


async def test_what_may_not_have_been_seen_is_asked_once_more() -> None:
    """A key of a run that was deleted, a team that was just created: the watch is a moment behind."""
    desk, asked = Desk(), list[Answer]()
    job = manifest("first", idempotencyKey="k")
    desk.create(job)
    desk.seen(job)

    def hook(request: Request) -> Answer:
        asked.append(desk.admission.review(request))
        if len(asked) == 1:
            desk.gone(job)
        return asked[-1]

    async with serving(hook) as client:
        assert (await client.ask(job=manifest("second", idempotencyKey="k")))["allowed"]
    assert [answer.code for answer in asked] == [409, 200]


async def test_before_there_is_a_path_none_is_right() -> None:
    server = Server({"agentjobs": Desk().admission.review}, lambda: "", lambda: None)
    async with server.listening("127.0.0.1", 0, None) as port, aiohttp.ClientSession() as http:
        for path in ("/agentjobs", "//agentjobs", "agentjobs"):
            assert (await Client(http, port).send(WHOLE, f"/{path.lstrip('/')}"))[0] == 404


async def test_other_methods() -> None:
    async with (
        serving() as client,
        client.http.get(f"http://127.0.0.1:{client.port}{PREFIX}/agentjobs") as answer,
    ):
        assert answer.status == 405


async def test_closed_answers_every_path_with_a_refusal_that_passes() -> None:
    """A standby, or a leader that was deposed, may be asked at a path that was right."""
    async with serving(closed="this is not the leader") as client:
        status, answer = await client.send(WHOLE, "/old/3/agentjobs")
    assert status == 200
    assert answer["response"]["status"] == {
        "code": 503,
        "reason": "ServiceUnavailable",
        "message": "this is not the leader; try again in a few seconds",
    }


async def test_fault_of_ours_is_no_verdict(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: Request) -> Answer:
        raise RuntimeError("a bug")

    async with serving(broken) as client:
        response = await client.ask()
    assert response["status"]["code"] == 503
    assert "a bug" in caplog.text


async def test_five_hundred_at_once_are_all_answered() -> None:
    async with serving() as client:
        jobs = [manifest(f"run-{number}") for number in range(500)]
        answers = await asyncio.gather(*(client.ask(job=job) for job in jobs))
    assert sum(answer["allowed"] for answer in answers) == 50
    assert {answer["status"]["code"] for answer in answers if not answer["allowed"]} == {429}


async def test_body_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BODY_SECONDS", 0.05)
    async with serving() as client:
        reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
        writer.write(f"POST {PREFIX}/agentjobs HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{{".encode())
        assert b"408" in await asyncio.wait_for(reader.readline(), 5)
        writer.close()
        assert (await client.ask())["allowed"]


@pytest.mark.parametrize("begun", [b"", b"POST /secret", b"POST / HTTP/1.1\r\nHost: x\r\n"])
async def test_connection_on_which_nothing_is_asked_is_closed(
    begun: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_REQUEST_SECONDS", 0.05)
    async with serving() as client:
        held = [await asyncio.open_connection("127.0.0.1", client.port) for _ in range(50)]
        for _, writer in held:
            writer.write(begun)
        assert (await client.ask())["allowed"]
        for reader, _ in held:
            with contextlib.suppress(ConnectionResetError):  # what was sent is not even read
                assert await asyncio.wait_for(reader.read(), 5) == b""
        for _, writer in held:
            writer.close()
