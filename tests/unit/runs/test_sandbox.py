"""Which images a pool's registries allow: by host and whole path segments, as a runtime reads them."""

from __future__ import annotations

import pytest

from agentjobs.apis.sandbox import Sandbox
from agentjobs.errors import InvalidRunError
from agentjobs.runs import sandbox

DIGEST = "@sha256:" + "0" * 64

PATHS = [
    ("agent:1", "docker.io/library/agent"),
    ("team/agent:1", "docker.io/team/agent"),
    ("docker.io/agent:1", "docker.io/library/agent"),
    ("index.docker.io/team/agent:1", "docker.io/team/agent"),
    ("quay.io/team/agent:1", "quay.io/team/agent"),
    ("quay.io/agent:1", "quay.io/agent"),
    (f"quay.io/team/agent:1{DIGEST}", "quay.io/team/agent"),
    (f"quay.io/team/agent{DIGEST}", "quay.io/team/agent"),
    ("quay.io:5000/team/agent:1", "quay.io:5000/team/agent"),
    ("registry:5000/agent:1", "registry:5000/agent"),
    ("registry:5000", "docker.io/library/registry"),
    ("localhost/agent:1", "localhost/agent"),
    ("localhost:1", "docker.io/library/localhost"),
    ("Team/agent:1", "Team/agent"),
    ("a.b:1", "docker.io/library/a.b"),
    ("quay.io/team/../agent:1", ""),
    ("quay.io/./agent:1", ""),
    ("quay.io//agent:1", ""),
    ("/agent:1", ""),
    ("../agent:1", ""),
    ("team/:1", ""),
]


@pytest.mark.parametrize(("image", "path"), PATHS)
def test_an_image_is_read_as_a_runtime_reads_it(image: str, path: str) -> None:
    assert "/".join(sandbox.image_path(image)) == path


ALLOWED = [
    ("quay.io", "quay.io/team/agent:1"),
    ("quay.io/team", "quay.io/team/agent:1"),
    ("quay.io/team", "quay.io/team/deep/agent:1"),
    ("quay.io/team/agent", f"quay.io/team/agent{DIGEST}"),
    ("quay.io:5000", "quay.io:5000/agent:1"),
    ("docker.io", "agent:1"),
    ("docker.io/library", "docker.io/agent:1"),
    ("index.docker.io/team", "team/agent:1"),
    ("localhost", "localhost/agent:1"),
]
REFUSED = [
    ("quay.io/team", "quay.io/team-x/agent:1"),
    ("quay.io/team", "quay.io/tea/agent:1"),
    ("quay.io/team", "quay.io/team/../other/agent:1"),
    ("quay.io/team", "quay.io/other/agent:1"),
    ("quay.io/team/agent", "quay.io/team:1"),
    ("quay.io", "quay.io.evil.example/agent:1"),
    ("quay.io", "quay.io:5000/agent:1"),
    ("quay.io:5000", "quay.io/agent:1"),
    ("quay.io", "evil/quay.io/agent:1"),
    ("docker.io", "docker.io.evil.example/agent:1"),
    ("docker.io/agent", "docker.io/agent:1"),
    ("docker.io", "Team/agent:1"),
    ("localhost", "localhost:5000/agent:1"),
    ("library", "agent:1"),
]


@pytest.mark.parametrize(("registry", "image"), ALLOWED)
def test_a_listed_registry_is_allowed(registry: str, image: str) -> None:
    sandbox.check_registry(image, ["other.example.com", registry])


@pytest.mark.parametrize(("registry", "image"), REFUSED)
def test_any_other_is_refused(registry: str, image: str) -> None:
    with pytest.raises(InvalidRunError, match="not from a registry of the pool; allowed: "):
        sandbox.check_registry(image, [registry])


def test_no_list_allows_everything() -> None:
    sandbox.check_registry("evil.example/../agent:1", [])


@pytest.mark.parametrize("storage", [64, 65, 1024, 4000, 1_048_576])
def test_every_folder_has_its_part_and_logs_keep_an_eighth(storage: int) -> None:
    made = sandbox.volumes(Sandbox(ephemeral_storage_mb=storage))
    sizes = [int(volume["emptyDir"]["sizeLimit"].removesuffix("Mi")) for volume in made]
    assert storage * 7 // 8 - 3 <= sum(sizes) <= storage * 7 / 8
    assert {mount["name"] for mount in sandbox.mounts()} == {volume["name"] for volume in made}
