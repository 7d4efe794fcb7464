"""`make demo`: a story of two teams, told by real AgentJobs; under a minute once everything is set up."""

import json
import os
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from deploy.local import __main__ as commands
from deploy.local.cluster import DEFAULT_STATE
from deploy.local.console import Console as Progress
from deploy.local.errors import LocalError
from deploy.local.instance import Instance
from deploy.local.kubectl import Kubectl
from deploy.local.options import Options
from deploy.local.record import Record

NAMESPACE = "agentjobs-demo"
POOL = "demo"
SLOTS = 3
PATIENCE_SECONDS = 120

STORY = f"""
[bold]Two teams share a pool of {SLOTS} execution slots.[/bold]
Team [blue]blue[/blue] submits six jobs; one of them will fail and one will take too long.
A moment later team [red]red[/red] submits one critical job: it gets the next slot that is free.
From then on blue leaves one slot free for others, whatever it has waiting.
"""

COLOURS = {
    "PENDING": "dim",
    "SCHEDULED": "yellow",
    "RUNNING": "cyan",
    "SUCCEEDED": "green",
    "FAILED": "red",
    "TIMED_OUT": "magenta",
    "SCHEDULE_FAILED": "red",
}
ENDED = ("SUCCEEDED", "FAILED", "TIMED_OUT", "SCHEDULE_FAILED", "CANCELED")


@dataclass(frozen=True)
class Part:
    """One AgentJob of the story; `simulated` is what a simulated node plays instead of the agent."""

    name: str
    team: str
    agent: str
    payload: dict[str, Any]
    simulated: dict[str, str]
    priority: str = "default"

    def manifest(self) -> dict[str, Any]:
        """Return the AgentJob."""
        return {
            "apiVersion": "agentjobs.dev/v1alpha1",
            "kind": "AgentJob",
            "metadata": {
                "name": self.name,
                "namespace": NAMESPACE,
                "annotations": {f"sim.agentjobs.dev/{key}": value for key, value in self.simulated.items()},
            },
            "spec": {
                "agentImage": f"agentjobs.local/{self.agent}:dev",
                "teamId": self.team,
                "pool": POOL,
                "priority": self.priority,
                "resources": {"cpuMillicores": 100, "memoryMb": 128, "timeoutSeconds": 30},
                "inputPayload": self.payload,
            },
        }


def compute(name: str, team: str, seconds: int, priority: str = "default") -> Part:
    """A job that takes some seconds and returns 42."""
    simulated = {"duration": f"{seconds}s", "message": '{"result": 42}'}
    return Part(name, team, "compute", {"duration": seconds}, simulated, priority)


BLUE = (
    compute("blue-1", "blue", 6),
    compute("blue-2", "blue", 9),
    compute("blue-too-slow", "blue", 600),
    Part(
        "blue-buggy",
        "blue",
        "traceback",
        {"orders": [{"price": 12, "pieces": 3}, {"price": 7, "pieces": 0}]},
        {"exit-code": "1", "message": '{"error": "ZeroDivisionError: division by zero"}'},
    ),
    compute("blue-5", "blue", 5),
    compute("blue-6", "blue", 5),
)
RED = (compute("red-urgent", "red", 4, priority="critical"),)


