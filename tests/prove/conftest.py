"""The long proofs use the clusters of the live tests. Only `make prove` runs them."""

from tests.live.conftest import cluster, clusters_folder, lab, operator

__all__ = ["cluster", "clusters_folder", "lab", "operator"]
