"""The wheel as it is released: its policy is compiled, and is the policy that the sources describe."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEADERS = Path(sysconfig.get_path("include"), "Python.h")
SHOW = "import agentjobs.scheduling.pool as pool; print(pool.__file__)"


@pytest.mark.skipif(not (shutil.which("cc") and HEADERS.exists()), reason="no C compiler, or no Python.h")
def test_the_compiled_policy_passes_the_tests_of_the_policy(tmp_path: Path) -> None:
    subprocess.run(["make", "--silent", "wheel", f"DIST={tmp_path}"], cwd=ROOT, check=True)
    released = {**os.environ, "PYTHONPATH": str(tmp_path / "unpacked")}
    found = subprocess.check_output([sys.executable, "-c", SHOW], cwd=ROOT, env=released, text=True)
    assert found.startswith(str(tmp_path))
    assert found.strip().endswith(".so")
    tests = [sys.executable, "-m", "pytest", "-q", "tests/unit/scheduling"]
    played = subprocess.run(tests, cwd=ROOT, env=released, check=False, capture_output=True, text=True)
    assert played.returncode == 0, played.stdout + played.stderr
