"""Ignores SIGTERM and sleeps longer than its timeout allows.

It shows that a run ends even when its agent does not cooperate: at the
timeout comes SIGTERM, which it ignores, and after the grace period SIGKILL.

Input: `{"duration": seconds}` (default 3,600).
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType


def ignore(_signum: int, _frame: FrameType | None) -> None:
    """Say that the signal came, and carry on."""
    print("SIGTERM: not today", flush=True)


def main() -> int:
    """Sleep, whatever signals arrive; the exit code."""
    signal.signal(signal.SIGTERM, ignore)
    payload = json.loads(Path(os.environ["AGENT_INPUT_FILE"]).read_text() or "{}")
    duration = float(payload.get("duration", 3600))
    print(f"sleeping for {duration:g} s, come what may", flush=True)
    time.sleep(duration)
    Path(os.environ["AGENT_RESULT_FILE"]).write_text(json.dumps({"result": "slept well"}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
