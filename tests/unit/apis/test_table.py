"""Every row of the table against the models; `tests/live/test_schema.py` holds the API server to the same."""

import pytest

from agentjobs.apis.faults import Fault
from agentjobs.apis.validation import validate, validate_status, validate_update
from tests.unit.apis.bounds import JOB
from tests.unit.apis.cases import CASES
from tests.unit.apis.changes import CHANGES, TRANSITIONS, Change
from tests.unit.apis.forms import RESERVED
from tests.unit.apis.rows import Row, bound_rows, minimal, with_field

ROWS = [*bound_rows(), *CASES]


def names(fault: Fault, path: str) -> bool:
    """Whether a fault is about the field at a dotted path; long keys are cut, odd characters escaped."""
    dotted = fault.path.replace("[", ".").replace("]", "")
    printable = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in path)
    return printable.startswith(dotted.removesuffix("…")) if dotted.endswith("…") else printable == dotted


def assert_refused(found: list[Fault], path: str) -> None:
    """Exactly one fault, which names field, rule and way out."""
    (fault,) = found
    assert names(fault, path), fault
    assert fault.problem
    assert fault.use
    assert str(fault).isprintable()
    assert len(str(fault)) < 400


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_row(row: Row) -> None:
    old = {**row.manifest, "status": {}}
    found = validate_status(old, row.manifest) if row.of_status else validate(row.manifest)
    if row.valid:
        assert found == []
    else:
        assert_refused(found, row.path)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.id)
def test_change(change: Change) -> None:
    found = validate_update(change.old, change.new)
    if change.valid:
        assert found == []
    else:
        assert any(fault.path == change.path for fault in found), found


@pytest.mark.parametrize("change", TRANSITIONS, ids=lambda change: change.id)
def test_transition(change: Change) -> None:
    found = validate_status(change.old, change.new)
    if change.valid:
        assert found == []
    else:
        assert_refused(found, change.path)


@pytest.mark.parametrize(("names", "sentence"), RESERVED.items(), ids=str)
def test_reserved_variables_are_told_sorted_in_one_sentence(names: tuple[str, ...], sentence: str) -> None:
    (fault,) = validate(with_field(JOB, "spec.environment", dict.fromkeys(names, "x")))
    assert fault.problem == sentence


def test_ids_are_unique() -> None:
    ids = [row.id for row in ROWS]
    assert sorted(ids) == sorted(set(ids))


def test_minimal_manifests_are_valid() -> None:
    assert all(validate(minimal(kind)) == [] for kind in ("AgentJob", "AgentTeam", "AgentPool"))
