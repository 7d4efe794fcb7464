"""`agentjobs explain`, `simulate` and `export`: what one may ask, and how errors are told."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from agentjobs import policy_loader
from agentjobs.cli import explain, simulate
from agentjobs.cli.values import filled, number, pairs, unlimited_or
from agentjobs.errors import AgentJobsError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code: 0, 1 for an error, 2 for a wrong call, 130 when interrupted."""
    try:
        options = _parser().parse_args(arguments)
        command: Callable[[argparse.Namespace], None] = options.command
        command(options)
    except AgentJobsError as error:
        print(f"agentjobs: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # whoever read has seen enough, and needs no words
        return 1
    except KeyboardInterrupt:
        print("agentjobs: interrupted", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="agentjobs", description="Ask why a run waits, ask a pool what if, and take one along."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _explain(
        commands.add_parser(
            "explain",
            help="say why a run waits, what would help, and when it starts at the latest",
            description="Say why a run waits: the rule, its place, what would help, who went ahead, and when "
            "it starts at the latest, where that is promised. The operator answers, by the policy that "
            "decides. In a cluster, first lead a port of this machine to the operator that leads: kubectl "
            "port-forward --namespace agentjobs-system POD 8080",
        )
    )
    _simulate(
        commands.add_parser(
            "simulate",
            help="replay a trace in virtual time by the production policy",
            description="Replay a trace in virtual time by the production policy, and say who waited how "
            "long. Where neither the trace nor a flag says how large the pool is, the trace loads its slots, "
            "CPU and GPUs to 90 %.",
        )
    )
    export = commands.add_parser(
        "export",
        help="write pools, teams and runs of a cluster as a trace",
        description="Write the pools, teams and runs of the cluster that KUBECONFIG names as a trace "
        "(JSON lines) to the standard output. No payloads, images, members or secrets are in it.",
    )
    export.set_defaults(command=_export)
    return parser


def _explain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", type=filled, metavar="NAME", help="of the AgentJob")
    parser.add_argument("-n", "--namespace", type=filled, default="default", metavar="NAMESPACE")
    parser.add_argument(
        "--operator",
        default=os.environ.get("AGENTJOBS_METRICS_URL") or "http://127.0.0.1:8080",
        metavar="URL",
        help="where the operator answers (default: AGENTJOBS_METRICS_URL, else http://127.0.0.1:8080)",
    )
    parser.add_argument("--json", action="store_true", help="print what the operator says as it is")
    parser.set_defaults(command=explain.run)


def _simulate(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "trace",
        type=Path,
        metavar="TRACE",
        help=".jsonl (as export writes), .csv or .swf, each also with .gz",
    )
    add(
        "--policy",
        default=policy_loader.DEFAULT,
        metavar="NAME",
        help="fair-share, fifo, priority-only, or one of an installed package",
    )
    add("--slots", type=number(1, 1_000_000), metavar="N", help="how many runs may hold capacity at a time")
    add("--cores", type=number(1, 1_000_000), metavar="N", help="how many cores there are")
    add("--gpus", type=number(1, 1_000_000), metavar="N", help="how many GPUs there are")
    add("--share", type=number(1, 100), metavar="PERCENT", help="what a team may always hold")
    add(
        "--headroom",
        type=number(0, 100),
        metavar="PERCENT",
        help="what stays free when a team goes beyond it",
    )
    add(
        "--weights",
        type=pairs(1, 1000),
        action="append",
        default=[],
        metavar="TEAM=W,…",
        help="weights of teams",
    )
    add(
        "--limit",
        type=pairs(0, 1_000_000),
        action="append",
        default=[],
        metavar="TEAM=N,…",
        help="most slots that a team may hold",
    )
    add(
        "--max-pending",
        type=unlimited_or(number(0, 100_000)),
        default=simulate.AS_IS,
        metavar="N",
        help="how many runs of a team may wait, or unlimited (default: as the pool, else 50)",
    )
    add("--pool", metavar="NAME", help="which pool of a trace that has several")
    add(
        "--team-column",
        default="user",
        metavar="NAME",
        help="column of the team in .csv and .swf (default: user)",
    )
    add("--json", type=Path, metavar="FILE", help="write everything that was found as JSON")
    add(
        "--plot",
        type=Path,
        metavar="FILE",
        help="write an SVG: which part of the runs had started after how long",
    )
    parser.set_defaults(command=simulate.run)


def _export(_: argparse.Namespace) -> None:
    # Imported when it is needed: speaking to a cluster takes a second to import.
    from agentjobs.cli import export

    export.run()


if __name__ == "__main__":
    sys.exit(main())
