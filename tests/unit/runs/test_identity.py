"""Names that follow from an AgentJob's uid."""

from __future__ import annotations

import re
import uuid

from hypothesis import given
from hypothesis import strategies as st

from agentjobs.apis import times
from agentjobs.apis.runstatus import AgentJobStatus
from agentjobs.runs.identity import job_id, job_name, team_label

object_names = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", fullmatch=True)
uids = st.uuids().map(str)
attempts = st.integers(1, 11)
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@given(object_names, uids, attempts)
def test_a_job_name_is_a_dns_label(name: str, uid: str, attempt: int) -> None:
    assert LABEL.fullmatch(job_name(name, uid, attempt))


@given(object_names, uids, uids, attempts, attempts)
def test_a_job_name_is_one_runs_and_one_attempts(
    name: str, uid: str, other: str, attempt: int, another: int
) -> None:
    assert job_name(name, uid, attempt) == job_name(name, uid, attempt)
    if uid[-10:] != other[-10:] or attempt != another:
        assert job_name(name, uid, attempt) != job_name(name, other, another)


def test_a_job_name_can_be_recognised() -> None:
    uid = "6f0cfb6a-0a0e-4d0c-9d0a-3f2f5b1c7d11"
    assert job_name("nightly.report", uid, 2) == "nightly-report-2f5b1c7d11-2"
    assert job_name("..", uid, 1) == "run-2f5b1c7d11-1"


@given(st.integers(0, 2**47 // 1000), st.uuids(), st.integers(0, times.SECOND - 1))
def test_a_job_id_is_the_second_and_the_uids_last_bits(second: int, uid: uuid.UUID, part: int) -> None:
    made = job_id(second * times.SECOND + part, str(uid))
    assert AgentJobStatus(job_id=made).job_id == made
    number = 0
    for digit in made:
        number = number * 32 + "0123456789ABCDEFGHJKMNPQRSTVWXYZ".index(digit)
    assert number >> 80 == second * 1000
    assert number & (2**80 - 1) == uid.int & (2**80 - 1)


@given(st.text(st.characters(codec="utf-8"), min_size=3, max_size=64))
def test_a_team_label_is_a_label_value(team: str) -> None:
    assert re.fullmatch("[0-9a-f]{32}", team_label(team))
