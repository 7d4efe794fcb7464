"""The `agentjobs` command."""
