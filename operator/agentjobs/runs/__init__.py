"""What a run is in Kubernetes: AgentJob to `batch/v1` Job, and observed Job and pod back to status. Pure."""
