"""The wheel as it is released: its policy is compiled, and is the policy that the sources describe."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy import wheel
from deploy.local.cluster import ROOT

SHOW = "import agentjobs.scheduling.pool as pool; print(pool.__file__)"


@pytest.mark.skipif(bool(wheel.missing()), reason=wheel.missing())
def test_the_compiled_policy_passes_the_tests_of_the_policy(tmp_path: Path) -> None:
    (tmp_path / "agentjobs-0.0.1.tar.gz").write_text("of a former version")
    (tmp_path / "notes").write_text("not ours")
    assert wheel.build(tmp_path).exists()
    assert sorted(part.name.split("-")[0] for part in tmp_path.iterdir()) == [
        "agentjobs",
        "agentjobs",
        "notes",
        "unpacked",
    ]
    released = {**os.environ, "PYTHONPATH": str(tmp_path / "unpacked")}
    found = subprocess.check_output([sys.executable, "-c", SHOW], cwd=ROOT, env=released, text=True)
    assert found.startswith(str(tmp_path))
    assert found.strip().endswith(".so")
    tests = [sys.executable, "-m", "pytest", "-q", "tests/unit/scheduling"]
    played = subprocess.run(tests, cwd=ROOT, env=released, check=False, capture_output=True, text=True)
    assert played.returncode == 0, played.stdout + played.stderr


def test_a_missing_compiler_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CC", "nowhere-cc -O2")
    assert wheel.main([]) == 1
    assert (
        "compiles with nowhere-cc, which is not there; on Debian: apt-get install gcc"
        in capsys.readouterr().err
    )


def test_what_was_built_before_stays_when_a_build_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    former = tmp_path / "agentjobs-0.0.1.tar.gz"
    former.write_text("of a former version")
    monkeypatch.setattr(wheel, "ROOT", tmp_path)  # where there is nothing to build
    monkeypatch.setattr(wheel, "missing", lambda: "")
    assert wheel.main([str(tmp_path)]) == 1
    assert [part.name for part in tmp_path.iterdir()] == [former.name]
    assert "wheel: hatchling build failed; what was built before is kept" in capfd.readouterr().err
