"""A pool in virtual time: traces in, the production policy in the middle, waits and fairness out."""
