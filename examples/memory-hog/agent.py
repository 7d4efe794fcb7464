"""Takes more and more memory until the kernel ends it at its limit.

It shows what a limit means: the run fails with reason OOMKilled and exit code
137, and nothing else on the node notices.

Input: `{"megabytes": …}`, where it gives up when no limit stops it (default 512).
"""

import json
import os
import signal
import sys
from pathlib import Path

STEP_MEGABYTES = 16


def main() -> int:
    """Fill memory step by step; returns only where no limit was enforced."""
    signal.signal(signal.SIGTERM, lambda signum, _frame: sys.exit(128 + signum))
    payload = json.loads(Path(os.environ["AGENT_INPUT_FILE"]).read_text() or "{}")
    enough = int(payload.get("megabytes", 512))
    hoard: list[bytearray] = []
    while len(hoard) * STEP_MEGABYTES < enough:
        # Filled with ones: untouched zero pages would not count as memory in use.
        hoard.append(bytearray(b"\x01" * (STEP_MEGABYTES << 20)))
        print(f"holding {len(hoard) * STEP_MEGABYTES} MB", flush=True)
    error = f"took {enough} MB and was not stopped: the memory limit is higher, or not enforced"
    Path(os.environ["AGENT_RESULT_FILE"]).write_text(json.dumps({"error": error}))
    return 1


if __name__ == "__main__":
    sys.exit(main())
