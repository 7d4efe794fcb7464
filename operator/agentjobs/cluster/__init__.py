"""The only Kubernetes I/O of the hot path: a session, reflectors that read, one bounded writer."""
