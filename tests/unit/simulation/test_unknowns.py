"""What a trace does not say: the reader chooses, and tells so."""

import json
from pathlib import Path

import pytest

from agentjobs.simulation.files import opened
from agentjobs.simulation.setup import of_trace
from agentjobs.simulation.trace import chosen_class


def notes_of(path: Path, text: str) -> str:
    path.write_text(text)
    with opened(path) as trace:
        return trace.note


def test_the_class_of_a_row_without_a_name_is_by_its_number_whatever_its_texts_have(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('user,interval,run_time\n"a\nb",0,5\n\nc,0,5\n')
    with opened(path) as trace:
        runs = list(trace.runs)
    assert [run.name for run in runs] == ["2", "4"]
    assert [run.priority for run in runs] == [chosen_class("2"), chosen_class("4")]


@pytest.mark.parametrize("column", ["user", "group"])
def test_users_that_swf_does_not_know_are_one_team_of_their_own(tmp_path: Path, column: str) -> None:
    path = tmp_path / "t.swf"
    known = "1 10 5 100 4 -1 -1 8 3600 1024 1 3 3 -1 2 -1 -1 -1\n"
    path.write_text(known + known.replace(" 3 3 ", " -1 -1 ") + known.replace(" 3 3 ", " -1 -1 "))
    with opened(path, team_column=column) as trace:
        assert [run.team for run in trace.runs] == ["3", "unknown", "unknown"]
        assert f"where the {column} is -1, the team is unknown; " in trace.note


def test_a_pool_of_nodes_is_not_limited_by_what_they_offer_and_the_note_says_what_limits_it(
    tmp_path: Path,
) -> None:
    def pool(**spec: object) -> str:
        head = {"apiVersion": "agentjobs.dev/v1alpha1", "kind": "AgentPool", "metadata": {"name": "p"}}
        return json.dumps({**head, "spec": spec})

    nodes = {"nodes": {"matchLabels": {"a": "b"}}}
    path = tmp_path / "t.jsonl"
    path.write_text(pool(capacity=nodes, maxConcurrency=7))
    with opened(path) as trace:
        assert of_trace(trace).settings.capacity == (7, None, None, None)
        assert trace.note == (
            "pool p has what its nodes offer, which the trace does not say; only maxConcurrency, --slots, "
            "--cores and --gpus limit it"
        )
    assert notes_of(path, pool(maxConcurrency=7)) == ""
    assert notes_of(path, pool(capacity={"fixed": {"gpuCount": 2}})) == ""
