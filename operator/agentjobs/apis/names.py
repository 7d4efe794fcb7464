"""Names that objects in the cluster are found by: group, labels, annotations."""

GROUP = "agentjobs.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

# Where the operator lives.
SYSTEM_NAMESPACE = "agentjobs-system"

# On every Job and pod of a run. Only the operator may set them: the join after a
# restart trusts them, an owner reference is for garbage collection alone.
LABEL_RUN_UID = f"{GROUP}/run-uid"
LABEL_ATTEMPT = f"{GROUP}/attempt"
LABEL_TEAM = f"{GROUP}/team"
LABEL_POOL = f"{GROUP}/pool"
LABEL_JOB_ID = f"{GROUP}/job-id"

# On the Job: what a restarted operator must know of a run that it did not start itself.
ANNOTATION_RUN = f"{GROUP}/run"
# On the pod: the input payload, which a downward-API volume turns into a file.
ANNOTATION_INPUT = f"{GROUP}/input"

# On the webhook configuration and the endpoints of the admission server: of the leader that wrote them.
ANNOTATION_EPOCH = f"{GROUP}/epoch"

# Annotations of an AgentJob that only simulated nodes read; copied to its pod.
SIMULATION_PREFIX = "sim.agentjobs.dev/"

AGENT_CONTAINER = "agent"
