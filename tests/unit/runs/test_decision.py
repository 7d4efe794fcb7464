"""The annotation that a restart reads: what was written comes back, anything else is nothing."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentjobs.runs import decision as decisions
from agentjobs.runs.decision import Decision
from agentjobs.scheduling.resources import Amounts
from tests.unit.runs.objects import DECISION

moments = st.integers(0, 4_000_000_000_000_000)
amounts = st.integers(0, 1_000_000)
some = st.builds(
    Decision,
    attempt=st.integers(1, 11),
    created=moments,
    scheduled=moments,
    pool=st.text(st.characters(codec="utf-8")),
    team=st.text(st.characters(codec="utf-8")),
    priority=st.sampled_from(["critical", "high", "default", "low"]),
    cpu_millicores=amounts,
    memory_mb=amounts,
    gpu_count=amounts,
    timeout_seconds=amounts,
)


@given(some)
def test_what_was_written_is_read(decision: Decision) -> None:
    assert decisions.read(decision.annotation()) == decision


def test_it_holds_one_slot_and_its_envelope() -> None:
    assert DECISION.request == Amounts(1, 1000, 2048, 0)


@pytest.mark.parametrize(
    "annotation",
    [
        "",
        "{}",
        "null",
        "[1]",
        '{"attempt": 1',
        "\ud800",
        DECISION.annotation().replace("600", '"600"'),
        DECISION.annotation().replace("600", "-600"),
        DECISION.annotation().replace(str(DECISION.created), "1" + "0" * 40),
        DECISION.annotation().replace(str(DECISION.scheduled), "1" + "0" * 18),
        DECISION.annotation()[:-1] + ', "more": ' + "[" * 5000 + "]" * 5000 + "}",
    ],
)
def test_what_cannot_be_read_is_nothing(annotation: str) -> None:
    assert decisions.read(annotation) is None


@given(st.text(st.characters(codec=None)))
def test_no_text_does_harm(annotation: str) -> None:
    assert decisions.read(annotation) is None


def test_a_newer_version_may_add_to_it() -> None:
    more = msgspec.json.decode(DECISION.annotation()) | {"more": 1}
    assert decisions.read(msgspec.json.encode(more).decode()) == DECISION
