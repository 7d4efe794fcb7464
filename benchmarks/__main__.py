"""`python -m benchmarks [NAME …]`: measure, print, and store under `benchmarks/results/`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable

from benchmarks import admission, creates, decision, latency, memory, report, throughput, writes
from benchmarks.report import Report
from deploy.local.errors import LocalError

BENCHMARKS: dict[str, Callable[[], Report]] = {
    "latency": latency.measure,
    "writes": writes.measure,
    "throughput": throughput.measure,
    "memory": memory.measure,
    "decision": decision.measure,
    "admission": admission.measure,
    "creates": creates.measure,
}


def main(names: list[str]) -> int:
    """Run the named benchmarks, all of them when none is named; return the exit code."""
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"benchmarks: no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    # A terminated run cleans up as an interrupted one does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for name in names or BENCHMARKS:
            print(f"measuring {name} …", flush=True)
            found = BENCHMARKS[name]()
            report.show(found)
            report.store(found)
    except KeyboardInterrupt:
        print("benchmarks: interrupted; everything that was started is stopped", file=sys.stderr)
        return 130
    except LocalError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
