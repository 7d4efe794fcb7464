"""The status: whole from the facts, in order in time, and read rightly by kstatus."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentjobs.apis import times
from agentjobs.apis.runstatus import AgentJobStatus, Phase
from agentjobs.runs import identity
from agentjobs.runs.result import parse
from agentjobs.runs.status import Facts, status_of
from tests.unit.runs.objects import CREATED, UID

JSON = dict[str, Any]
JOB_ID = identity.job_id(CREATED, UID)
PENDING = Facts(JOB_ID, 3, Phase.PENDING, "NoFreeSlot", "needs 1 slots", CREATED)
SCHEDULED = replace(
    PENDING, phase=Phase.SCHEDULED, reason="JobCreated", scheduled=CREATED + 10, k8s_job_name="run-1"
)
RUNNING = replace(
    SCHEDULED, phase=Phase.RUNNING, reason="Started", started=CREATED + 2 * times.SECOND, node_name="n"
)
ENDED = replace(RUNNING, completed=CREATED + 44_600_000, exit_code=0)
STORIES = {
    Phase.PENDING: PENDING,
    Phase.SCHEDULED: SCHEDULED,
    Phase.RUNNING: RUNNING,
    Phase.CANCELING: replace(RUNNING, phase=Phase.CANCELING, reason="CancelRequested"),
    Phase.SUCCEEDED: replace(ENDED, phase=Phase.SUCCEEDED, reason="Completed"),
    Phase.FAILED: replace(ENDED, phase=Phase.FAILED, reason="AgentFailed", exit_code=1),
    Phase.TIMED_OUT: replace(ENDED, phase=Phase.TIMED_OUT, reason="DeadlineExceeded"),
    Phase.CANCELED: replace(ENDED, phase=Phase.CANCELED, reason="CancelRequested"),
    Phase.SCHEDULE_FAILED: replace(
        PENDING, phase=Phase.SCHEDULE_FAILED, reason="InvalidSpec", completed=CREATED + 5
    ),
}

# -- conditions, as tools read them --------------------------------------------------------------------


def kstatus(generation: int, status: JSON) -> str:
    """What kstatus (Flux) says of an object that is not being deleted; its rules, in its order."""
    if status.get("observedGeneration", generation) != generation:
        return "InProgress"
    conditions = {each["type"]: each["status"] for each in status["conditions"]}
    if conditions.get("Reconciling") == "True":
        return "InProgress"
    if conditions.get("Stalled") == "True":
        return "Failed"
    return "Current" if conditions.get("Ready", "True") == "True" else "InProgress"


READ_AS = {
    Phase.PENDING: "InProgress",
    Phase.SCHEDULED: "InProgress",
    Phase.RUNNING: "InProgress",
    Phase.CANCELING: "InProgress",
    Phase.SUCCEEDED: "Current",
    Phase.FAILED: "Failed",
    Phase.TIMED_OUT: "Failed",
    Phase.CANCELED: "Current",
    Phase.SCHEDULE_FAILED: "Failed",
}


@pytest.mark.parametrize("phase", Phase)
def test_kstatus_reads_every_phase_rightly(phase: Phase) -> None:
    status = status_of(STORIES[phase])
    assert kstatus(3, status) == READ_AS[phase]
    assert kstatus(4, status) == "InProgress"


#                       Admitted Running  Finished Succeeded  Ready
EXPECTED = {
    Phase.PENDING: "         False False False Unknown False",
    Phase.SCHEDULED: "       True  False False Unknown False",
    Phase.RUNNING: "         True  True  False Unknown False",
    Phase.CANCELING: "       True  False False Unknown False",
    Phase.SUCCEEDED: "       True  False True  True    True",
    Phase.FAILED: "          True  False True  False   False",
    Phase.TIMED_OUT: "       True  False True  False   False",
    Phase.CANCELED: "        True  False True  False   True",
    Phase.SCHEDULE_FAILED: " False False True  False   False",
}


@pytest.mark.parametrize("phase", Phase)
def test_every_phase_has_its_conditions(phase: Phase) -> None:
    conditions = status_of(STORIES[phase])["conditions"]
    states = {each["type"]: each["status"] for each in conditions}
    usual = ("Admitted", "Running", "Finished", "Succeeded", "Ready")
    assert [states[name] for name in usual] == EXPECTED[phase].split()
    # The abnormal ones are left out while they are false.
    assert states.keys() - set(usual) <= {"Reconciling", "Stalled"}
    assert {states[name] for name in states.keys() - set(usual)} <= {"True"}
    assert {each["observedGeneration"] for each in conditions} == {3}


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    def since(facts: Facts, kind: str) -> Any:
        return next(c["lastTransitionTime"] for c in status_of(facts)["conditions"] if c["type"] == kind)

    for kind in ("Finished", "Succeeded", "Ready", "Reconciling"):
        assert since(PENDING, kind) == since(SCHEDULED, kind) == since(RUNNING, kind)
    assert since(SCHEDULED, "Admitted") == since(RUNNING, "Admitted") == since(ENDED, "Admitted")
    assert since(STORIES[Phase.FAILED], "Stalled") == times.second(CREATED + 44_600_000)


# -- fields --------------------------------------------------------------------------------------------


def test_what_is_not_known_is_left_out() -> None:
    assert status_of(PENDING).keys() == {
        "observedGeneration",
        "phase",
        "reason",
        "message",
        "jobId",
        "createdAt",
        "conditions",
    }


def test_the_end_tells_how_long_it_ran_and_what_it_returned() -> None:
    returned = parse('{"result": {"answer": 42}}', failed=False)
    status = status_of(replace(STORIES[Phase.SUCCEEDED], returned=returned))
    assert status["duration"] == "43s"
    assert status["result"] == {"answer": 42}
    assert "error" not in status


@pytest.mark.parametrize(
    ("phase", "error"),
    [
        (Phase.FAILED, "ValueError: no"),
        (Phase.TIMED_OUT, "DeadlineExceeded: needs 1 slots"),
        (Phase.SCHEDULE_FAILED, "ScheduleFailed: InvalidSpec: needs 1 slots"),
        (Phase.CANCELED, None),
    ],
)
def test_an_end_that_is_not_good_tells_the_error_and_no_result(phase: Phase, error: str | None) -> None:
    returned = parse('{"error": "ValueError: no", "traceback": "Traceback"}', failed=True)
    status = status_of(replace(STORIES[phase], returned=returned))
    assert status.get("error") == error
    assert "result" not in status


def test_a_failure_without_last_words_tells_the_message() -> None:
    assert status_of(STORIES[Phase.FAILED])["error"] == "needs 1 slots"


# -- any facts -----------------------------------------------------------------------------------------

texts = st.text(st.characters(codec="utf-8"), max_size=40)
long_texts = texts.map(lambda text: text * 400)
names = st.none() | st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)
moments = st.integers(0, 4_000_000_000_000_000)
some_facts = st.builds(
    Facts,
    job_id=st.just(JOB_ID),
    generation=st.integers(1, 2**40),
    phase=st.sampled_from(Phase),
    reason=texts | st.sampled_from(["NoFreeSlot", "A" * 129, "With space", "_x", "Ends_"]),
    message=texts | long_texts,
    created=moments,
    scheduled=st.none() | moments,
    started=st.none() | moments,
    completed=st.none() | moments,
    k8s_job_name=names,
    pod_name=names,
    node_name=names,
    exit_code=st.none() | st.integers(-(2**31), 2**31 - 1),
    returned=st.builds(parse, texts | long_texts, failed=st.booleans()),
)


@given(some_facts)
def test_any_facts_make_a_status_that_can_be_stored(facts: Facts) -> None:
    status = status_of(facts)
    AgentJobStatus.model_validate(msgspec.json.decode(msgspec.json.encode(status)))
    times_told = [status.get(name) for name in ("createdAt", "scheduledAt", "startedAt", "completedAt")]
    known = [moment for moment in times_told if moment is not None]
    assert known == sorted(known)
    assert status["observedGeneration"] == facts.generation
