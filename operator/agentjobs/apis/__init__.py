"""The resources AgentJob, AgentTeam and AgentPool: the only source of their schemas."""
