"""What an agent returned: hostile input that must neither raise nor grow."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentjobs.apis.runstatus import RESULT_MAX_BYTES
from agentjobs.runs.result import Returned, parse

ENDS = [
    ("nothing", "", Returned()),
    ("blanks", " \n\t", Returned()),
    ("a result", '{"result": {"answer": 42}}', Returned(result={"answer": 42})),
    ("a result that is null", '{"result": null}', Returned()),
    ("a result beside an empty error", '{"result": 1, "error": null, "traceback": ""}', Returned(result=1)),
    ("an object of another form", '{"answer": 42}', Returned(result={"answer": 42})),
    ("a list", "[1, 2]", Returned(result="[1, 2]")),
    ("plain text", " done\n", Returned(result="done")),
    ("an error", '{"error": "ValueError: no"}', Returned(error="ValueError: no")),
    ("an error that is no text", '{"error": {"code": 7}}', Returned(error='{"code": 7}')),
    (
        "a traceback without an error",
        '{"traceback": "Traceback (most recent call last):\\n  File \\"a.py\\"\\nKeyError: 1"}',
        Returned(
            error="KeyError: 1",
            traceback='Traceback (most recent call last):\n  File "a.py"\nKeyError: 1',
        ),
    ),
    ("not a number", '{"result": NaN}', Returned(result='{"result": NaN}')),
    ("infinity", '{"result": [-Infinity]}', Returned(result='{"result": [-Infinity]}')),
    ("a number too large for a float", '{"result": 1e400}', Returned(result='{"result": 1e400}')),
    ("the largest integer", f'{{"result": {2**63 - 1}}}', Returned(result=2**63 - 1)),
    ("one more", f'{{"result": {2**63}}}', Returned(result=f'{{"result": {2**63}}}')),
    ("an escaped lone surrogate", '{"result": "\\ud800"}', Returned(result='{"result": "\\ud800"}')),
    ("a lone surrogate", "\ud800", Returned(result="?")),
    ("4,096 bytes", "é" * 2048, Returned(too_large=True)),
    ("4,096 bytes of JSON", json.dumps({"result": "x" * 4082}), Returned(result="x" * 4082)),
    (
        "numbers that grow",
        json.dumps({"result": 0}).replace("0", f"[{'1e9,' * 700}0]"),
        Returned(too_large=True),
    ),
]


@pytest.mark.parametrize(("message", "returned"), [row[1:] for row in ENDS], ids=[row[0] for row in ENDS])
def test_what_a_run_that_went_well_returned(message: str, returned: Returned) -> None:
    assert parse(message, failed=False) == returned


def test_json_nested_too_deeply_is_text() -> None:
    for depth in (40, 900, 2000):
        message = f'{{"result": {"[" * depth}{"]" * depth}}}'
        assert parse(message, failed=False).result in (message, None)


CHAINED = """starting
warning: odd
Traceback (most recent call last):
  File "a.py", line 1, in <module>
    1 / 0
ZeroDivisionError: division by zero

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "a.py", line 3, in <module>
    raise ValueError(text)
ValueError: the settings are wrong
timeout: must be a number
  name: must be set"""

TAILS = [
    (
        "the message of the last error may have lines",
        CHAINED,
        "ValueError: the settings are wrong\ntimeout: must be a number\n  name: must be set",
    ),
    (
        "a bare exception",
        "Traceback (most recent call last):\n  File\nKeyboardInterrupt",
        "KeyboardInterrupt",
    ),
    ("a traceback that lost its end", "Traceback (most recent call last):\n  File", "File"),
    ("a traceback that lost its head", '    open("x")\nOSError: [Errno 2] x', "OSError: [Errno 2] x"),
    ("another language", "panic\ngoroutine 1:\nexit: status 2\nbye", "exit: status 2\nbye"),
    ("no error at all", "one\ntwo", "two"),
    ("one line", "boom", "boom"),
    ("an object of another form", '{"code": 7}', '{"code": 7}'),
]


@pytest.mark.parametrize(("tail", "error"), [row[1:] for row in TAILS], ids=[row[0] for row in TAILS])
def test_the_log_of_a_run_that_failed_tells_the_error(tail: str, error: str) -> None:
    returned = parse(tail, failed=True)
    assert returned.error == error
    assert returned.traceback == (tail.strip() if "\n" in tail else None)


def test_a_result_of_a_run_that_failed_is_no_error() -> None:
    assert parse('{"result": 1}', failed=True) == Returned(result=1)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda parts: st.lists(parts) | st.dictionaries(st.text() | st.sampled_from(["result", "error"]), parts),
    max_leaves=20,
)
texts = st.text(st.characters(codec=None), max_size=5000)
messages = texts | anything.map(json.dumps) | anything.map(lambda value: json.dumps({"result": value}))


@given(messages, st.booleans())
@example("\udfff" * 4096, False)
@example('{"error": "\ud800"}', True)
@example('"' * 4095, False)
@example("\x00" * 4095, True)
def test_no_text_does_harm(message: str, failed: bool) -> None:
    returned = parse(message, failed=failed)
    parts: list[Any] = [returned.result, returned.error, returned.traceback]
    stored = msgspec.json.decode(msgspec.json.encode(parts))
    assert stored == parts
    size = len(json.dumps(returned.result, ensure_ascii=False, separators=(",", ":")).encode())
    assert size <= RESULT_MAX_BYTES
    assert len(returned.error or "") <= 1024
    assert len(returned.traceback or "") <= 4096
