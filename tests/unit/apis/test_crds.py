"""The committed CRDs are those of the models, and the check says so when they are not."""

from pathlib import Path

import pytest
from pydantic import Field

from agentjobs.apis import crds
from agentjobs.apis.base import Model
from agentjobs.apis.schema import annotated

ROOT = Path(__file__).parents[3]


def test_committed_files_agree_with_the_models() -> None:
    assert crds.differences(ROOT / "crds") == ""


def test_written_files_pass_the_check(tmp_path: Path) -> None:
    folder = tmp_path / "crds"
    assert crds.main([str(folder)]) == 0
    assert crds.main(["--check", str(folder)]) == 0
    for file in folder.iterdir():
        assert "Do not edit" in file.read_text().splitlines()[0]


def test_writing_twice_gives_the_same_bytes() -> None:
    assert crds.files() == crds.files()


def test_a_difference_is_shown_with_the_way_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    crds.main([str(tmp_path)])
    file = tmp_path / "agentjobs.yaml"
    file.write_text(file.read_text().replace("maximum: 8000", "maximum: 9000"))
    assert crds.main(["--check", str(tmp_path)]) == 1
    told = capsys.readouterr().err
    assert "-                    maximum: 9000" in told
    assert "+                    maximum: 8000" in told
    assert "run: make manifests" in told


@pytest.mark.parametrize("name", ["agentpools.yaml", "left-over.yaml"])
def test_missing_and_left_over_files_are_differences(tmp_path: Path, name: str) -> None:
    crds.main([str(tmp_path)])
    file = tmp_path / name
    if file.exists():
        file.unlink()
    else:
        file.write_text("kind: Other\n")
    assert name in crds.differences(tmp_path)


def test_a_rule_that_a_crd_cannot_say_is_an_error() -> None:
    class Odd(Model):
        value: int = Field(default=0, multiple_of=3)
        """A number."""

    with pytest.raises(ValueError, match="multipleOf"):
        annotated(Odd)


def test_the_package_folder_does_not_shadow_the_standard_library() -> None:
    """An ``operator/__init__.py`` would take the place of the module ``operator`` for every program."""
    assert not (ROOT / "operator" / "__init__.py").exists()
