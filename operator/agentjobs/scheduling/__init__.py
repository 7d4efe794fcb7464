"""The policy: who starts, who waits, and why. No I/O, no clock, no logging; the standard library only."""
