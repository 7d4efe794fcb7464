"""`agentjobs explain` as a person calls it, and what an operator may answer."""

import io
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from agentjobs.cli.main import main

RUN = {
    "namespace": "default",
    "name": "blue-7",
    "team": "blue",
    "priority": "default",
    "pool": "p",
    "deleting": False,
    "phase": "PENDING",
    "reason": "TeamShare",
}
WAITS = {
    "reason": "TeamShare",
    "message": "the team holds 3 slots, its share is 1",
    "unblocks": "a run of the team ends, or more becomes free",
    "placeInTeam": 2,
    "place": 9,
    "wentAhead": "red-urgent (critical)",
    "startsBefore": None,
    "holeSeconds": None,
}


class Operator(HTTPServer):
    """Answers every question with `answer`, and keeps the paths that were asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer: tuple[int, bytes] = (200, b"")
        self.asked: list[str] = []

    def says(self, said: Any, status: int = 200) -> None:
        self.answer = (status, json.dumps(said).encode())


class _Handler(BaseHTTPRequestHandler):
    server: Operator

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        status, body = self.server.answer
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *_: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def operator(monkeypatch: pytest.MonkeyPatch) -> Iterator[Operator]:
    with Operator() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("AGENTJOBS_METRICS_URL", f"http://127.0.0.1:{server.server_port}")
        yield server
        server.shutdown()
        thread.join()


def test_a_run_that_waits(operator: Operator, capsys: pytest.CaptureFixture[str]) -> None:
    operator.says({**RUN, "waits": WAITS})
    assert main(["explain", "blue-7"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "default/blue-7 of team blue, default, pool p waits",
        "  why     TeamShare: the team holds 3 slots, its share is 1",
        "  helps   a run of the team ends, or more becomes free",
        "  place   2 in its team and class, 9 of all if teams take turns by their weights",
        "  ahead   red-urgent (critical) started while it waited",
        "  starts  no promise yet",
    ]
    assert operator.asked == ["/explain/default/blue-7"]


@pytest.mark.parametrize(
    ("changes", "last"),
    [
        (
            {"startsBefore": "2026-01-02T03:04:05.000000Z"},
            "  starts  by 2026-01-02T03:04:05.000000Z at the latest",
        ),
        ({"holeSeconds": 90}, "  starts  no promise yet; with timeoutSeconds ≤ 90 it would start now"),
    ],
)
def test_a_promise_and_a_hole(
    operator: Operator, changes: dict[str, Any], last: str, capsys: pytest.CaptureFixture[str]
) -> None:
    operator.says({**RUN, "waits": {**WAITS, **changes}})
    assert main(["explain", "blue-7"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == last


def test_one_that_starts_at_the_next_look(operator: Operator, capsys: pytest.CaptureFixture[str]) -> None:
    operator.says({**RUN, "waits": {**WAITS, "reason": None, "message": None}})
    assert main(["explain", "blue-7"]) == 0
    assert "why" not in capsys.readouterr().out


def test_one_that_does_not_wait(operator: Operator, capsys: pytest.CaptureFixture[str]) -> None:
    operator.says({**RUN, "phase": "RUNNING", "reason": "AgentRunning"})
    assert main(["explain", "blue-7", "-n", "a/b"]) == 0
    assert capsys.readouterr().out == (
        "default/blue-7 of team blue, default, pool p does not wait: RUNNING (AgentRunning)\n"
    )
    assert operator.asked == ["/explain/a%2Fb/blue-7"]


def test_one_that_is_being_deleted(operator: Operator, capsys: pytest.CaptureFixture[str]) -> None:
    operator.says({**RUN, "deleting": True})
    assert main(["explain", "blue-7"]) == 0
    assert capsys.readouterr().out.endswith(" pool p does not wait: it is being deleted\n")


@pytest.mark.parametrize(
    ("changes", "place"),
    [({"place": None}, ["  place   2 in its team and class"]), ({"placeInTeam": None, "place": None}, [])],
)
def test_places_that_are_not_known(
    operator: Operator, changes: dict[str, Any], place: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    operator.says({**RUN, "waits": {**WAITS, **changes}})
    assert main(["explain", "blue-7"]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if "place" in line] == place


def test_json_is_what_the_operator_says(operator: Operator, capsys: pytest.CaptureFixture[str]) -> None:
    operator.says({**RUN, "waits": WAITS})
    assert main(["explain", "blue-7", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {**RUN, "waits": WAITS}


def test_names_move_no_cursor(operator: Operator, capsys: pytest.CaptureFixture[str]) -> None:
    operator.says({**RUN, "team": "\x1b[2Jx\n"})
    assert main(["explain", "blue-7"]) == 0
    assert "team ?[2Jx?, default" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (
            404,
            b'{"message": "there is no AgentJob default/x"}',
            "agentjobs: there is no AgentJob default/x\n",
        ),
        (404, b"404: Not Found", "/explain/default/x: 404\n"),
        (503, b"[]", "/explain/default/x: 503\n"),
        (200, b"<html>", "is no operator: its answer is no explanation\n"),
        (200, b"[]", "is no operator: its answer is no explanation\n"),
        (200, b"{}", "is not the operator of this version: KeyError('namespace')\n"),
    ],
)
def test_other_answers_are_told_in_a_line(
    operator: Operator, status: int, body: bytes, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    operator.answer = (status, body)
    assert main(["explain", "x"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith(words)
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1:1", "the operator does not answer at http://127.0.0.1:1: "),
        ("http://127.0.0.1:99999999", "the operator does not answer at http://127.0.0.1:99999999: "),
        ("file:///etc", "--operator: 'file:///etc' is no URL; it begins with http:// or https://"),
        ("", "--operator: '' is no URL; "),
        ("http://a b", "the operator does not answer at http://a b: "),
    ],
)
def test_an_operator_that_is_not_there(url: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "x", "--operator", url]) == 1
    assert words in capsys.readouterr().err


def test_a_terminal_gets_what_it_has(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    operator.says({**RUN, "waits": {**WAITS, "holeSeconds": 90}})
    content = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(content, encoding="ascii"))
    assert main(["explain", "blue-7"]) == 0
    assert b"with timeoutSeconds ? 90 it would start now" in content.getvalue()


def test_what_answers_may_speak_something_else(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with server.accept()[0] as connection:
                connection.recv(1000)
                connection.sendall(b"SSH-2.0-server\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        assert main(["explain", "x", "--operator", f"http://127.0.0.1:{server.getsockname()[1]}"]) == 1
        thread.join()
    assert "the operator does not answer at http://127.0.0.1:" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[""], ["x", "-n", " "]])
def test_a_name_that_is_empty(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["explain", *arguments])
    assert "it is empty" in capsys.readouterr().err
