"""The page about fairness is what its command writes: a small part of it, made anew."""

from benchmarks import fairness


def test_the_page_is_up_to_date() -> None:
    page = (fairness.DOCS / "fairness.md").read_text()
    assert page.startswith(fairness.INTRODUCTION), "run `make fairness`"
    found = fairness.burst(1)
    for line in fairness.burst_rows(1, found):
        assert line in page, "run `make fairness`"
    for result in found.results.values():
        assert set(result.promises) <= {"Kept"}
