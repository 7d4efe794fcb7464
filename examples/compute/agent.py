"""Sleeps as long as its input says, then returns 42.

Input: `{"duration": seconds}`, 0 or more. Stops at once on SIGTERM, without a
result, as every agent should: that is how a cancel and a timeout arrive.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType


def stop(signum: int, _frame: FrameType | None) -> None:
    """End with the exit code that shells give to a signal: 143 for SIGTERM."""
    print("SIGTERM: stopping", flush=True)
    sys.exit(128 + signum)


def seconds(payload: dict[str, object]) -> float:
    """The requested duration; ValueError names what is wrong with it."""
    duration = payload.get("duration", 0)
    if isinstance(duration, bool) or not isinstance(duration, int | float) or duration < 0:
        raise ValueError(f"inputPayload.duration is {duration!r}; it must be a number of seconds, 0 or more")
    return float(duration)


def main() -> int:
    """Read the input, work, leave the outcome in the result file; the exit code."""
    signal.signal(signal.SIGTERM, stop)
    job, attempt = os.environ["AGENT_JOB_ID"], os.environ["AGENT_ATTEMPT"]
    outcome = Path(os.environ["AGENT_RESULT_FILE"])
    try:
        duration = seconds(json.loads(Path(os.environ["AGENT_INPUT_FILE"]).read_text() or "{}"))
    except ValueError as error:
        outcome.write_text(json.dumps({"error": str(error)}))
        return 1
    print(f"job {job}, attempt {attempt}: computing for {duration:g} s", flush=True)
    time.sleep(duration)
    outcome.write_text(json.dumps({"result": 42}))
    print("the answer is 42", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
