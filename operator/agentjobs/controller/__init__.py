"""The operator: kopf as the shell, the state in memory, the scheduling loop."""
