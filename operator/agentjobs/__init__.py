"""agentjobs: fair, bounded, exactly-once scheduling of AI-agent runs on Kubernetes."""

import time

__version__ = "0.1.0"

# A clock that never goes back and, where the system has one, counts sleep; and its time when this process had
# hardly begun: what takes long at the start is the imports that follow.
CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
STARTED = time.clock_gettime(CLOCK)
