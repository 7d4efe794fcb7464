"""Fails the way real programs do: an exception nobody expected, deep in the work.

It shows how an agent reports a failure: `{"error": …, "traceback": …}` in the
result file, and an exit code other than 0. Both then stand in the AgentJob's
status, long after the pod and its logs are gone.

Input: `{"orders": [{"price": …, "pieces": …}, …]}`; 0 pieces make it fail.
"""

import json
import os
import signal
import sys
import traceback
from pathlib import Path

# Kubernetes keeps 4,096 bytes of the file and cuts off the rest, which would leave broken JSON.
RESULT_BYTES = 4096


def price_per_piece(order: dict[str, float]) -> float:
    """Raises ZeroDivisionError for an order of nothing."""
    return order["price"] / order["pieces"]


def work(payload: dict[str, list[dict[str, float]]]) -> list[float]:
    """The price per piece of every order."""
    return [price_per_piece(order) for order in payload["orders"]]


def report(failure: Exception) -> str:
    """The failure as JSON that fits the file; of a long traceback the end stays, where the cause is."""
    lines = traceback.format_exception(failure)
    error = f"{type(failure).__name__}: {failure}"[:500]
    text = "".join(lines)
    while len(document := json.dumps({"error": error, "traceback": text})) > RESULT_BYTES:
        text = text[len(text) // 4 + 1 :]
    return document


def main() -> int:
    """Read the input, work, leave the outcome in the result file; the exit code."""
    signal.signal(signal.SIGTERM, lambda signum, _frame: sys.exit(128 + signum))
    outcome = Path(os.environ["AGENT_RESULT_FILE"])
    try:
        result = work(json.loads(Path(os.environ["AGENT_INPUT_FILE"]).read_text()))
    except Exception as failure:
        traceback.print_exc()
        outcome.write_text(report(failure))
        return 1
    outcome.write_text(json.dumps({"result": result}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
