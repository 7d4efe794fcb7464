"""The status of runs as it is stored, and who is told of it: metrics, and an Event where a start failed."""

from __future__ import annotations

import logging
from collections.abc import Callable

from agentjobs import metrics
from agentjobs.apis import names, times
from agentjobs.apis.records import AgentJobRecord, Stored
from agentjobs.apis.runstatus import Phase
from agentjobs.cluster import paths
from agentjobs.cluster.reflector import Reflector
from agentjobs.cluster.session import MERGE_PATCH, Session
from agentjobs.controller.run import Run
from agentjobs.errors import ApiError
from agentjobs.runs.status import Facts

_log = logging.getLogger(__name__)


class Reports:
    """The only writer of the status of an AgentJob."""

    def __init__(
        self, session: Session, agentjobs: Reflector[AgentJobRecord], clock: Callable[[], int]
    ) -> None:
        self._session = session
        self._agentjobs = agentjobs
        self._clock = clock

    async def store(self, run: Run, record: AgentJobRecord, status: dict[str, object]) -> bool:
        """Write a status that was worked out from `record`; return False when that is out of date."""
        path = paths.agentjob(record.namespace, record.name)
        gone = {
            name: None for name, there in _clearable(record.status).items() if there and name not in status
        }
        whole = {**gone, **status} if "phase" in status else status
        body = {"metadata": {"uid": run.uid, "resourceVersion": str(record.version)}, "status": whole}
        try:
            content = await self._session.write(
                "patch", "agentjobs/status", "PATCH", f"{path}/status", body=body, content_type=MERGE_PATCH
            )
        except ApiError as error:
            if error.status not in (404, 409):
                raise
            await self._read_again(run, path)
            return False
        self._agentjobs.upsert(AgentJobRecord(content))
        return True

    async def _read_again(self, run: Run, path: str) -> None:
        """Read an AgentJob that changed or went: what its status should be follows from what it is now."""
        try:
            stored = AgentJobRecord(await self._session.request("GET", path))
        except ApiError as error:
            if not error.absent:
                raise
            self._agentjobs.remove(run.uid)
            return
        if stored.uid == run.uid:
            self._agentjobs.upsert(stored)
        else:
            self._agentjobs.remove(run.uid)

    async def told(self, record: AgentJobRecord, facts: Facts) -> None:
        """Count what was stored, and surface what an administrator must see."""
        created, scheduled, started = facts.created, facts.scheduled, facts.started
        if record.status.started_at is None and started is not None and scheduled is not None:
            metrics.START_LAG.observe(max(0, started - scheduled) / times.SECOND)
        if record.status.scheduled_at is None and scheduled is not None:
            metrics.SCHEDULING_LAG.observe((scheduled - created) / times.SECOND)
        if facts.phase.terminal:
            metrics.RUNS_FINISHED.labels(facts.phase.value, facts.reason).inc()
        if facts.phase is Phase.SCHEDULE_FAILED:
            metrics.SCHEDULE_FAILED.labels(facts.reason).inc()
            await self._post_event(record, facts)

    async def _post_event(self, record: AgentJobRecord, facts: Facts) -> None:
        now = times.second(self._clock())
        event = {
            "metadata": {"name": f"{record.name[:200]}.{record.uid[-12:]}", "namespace": record.namespace},
            "involvedObject": {
                "apiVersion": names.API_VERSION,
                "kind": "AgentJob",
                "name": record.name,
                "namespace": record.namespace,
                "uid": record.uid,
            },
            "type": "Warning",
            "reason": "ScheduleFailed",
            "message": f"{facts.reason}: {facts.message}"[:1000],
            "source": {"component": "agentjobs"},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        try:
            await self._session.write("create", "events", "POST", paths.events(record.namespace), body=event)
        except ApiError as error:
            # The status says it already: an event more or less is not worth a second try.
            _log.warning("run %s: its event was not stored: %s", record.uid, error)


def _clearable(stored: Stored) -> dict[str, str | None]:
    """Return what a stored status tells that may cease to be so: a merge patch removes it only when told."""
    return {
        "startsBefore": stored.starts_before,
        "scheduledAt": stored.scheduled_at,
        "k8sJobName": stored.k8s_job_name,
        "podName": stored.pod_name,
        "nodeName": stored.node_name,
    }
