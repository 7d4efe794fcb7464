"""kopf as the shell: start-up, login, settings, probes, pools and teams, clean-up. Shims without logic."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

import kopf

from agentjobs.apis.names import GROUP, VERSION
from agentjobs.cluster.session import Session, log_in
from agentjobs.controller.loop import Loop
from agentjobs.controller.serve import serve, unready
from agentjobs.scheduling.policies import Policy
from agentjobs.settings import Settings


class _NoDiff(kopf.AnnotationsDiffBaseStorage):
    """Keeps no copy of what was seen last: only raw events are handled, and nothing is written for them."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        return kopf.BodyEssence({})

    def fetch(self, **_: Any) -> kopf.BodyEssence | None:
        return None


def registry(loop: Loop, settings: Settings) -> kopf.OperatorRegistry:
    """Return kopf's handlers around the loop."""
    handlers = kopf.OperatorRegistry()

    @kopf.on.login(registry=handlers)
    def login(**_: Any) -> kopf.ConnectionInfo:
        return log_in()

    @kopf.on.startup(registry=handlers)
    def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        settings.posting.enabled = False
        settings.persistence.diffbase_storage = _NoDiff()
        settings.networking.request_timeout = 15
        settings.networking.error_backoffs = _Endless()

    @kopf.on.event(GROUP, VERSION, "agentpools", registry=handlers)
    def pool_seen(type: str | None, name: str, body: kopf.Body, **_: Any) -> None:  # noqa: A002
        if type == "DELETED":
            loop.state.catalogue.pool_deleted(name)
        elif not loop.state.catalogue.pool_stored(dict(body)):
            return
        loop.state.catalogue_changed()

    @kopf.on.event(GROUP, VERSION, "agentteams", registry=handlers)
    def team_seen(type: str | None, name: str, body: kopf.Body, **_: Any) -> None:  # noqa: A002
        if type == "DELETED":
            loop.state.catalogue.team_deleted(name)
        elif not loop.state.catalogue.team_stored(dict(body)):
            return
        loop.state.catalogue_changed()

    @kopf.on.probe(registry=handlers, id="ready")
    def ready(**_: Any) -> str:
        return unready(loop) or "ok"

    @kopf.on.probe(registry=handlers, id="silence")
    def silence(**_: Any) -> float:
        """Seconds since the quietest watch was last heard."""
        return time.monotonic() - min(r.heard for r in (loop.agentjobs, loop.jobs, loop.pods))

    @kopf.on.cleanup(registry=handlers)
    async def finish(**_: Any) -> None:
        await loop.stop(settings.shutdown_seconds)

    return handlers


class _Endless:
    """Pauses before kopf sends a failed request again, without an end: an API server may be down long."""

    def __iter__(self) -> Iterator[float]:
        pause = 0.5
        while True:
            yield pause
            pause = min(10.0, pause * 2)


async def main(settings: Settings, make_policy: Callable[[], Policy]) -> None:
    """Run the operator until SIGTERM or SIGINT; a part that dies ends the whole, to be started again."""
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)
    async with Session() as session:
        loop = Loop(session, make_policy)
        async with serve(loop, settings.metrics_host, settings.metrics_port), asyncio.TaskGroup() as group:
            # Before kopf: at its end it cancels every task that is younger than itself.
            hot = group.create_task(loop.run())
            await loop.started.wait()
            await kopf.operator(registry=registry(loop, settings), clusterwide=True, standalone=True)
            hot.cancel()
