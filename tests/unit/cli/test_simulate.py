"""`agentjobs simulate` as a person calls it."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from agentjobs.cli.main import main

POOL = {
    "apiVersion": "agentjobs.dev/v1alpha1",
    "kind": "AgentPool",
    "metadata": {"name": "p"},
    "spec": {"maxConcurrency": 2, "requireTeams": False},
}


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """Four runs of a and two of b at once, ten seconds each, in a pool of two slots."""
    runs = [
        {"run": f"{team}-{number}", "team": team, "pool": "p", "submitted": 0, "runSeconds": 10}
        for team, count in (("a", 4), ("b", 2))
        for number in range(count)
    ]
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in (POOL, *runs)))
    return str(path)


def found(trace: str, tmp_path: Path, *flags: str) -> dict[str, dict[str, dict[str, float]]]:
    path = tmp_path / "found.json"
    assert main(["simulate", trace, "--json", str(path), *flags]) == 0
    result: dict[str, dict[str, dict[str, float]]] = json.loads(path.read_text())
    return result


def longest(trace: str, tmp_path: Path, *flags: str) -> dict[str, float]:
    teams = found(trace, tmp_path, *flags)["teams"]
    return {team: part["longestSeconds"] for team, part in teams.items()}


def test_it_prints_tables(
    trace: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["simulate", trace]) == 0
    out, err = capsys.readouterr()
    assert "t.jsonl: fair-share" in out
    assert "2 slots" in out
    assert "wait by class" in out
    assert "wait by team" in out
    assert "Unexplained" not in out
    assert err == ""


def test_one_of_a_thing_is_named_as_one(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", trace, "--slots", "1", "--cores", "1", "--gpus", "1"]) == 0
    assert "1 slot, 1 core, 1 GPU " in capsys.readouterr().out


def test_flags_change_the_pool_the_teams_and_the_policy(trace: str, tmp_path: Path) -> None:
    # Once b has run, a still leaves one of the two slots free for it.
    assert longest(trace, tmp_path) == {"a": 30, "b": 10}
    assert longest(trace, tmp_path, "--policy", "fifo") == {"a": 10, "b": 20}
    assert longest(trace, tmp_path, "--slots", "6") == {"a": 10, "b": 0}  # four, then less than the headroom
    assert longest(trace, tmp_path, "--slots", "6", "--share", "100") == {"a": 0, "b": 0}
    assert longest(trace, tmp_path, "--slots", "6", "--headroom", "0", "--limit", "a=1") == {"a": 30, "b": 0}
    refused = found(trace, tmp_path, "--max-pending", "1")["teams"]
    assert (refused["a"]["refused"], refused["b"]["refused"]) == (3, 1)
    heavy = longest(trace, tmp_path, "--weights", "a=4,c=2", "--slots", "2", "--share", "100")
    assert heavy == {"a": 20, "b": 10}


def test_a_trace_without_a_pool_gets_one_that_it_loads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("user,interval,run_time,gpu_num,cpu_num\na,0,90,1,2\na,50,90,0,2\nb,50,1,0,0\n")
    # 181 slot-seconds, 360 core-seconds and 90 GPU-seconds in 100 s, and nine tenths of what there is.
    capacity: object = found(str(path), tmp_path)["capacity"]
    assert capacity == {"slots": 3, "cpu_millicores": 4000, "memory_mb": None, "gpu_count": 1}
    err = capsys.readouterr().err
    assert "sized so that the trace loads it to 90 %" in err
    assert "one run in ten is critical" in err.replace("\n", " ")


def test_the_plot_is_svg_and_what_is_written_is_told(
    trace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plot.svg"
    assert main(["simulate", trace, "--plot", str(path)]) == 0
    root = ET.fromstring(path.read_text())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(root.findall(".//{*}polyline")) == 1  # all runs are of one class
    assert capsys.readouterr().err == f"written: {path}\n"


def test_a_team_that_a_flag_names_and_nobody_knows_is_told(
    trace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", trace, "--weights", "x=2"]) == 0
    assert "no run of team x, which a flag names" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--slots", "0"], "argument --slots: '0' is not a whole number from 1 to 1,000,000"),
        (["--slots", "9" * 5000], "is not a whole number from 1 to 1,000,000"),
        (["--slots", "٣"], "argument --slots: '٣' is not a whole number"),
        (["--share", "101"], "argument --share: '101' is not a whole number from 1 to 100"),
        (["--headroom", "-1"], "argument --headroom: '-1' is not a whole number from 0 to 100"),
        (["--weights", "a=0"], "argument --weights: '0' for team 'a' is not a whole number from 1 to 1,000"),
        (["--weights", "a=1e3"], "argument --weights: '1e3' for team 'a' is not a whole number"),
        (["--weights", "a"], "argument --weights: 'a' is not TEAM=NUMBER"),
        (["--weights", "a=1,a=2"], "argument --weights: team 'a' is named twice"),
        (["--limit", "=1"], "argument --limit: '=1' is not TEAM=NUMBER"),
        (["--max-pending", "many"], "'many' is neither unlimited nor a whole number from 0 to 100,000"),
    ],
)
def test_a_wrong_flag_is_told_with_its_rule(
    trace: str, flags: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["simulate", trace, *flags])
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            ["--policy", "lottery"],
            "there is no policy 'lottery'; installed are fair-share, fifo, priority-only",
        ),
        (["--pool", "q"], "t.jsonl: 'q' is not in the trace; choose one with --pool: p"),
        (["--json", "/nowhere/x.json"], "/nowhere/x.json cannot be written: No such file or directory"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_line(
    trace: str, flags: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", trace, *flags]) == 1
    assert words in capsys.readouterr().err


def test_runs_of_other_pools_are_told_of(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(trace)
    run = {"run": "x", "team": "a", "pool": "gone", "submitted": 0, "runSeconds": 1}
    path.write_text(path.read_text() + f"{json.dumps(run)}\n" * 2)
    assert main(["simulate", trace]) == 0
    assert "trace: runs of other pools, left out: 2, of 'gone'\n" in capsys.readouterr().err


def test_a_limit_below_what_the_trace_guarantees_is_an_error(
    trace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(trace)
    spec = {"teamId": "blue", "pools": {"p": {"guaranteed": {"slots": 2}}}}
    team = {**POOL, "kind": "AgentTeam", "metadata": {"name": "t"}, "spec": spec}
    path.write_text(json.dumps(team) + "\n" + path.read_text())
    assert main(["simulate", trace, "--limit", "blue=2"]) == 0
    capsys.readouterr()
    assert main(["simulate", trace, "--limit", "blue=1"]) == 1
    assert "--limit: team blue: 1 is below the 2 slots that the trace guarantees" in capsys.readouterr().err


def test_names_are_shown_as_they_are_and_move_no_cursor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    path = tmp_path / "t[b].csv"
    path.write_text("user,interval,run_time\n[/red],0,1\n\x1b[2Jx,0,1\n")
    assert main(["simulate", str(path)]) == 0
    out = capsys.readouterr().out
    assert "t[b].csv: fair-share" in out
    assert "[/red]" in out
    assert "?[2Jx" in out
    path.write_text("\x1b[2J,interval,run_time\n")
    assert main(["simulate", str(path)]) == 1
    assert "\x1b" not in capsys.readouterr().err


def test_long_names_of_teams_are_shown_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    path = tmp_path / "t.csv"
    path.write_text(f"user,interval,run_time\n{'x' * 60}-1,0,1\n{'x' * 60}-2,0,1\n")
    assert main(["simulate", str(path)]) == 0
    out = capsys.readouterr().out
    assert "-1 " in out
    assert "-2 " in out


def test_a_trace_without_runs_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.csv"
    path.write_text("user,interval,run_time\n")
    assert main(["simulate", str(path)]) == 1
    assert capsys.readouterr().err == "agentjobs: t.csv has no run of pool default\n"
