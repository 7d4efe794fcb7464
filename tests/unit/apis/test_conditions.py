"""Conditions keep the time of their last transition; timestamps keep six decimals."""

from datetime import UTC, datetime, timedelta

import pytest

from agentjobs.apis.conditions import Condition, ConditionStatus, set_condition
from agentjobs.apis.runstatus import AgentJobStatus, Phase

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def condition(kind: str, status: ConditionStatus, reason: str = "Because", minutes: int = 0) -> Condition:
    return Condition(
        type=kind,
        status=status,
        reason=reason,
        message="",
        last_transition_time=NOON + timedelta(minutes=minutes),
        observed_generation=1,
    )


READY = condition("Ready", ConditionStatus.FALSE)
OTHER = condition("Running", ConditionStatus.TRUE)


@pytest.mark.parametrize(
    ("new", "since"),
    [
        pytest.param(
            condition("Ready", ConditionStatus.FALSE, "Other", minutes=5),
            NOON,
            id="same status: time kept",
        ),
        pytest.param(
            condition("Ready", ConditionStatus.TRUE, minutes=5),
            NOON + timedelta(minutes=5),
            id="another status: time is new",
        ),
    ],
)
def test_a_condition_takes_the_place_of_its_type(new: Condition, since: datetime) -> None:
    first, second = set_condition([READY, OTHER], new)
    assert (first.type, first.status, first.reason) == ("Ready", new.status, new.reason)
    assert first.last_transition_time == since
    assert second is OTHER


def test_a_new_type_is_added() -> None:
    assert set_condition([READY], OTHER) == [READY, OTHER]


def test_timestamps_are_written_with_six_decimals_and_read_back() -> None:
    moment = NOON.replace(microsecond=1)
    written = AgentJobStatus(phase=Phase.RUNNING, started_at=moment, k8s_job_name="j").to_manifest()
    assert written["startedAt"] == "2026-01-31T12:00:00.000001Z"
    assert written["k8sJobName"] == "j"
    assert AgentJobStatus.model_validate(written).started_at == moment


def test_terminal_phases() -> None:
    terminal = {phase.value for phase in Phase if phase.terminal}
    assert terminal == {"SUCCEEDED", "FAILED", "TIMED_OUT", "CANCELED", "SCHEDULE_FAILED"}
