"""kubectl, the way this package talks to an API server."""

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from deploy.local.errors import LocalError

Result = TypeVar("Result")


@dataclass(frozen=True)
class Kubectl:
    """A kubectl with the environment that tells it where to talk to."""

    program: str
    env: dict[str, str]

    def __call__(self, *arguments: str, stdin: str | None = None, timeout: float = 60) -> str:
        """Run it and return what it printed.

        Raises:
            LocalError: it failed; the message is its own.
        """
        command = [self.program, *arguments]
        try:
            result = subprocess.run(
                command,
                input=stdin,
                env=self.env,
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise LocalError(f"kubectl {' '.join(arguments)}: no answer within {timeout:.0f} s") from error
        except OSError as error:
            raise LocalError(f"kubectl cannot be run: {error}") from error
        if result.returncode:
            raise LocalError(f"kubectl {' '.join(arguments)}: {result.stderr.strip()}")
        return result.stdout

    def apply(self, *manifests: dict[str, Any]) -> None:
        """Apply objects server-side, taking over fields that others own."""
        text = "\n---\n".join(json.dumps(manifest) for manifest in manifests)
        self("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)

    def exists(self, kind: str, name: str) -> bool:
        """Whether a cluster-scoped object of that kind and name exists."""
        return bool(self("get", kind, name, "--ignore-not-found", "-o", "name").strip())


def retry(attempt: Callable[[], Result], *, seconds: float) -> Result:
    """Repeat `attempt` until it raises no LocalError; the last error is passed on after `seconds`."""
    until = time.monotonic() + seconds
    while True:
        try:
            return attempt()
        except LocalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
