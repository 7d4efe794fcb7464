"""Images packed by hand: deterministic, and laid out as the OCI image specification says."""

import hashlib
import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from deploy.local.oci import Blob, Entry, Image, entries_of_folder, layer, write_archive

PASSWD = b"agent:x:10001:10001::/home/agent:/bin/sh\n"


def read(archive: Path) -> dict[str, bytes]:
    """Every file of an archive by its path."""
    with tarfile.open(archive) as tar:
        files = {member.name: tar.extractfile(member) for member in tar.getmembers()}
        return {name: file.read() for name, file in files.items() if file is not None}


def members(blob: Blob) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(blob.data)) as tar:
        return {member.name: member for member in tar.getmembers()}


def blob(files: dict[str, bytes], descriptor: dict[str, Any]) -> bytes:
    """What a descriptor points to, after its size and digest were compared with the bytes."""
    data = files["blobs/" + descriptor["digest"].replace(":", "/")]
    assert len(data) == descriptor["size"]
    assert "sha256:" + hashlib.sha256(data).hexdigest() == descriptor["digest"]
    return data


@pytest.fixture
def base() -> Blob:
    return layer(
        {"etc/passwd": Entry(PASSWD, mode=0o644), "tmp": Entry(mode=0o1777), "bin": Entry(link="usr/bin")}
    )


@pytest.fixture
def images(base: Blob) -> list[Image]:
    def image(name: str) -> Image:
        own = layer({"agent/agent.py": Entry(f"print('{name}')\n".encode(), mode=0o644)})
        return Image(
            name=f"agentjobs.local/{name}:dev",
            layers=[base, own],
            entrypoint=["python3", "/agent/agent.py"],
            user="10001:10001",
            environment={"PYTHONUNBUFFERED": "1"},
        )

    return [image("one"), image("two")]


def test_same_input_gives_the_same_bytes(images: list[Image], tmp_path: Path) -> None:
    write_archive(tmp_path / "a.tar", images)
    write_archive(tmp_path / "b.tar", images)
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()


def test_order_and_age_of_files_do_not_change_a_layer(tmp_path: Path) -> None:
    for folder, names in (("first", ["a", "b"]), ("second", ["b", "a"])):
        for age, name in enumerate(names):
            path = tmp_path / folder / "d" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)
            os.utime(path, (age, age))
    layers = [layer(entries_of_folder(tmp_path / folder)) for folder in ("first", "second")]
    assert layers[0].digest == layers[1].digest


def test_other_content_gives_another_digest() -> None:
    digests = {
        layer({"a": Entry(b"1")}).digest,
        layer({"a": Entry(b"2")}).digest,
        layer({"b": Entry(b"1")}).digest,
    }
    assert len(digests) == 3


def test_every_descriptor_leads_to_its_bytes(images: list[Image], base: Blob, tmp_path: Path) -> None:
    write_archive(tmp_path / "images.tar", images)
    files = read(tmp_path / "images.tar")
    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    index = json.loads(files["index.json"])
    names = [entry["annotations"]["io.containerd.image.name"] for entry in index["manifests"]]
    assert names == ["agentjobs.local/one:dev", "agentjobs.local/two:dev"]
    for entry in index["manifests"]:
        manifest = json.loads(blob(files, entry))
        config = json.loads(blob(files, manifest["config"]))
        layers = [blob(files, descriptor) for descriptor in manifest["layers"]]
        assert layers[0] == base.data
        # Uncompressed layers: the digest of what is stored is the digest of the content.
        assert config["rootfs"]["diff_ids"] == [descriptor["digest"] for descriptor in manifest["layers"]]
        assert config["config"]["Entrypoint"] == ["python3", "/agent/agent.py"]
        assert config["config"]["User"] == "10001:10001"
        assert config["config"]["Env"] == ["PYTHONUNBUFFERED=1"]


def test_images_share_their_layers(images: list[Image], tmp_path: Path) -> None:
    write_archive(tmp_path / "images.tar", images)
    blobs = [name for name in read(tmp_path / "images.tar") if name.startswith("blobs/")]
    assert len(blobs) == 1 + 2 * 3  # one base; for each image a layer, a config, a manifest


def test_a_layer_names_parents_before_children_and_belongs_to_root(base: Blob) -> None:
    found = members(base)
    assert list(found) == ["bin", "etc", "etc/passwd", "tmp"]
    assert {(member.uid, member.gid, member.mtime) for member in found.values()} == {(0, 0, 0)}
    assert found["bin"].issym()
    assert found["bin"].linkname == "usr/bin"
    assert found["tmp"].mode == 0o1777
    assert found["etc/passwd"].mode == 0o644


def test_a_folder_keeps_modes_and_links(tmp_path: Path) -> None:
    (tmp_path / "usr" / "bin").mkdir(parents=True)
    (tmp_path / "usr" / "bin" / "tool").write_bytes(b"#!")
    (tmp_path / "usr" / "bin" / "tool").chmod(0o755)
    (tmp_path / "usr" / "bin" / "alias").symlink_to("tool")
    (tmp_path / "bin").symlink_to("usr/bin")
    entries = entries_of_folder(tmp_path)
    assert entries["usr/bin/tool"] == Entry(b"#!", mode=0o755)
    assert entries["usr/bin/alias"].link == "tool"
    assert entries["bin"].link == "usr/bin"
    assert "bin/tool" not in entries


def test_a_failed_write_leaves_the_old_archive(
    images: list[Image], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "images.tar"
    target.write_bytes(b"old")

    def full(path: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        write_archive(target, images)
    assert target.read_bytes() == b"old"
