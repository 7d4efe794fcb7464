"""`python -m agentjobs`: run the operator."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable

from agentjobs import policy_loader
from agentjobs.controller.operator import main
from agentjobs.errors import AgentJobsError, SettingsError
from agentjobs.settings import Settings


def run(arguments: list[str]) -> int:
    """Run until stopped; return the exit code."""
    if arguments:
        print(
            f"agentjobs: python -m agentjobs runs the operator and takes no arguments, not {arguments[0]!r}; "
            "commands such as simulate are those of the program agentjobs",
            file=sys.stderr,
        )
        return 2
    try:
        settings = Settings.from_environment()
        make_policy = policy_loader.load(settings.policy)
    except AgentJobsError as error:
        print(f"agentjobs: {error}", file=sys.stderr)
        return 2
    logging.basicConfig(
        level=settings.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr
    )
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(main(settings, make_policy))
    except SettingsError as error:  # files that a setting names cannot be used
        print(f"agentjobs: {error}", file=sys.stderr)
        return 2
    return 0


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # not made for this platform
        return None
    return uvloop.new_event_loop


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
