"""The status as models: timestamps keep six decimals, some phases are terminal."""

from datetime import UTC, datetime

from agentjobs.apis.runstatus import AgentJobStatus, Phase

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_timestamps_are_written_with_six_decimals_and_read_back() -> None:
    moment = NOON.replace(microsecond=1)
    written = AgentJobStatus(phase=Phase.RUNNING, started_at=moment, k8s_job_name="j").to_manifest()
    assert written["startedAt"] == "2026-01-31T12:00:00.000001Z"
    assert written["k8sJobName"] == "j"
    assert AgentJobStatus.model_validate(written).started_at == moment


def test_terminal_phases() -> None:
    terminal = {phase.value for phase in Phase if phase.terminal}
    assert terminal == {"SUCCEEDED", "FAILED", "TIMED_OUT", "CANCELED", "SCHEDULE_FAILED"}
