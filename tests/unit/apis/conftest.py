"""Hypothesis keeps its examples where every other cache is."""

from hypothesis.configuration import set_hypothesis_home_dir

set_hypothesis_home_dir(".local/cache/hypothesis")
