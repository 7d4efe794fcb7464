"""Where things lie. Who may import whom is the linter's to check."""

import operator
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_source_folder_never_hides_the_standard_library() -> None:
    assert not (ROOT / "operator" / "__init__.py").exists()
    assert Path(operator.__file__).is_relative_to(sysconfig.get_path("stdlib"))
    assert [path.name for path in (ROOT / "operator").glob("*.py")] == []