@dataclass
class Demo:
    """The story on one cluster."""

    kubectl: Kubectl
    screen: Console
    phases: dict[str, str] = field(default_factory=dict)

    def run(self) -> None:
        """Tell it: submit, watch until everything has ended, show what is left to look at."""
        self._prepare()
        self.screen.print(STORY)
        self.kubectl("create", "-f", "-", stdin=_documents(BLUE))
        self.kubectl("create", "-f", "-", stdin=_documents(RED))
        self._watch()
        self._show()

    def clean(self) -> None:
        """Remove everything the story made."""
        self.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", timeout=120)
        self.kubectl("delete", "agentpool", POOL, "--ignore-not-found")

    def _prepare(self) -> None:
        self.clean()
        level = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
        self.kubectl.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": level}},
            {
                "apiVersion": "agentjobs.dev/v1alpha1",
                "kind": "AgentPool",
                "metadata": {"name": POOL},
                "spec": {
                    "maxConcurrency": SLOTS,
                    "requireTeams": False,
                    "sandbox": {"imagePullPolicy": "IfNotPresent"},
                },
            },
        )

    def _watch(self) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        with Live(console=self.screen, auto_refresh=False) as live:
            while True:
                jobs = self._jobs()
                if self.screen.is_terminal:
                    live.update(_table(jobs), refresh=True)
                else:
                    self._tell_changes(jobs)
                if all(_phase(job) in ENDED for job in jobs):
                    return
                if time.monotonic() > until:
                    raise LocalError(f"not over after {PATIENCE_SECONDS} s; see .local/logs/operator.log")
                time.sleep(0.5)

    def _tell_changes(self, jobs: list[dict[str, Any]]) -> None:
        for job in jobs:
            name, phase = job["metadata"]["name"], _phase(job)
            if self.phases.get(name) != phase:
                self.phases[name] = phase
                self.screen.print(
                    f"  {name:<15} {phase:<10} {job['status'].get('message', '')}", highlight=False
                )

    def _jobs(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = json.loads(
            self.kubectl("get", "agentjobs", "-n", NAMESPACE, "-o", "json")
        )["items"]
        return sorted(
            items, key=lambda job: job["status"].get("scheduledAt") or "~" + job["metadata"]["name"]
        )

    def _show(self) -> None:
        self._command("kubectl", "get", "agentjobs")
        self._command("kubectl", "get", "agentjob", "red-urgent", "-o", "jsonpath={.status.result}")
        self._command("kubectl", "get", "agentjob", "blue-buggy", "-o", "jsonpath={.status.error}")
        if not any(job["status"].get("nodeName", "").startswith("simulated") for job in self._jobs()):
            buggy = next(job for job in self._jobs() if job["metadata"]["name"] == "blue-buggy")
            self._command("kubectl", "logs", f"job/{buggy['status']['k8sJobName']}", "--tail=3")

    def _command(self, *words: str) -> None:
        """Print a command as the user could type it, and what it says."""
        self.screen.print(f"\n[bold]$ {' '.join(words)} -n {NAMESPACE}[/bold]", highlight=False)
        output = self.kubectl(*words[1:], "-n", NAMESPACE).rstrip()
        self.screen.print(output, markup=False, highlight=False, soft_wrap=True)


def _documents(parts: tuple[Part, ...]) -> str:
    return "\n---\n".join(json.dumps(part.manifest()) for part in parts)


def _phase(job: dict[str, Any]) -> str:
    return str(job["status"].get("phase", "PENDING"))


def _table(jobs: list[dict[str, Any]]) -> Table:
    table = Table("agentjob", "team", "priority", "phase", "waited", "ran", "", box=None, pad_edge=False)
    for job in jobs:
        spec, status, phase = job["spec"], job["status"], _phase(job)
        colour = COLOURS.get(phase, "white")
        detail = f"result {status['result']}" if "result" in status else status.get("message", "")
        table.add_row(
            job["metadata"]["name"],
            f"[{spec['teamId']}]{spec['teamId']}[/]",
            spec["priority"],
            f"[{colour}]{phase}[/]",
            _between(status, "createdAt", "scheduledAt"),
            _between(status, "startedAt", "completedAt"),
            f"[dim]{detail[:60]}[/]",
        )
    return table


def _between(status: dict[str, Any], begin: str, end: str) -> str:
    if begin not in status:
        return ""
    seconds = _seconds(status.get(end)) - _seconds(status[begin])
    return f"{max(0.0, seconds):.1f} s"


def _seconds(moment: str | None) -> float:
    if moment is None:
        return time.time()
    return time.mktime(time.strptime(moment[:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone + float(moment[19:-1])


def main() -> int:
    """Bring up what is missing, tell the story, and leave nothing behind unless KEEP=1."""
    began = time.monotonic()
    screen, keep = Console(), os.environ.get("KEEP") == "1"
    record = Record.load(DEFAULT_STATE)
    was_up = record is not None and record.complete
    try:
        if not was_up:
            commands.bring_up(Progress())
        record = Record.load(DEFAULT_STATE)
        assert record is not None
        instance: Instance = commands.instance_of(record.kind, Options(), Progress())
        demo = Demo(instance.kubectl, screen)
        try:
            demo.run()
        finally:
            if was_up and not keep:
                demo.clean()
    except LocalError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    finally:
        if not was_up and not keep:
            screen.print()
            commands.down(Progress())
    screen.print(f"\nThat took {time.monotonic() - began:.0f} s. What to try next:")
    screen.print("  KEEP=1 make demo    the same, and everything stays for you to look at")
    screen.print("  make up             a cluster of your own; it says how to submit a job")
    screen.print("  examples/           four agents to read, run and change")
    return 0


if __name__ == "__main__":
    sys.exit(main())
