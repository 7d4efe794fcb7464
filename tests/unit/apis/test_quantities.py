"""Kubernetes quantities, exact; what is none counts as nothing."""

from fractions import Fraction

import pytest

from agentjobs.apis import quantities


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("4", 4),
        ("1500m", Fraction(3, 2)),
        ("0.5", Fraction(1, 2)),
        (".5", Fraction(1, 2)),
        ("5.", 5),
        ("1e3", 1000),
        ("12E-1", Fraction(6, 5)),
        ("2Gi", 2 * 1024**3),
        ("1k", 1000),
        ("1E", 10**18),
        ("1Ei", 2**60),
        ("100n", Fraction(1, 10**7)),
        ("-1", -1),
        ("", 0),
        ("two", 0),
        ("1 Gi", 0),
        ("1KB", 0),
        ("1e9999", 0),
    ],
)
def test_values(text: str, value: Fraction | int) -> None:
    assert quantities.parse(text) == value


def test_what_a_node_offers_is_rounded_down_and_what_a_pod_asks_for_up() -> None:
    assert quantities.floor("1999u", Fraction(1, 1000)) == 1
    assert quantities.ceil("1001u", Fraction(1, 1000)) == 2
    assert quantities.floor("1500Ki", quantities.MEBI) == 1
    assert quantities.ceil("1500Ki", quantities.MEBI) == 2
