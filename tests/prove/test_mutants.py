"""Changes of the scheduling core that the fast tests must notice: at least 95 of 100, and the rest explained.

AGENTJOBS_MUTANTS: parts of names, to look at a few only.
"""

import os
from pathlib import Path

import pytest

from tests.prove.mutants import survivors

EXPLAINED = Path(__file__).with_name("survivors.txt")


def explained() -> dict[str, str]:
    """Read why a mutant may survive: its name, and below it, indented, the reason."""
    reasons: dict[str, str] = {}
    name = ""
    for line in EXPLAINED.read_text().splitlines():
        if line.startswith("    "):
            reasons[name] = f"{reasons.get(name, '')} {line.strip()}".strip()
        elif line and not line.startswith("#"):
            name = line
    return reasons


def test_the_fast_tests_notice_changes_of_the_core(capsys: pytest.CaptureFixture[str]) -> None:
    everyone, alive = survivors(os.environ.get("AGENTJOBS_MUTANTS", "").split())
    reasons = explained()
    with capsys.disabled():
        print(f"\n{everyone - len(alive)} of {everyone} mutants killed; these are not:")
        for name in alive:
            print(f"  {name}\n      {reasons.get(name, 'not explained')}")
    assert len(alive) <= everyone * 0.05
    assert [name for name in alive if not reasons.get(name)] == []
