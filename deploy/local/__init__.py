"""The local cluster: a real Kubernetes on this machine, started and stopped by one command."""
