"""What Prometheus is told, by its conventions. Labels have few values: never the name of a run."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

_LAG = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200)

API_WRITES = Counter(
    "agentjobs_api_writes",
    "Requests that change something, by outcome (code 0: no answer)",
    ("verb", "resource", "code"),
)
RECONNECTS = Counter("agentjobs_watch_reconnects", "Watches ended and begun again", ("kind",))
UNREADABLE = Counter(
    "agentjobs_unreadable_objects", "Stored objects that could not be read and were left alone", ("kind",)
)
RUNS_FINISHED = Counter("agentjobs_runs_finished", "Runs that reached a terminal phase", ("phase", "reason"))
SCHEDULE_FAILED = Counter(
    "agentjobs_schedule_failed", "Runs that could not be scheduled and are not tried again", ("reason",)
)
UNEXPECTED_JOBS = Counter("agentjobs_unexpected_jobs", "Jobs of ours that no run expected, stopped")
REACHABLE = Gauge(
    "agentjobs_admission_reachable",
    "1 while the webhook configuration leads to this process; 0 where it is missing and nothing is reviewed",
)
LEADER = Gauge("agentjobs_leader", "1 while this process leads, 0 while it stands by")
POLICY_FAULTS = Counter("agentjobs_policy_faults", "Looks that a policy's error ended", ("pool",))
REVIEWS = Counter(
    "agentjobs_admission_reviews", "Admission reviews answered, by kind and outcome", ("kind", "outcome")
)
REVIEW_SECONDS = Histogram(
    "agentjobs_admission_review_seconds",
    "From the head of a review to its answer",
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 3),
)
RESERVATIONS = Gauge("agentjobs_admission_reservations", "Creates that were allowed and not seen stored yet")
OVER_LIMIT = Counter(
    "agentjobs_over_limit_runs",
    "Runs stored beyond their team's pending limit: allowed, and committed after they had been given up",
)
PENDING = Gauge("agentjobs_pending_runs", "Runs that wait", ("pool",))
PROMISES = Gauge(
    "agentjobs_promises_total", "Promised starts by outcome: Kept, or what broke them", ("pool", "outcome")
)
HELD = Gauge("agentjobs_held_slots", "Execution slots in use", ("pool",))
QUEUE_DEPTH = Gauge("agentjobs_writer_depth", "Runs that wait for a write")
SCHEDULING_LAG = Histogram("agentjobs_scheduling_lag_seconds", "createdAt to scheduledAt", buckets=_LAG)
START_LAG = Histogram("agentjobs_start_lag_seconds", "scheduledAt to startedAt", buckets=_LAG)
