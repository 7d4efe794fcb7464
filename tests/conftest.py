"""Clusters for the tests: below `.local/test/<process id>`, so that two runs do not meet.

A test run that was killed leaves its clusters; the next run finds them by their
dead owner and removes them first.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local import node, processes
from deploy.local.cluster import DEFAULT_STATE
from deploy.local.local import LocalCluster
from tests.live.lab import Lab

CLUSTERS = DEFAULT_STATE / "test"
OWNER = "owner"


@pytest.fixture(scope="session")
def clusters_folder() -> Iterator[Path]:
    """The folder for this run's clusters; whatever is in it at the end is taken down."""
    remove_abandoned()
    folder = CLUSTERS / str(os.getpid())
    folder.mkdir(parents=True, exist_ok=True)
    owner = processes.observe(OWNER, os.getpid())
    assert owner is not None
    owner.save(folder)
    yield folder
    remove(folder)
    processes.reap()


@pytest.fixture(scope="session")
def cluster(clusters_folder: Path) -> LocalCluster:
    """A control plane with three simulated nodes and the CRDs, without the operator."""
    instance = LocalCluster(clusters_folder / "shared", operator=False)
    instance.up()
    return instance


@pytest.fixture(scope="session")
def real_cluster(clusters_folder: Path) -> LocalCluster:
    """A control plane with a real node and the CRDs, without the operator."""
    if obstacle := node.missing():
        pytest.skip(f"no real node: {obstacle}")
    instance = LocalCluster(clusters_folder / "real", node="real", operator=False)
    instance.up()
    return instance


@pytest.fixture(scope="module")
def operator(cluster: LocalCluster) -> Iterator[LocalCluster]:
    """The shared cluster with the operator running, for the tests of one file."""
    cluster.start_operator()
    yield cluster
    cluster.stop_operator()


@pytest.fixture(scope="module")
def lab(operator: LocalCluster) -> Iterator[Lab]:
    """The shared cluster with the operator, to try runs in."""
    with Lab(operator) as lab:
        yield lab


def remove_abandoned() -> None:
    """Take down the clusters of test runs that were killed."""
    for folder in CLUSTERS.glob("*"):
        owner = processes.load(folder, OWNER)
        if not (owner and owner.alive):
            remove(folder)


def remove(folder: Path) -> None:
    """Take down every cluster in a run's folder, and the folder."""
    for state in folder.iterdir():
        if state.is_dir():
            LocalCluster(state).down()
    shutil.rmtree(folder)
