"""Readers: what each format means; what is wrong is told by file, line, column, value and rule."""

import gzip
import json
import tracemalloc
from pathlib import Path

import pytest

from agentjobs.apis.agentjob import Priority
from agentjobs.errors import TraceError
from agentjobs.scheduling.model import SECOND
from agentjobs.scheduling.resources import Amounts
from agentjobs.simulation.files import opened
from agentjobs.simulation.jsonl import write_run
from agentjobs.simulation.trace import TraceRun, chosen_class, chosen_timeout

HEADER = "u_id,user,gpu_num,cpu_num,node_num,interval,run_time,wall_time,new_status\n"
POOL = {
    "apiVersion": "agentjobs.dev/v1alpha1",
    "kind": "AgentPool",
    "metadata": {"name": "p"},
    "spec": {"maxConcurrency": 3},
}
TEAM = {
    "apiVersion": "agentjobs.dev/v1alpha1",
    "kind": "AgentTeam",
    "metadata": {"name": "b"},
    "spec": {"teamId": "Blue", "pools": {"p": {"weight": 2}}},
}
RUN = {"run": "r", "team": "Blue", "pool": "p", "submitted": 1.5, "runSeconds": 7}


def read(
    folder: Path, name: str, text: str, *, team_column: str = "user", pool: str | None = None
) -> list[TraceRun]:
    path = folder / name
    path.write_text(text)
    with opened(path, team_column=team_column, pool_name=pool) as trace:
        return list(trace.runs)


def lines(*objects: object) -> str:
    return "".join(json.dumps(each) + "\n" for each in objects)


def test_csv_adds_intervals_up_and_chooses_what_is_not_there(tmp_path: Path) -> None:
    runs = read(tmp_path, "t.csv", HEADER + "7,blue,8,16,1,5,601,0,Pass\n8,red,0,0,1,10,0,90,Killed\n")
    assert runs == [
        TraceRun("7", "blue", chosen_class("7"), 5 * SECOND, 601, Amounts(1, 16_000, 2048, 8), 3600),
        TraceRun("8", "red", chosen_class("8"), 15 * SECOND, 0, Amounts(1, 0, 2048, 0), 90),
    ]


def test_csv_takes_another_column_as_team_and_a_class_where_there_is_one(tmp_path: Path) -> None:
    text = "dept,interval,run_time,priority\nx,1,2,critical\n\ny,0,3,low\n"
    runs = read(tmp_path, "t.csv", text, team_column="dept")
    assert [(run.team, run.priority) for run in runs] == [("x", Priority.CRITICAL), ("y", Priority.LOW)]


def test_swf_takes_what_was_asked_and_leaves_out_what_never_ran(tmp_path: Path) -> None:
    text = (
        "; Version: 2.2\n"
        "1 10 5 100 4 -1 -1 8 3600 1024 1 3 1 -1 2 -1 -1 -1\n"
        "2 11 5 -1 4 -1 -1 8 3600 -1 5 3 1 -1 2 -1 -1 -1\n"
        "3 12 5 50 4 -1 -1 -1 -1 -1 1 4 1 -1 2 -1 -1 -1\n"
    )
    runs = read(tmp_path, "t.swf", text)
    assert runs == [
        TraceRun("1", "3", chosen_class("1"), 10 * SECOND, 100, Amounts(1, 8000, 8, 0), 3600),
        TraceRun("3", "4", chosen_class("3"), 12 * SECOND, 50, Amounts(1, 4000, 2048, 0), 600),
    ]
    assert {run.team for run in read(tmp_path, "t.swf", text, team_column="queue")} == {"2"}


def test_jsonl_has_the_pool_its_teams_and_the_runs_of_one_pool(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl.gz"
    other = {**RUN, "pool": "q"}
    with gzip.open(path, "wt") as file:
        file.write(
            lines(POOL, TEAM, RUN, other, {**RUN, "submitted": "1970-01-01T00:00:02Z", "priority": "high"})
        )
    with opened(path) as trace:
        runs = list(trace.runs)
        assert trace.pool_name == "p"
        assert trace.pool is not None
        assert trace.pool.max_concurrency == 3
        assert trace.teams["Blue"].pools["p"].weight == 2
    assert runs == [
        TraceRun("r", "Blue", Priority.DEFAULT, 1_500_000, 7, Amounts(1, 1000, 2048, 0), 600),
        TraceRun("r", "Blue", Priority.HIGH, 2_000_000, 7, Amounts(1, 1000, 2048, 0), 600),
    ]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    run = TraceRun("ns/a", "Bläu=1", Priority.LOW, 1_764_460_799_000_001, 3, Amounts(1, 250, 128, 4), 30)
    assert read(tmp_path, "t.jsonl", write_run(run, "default") + "\n") == [run]


def test_a_text_may_have_quotes_and_be_the_same_as_a_key(tmp_path: Path) -> None:
    (run,) = read(tmp_path, "t.jsonl", lines({**RUN, "run": 'r "run"', "team": "team", "pool": "default"}))
    assert (run.name, run.team) == ('r "run"', "team")


def test_the_class_and_timeout_that_are_chosen() -> None:
    classes = [chosen_class(str(row)) for row in range(10_000)]
    parts = {priority: classes.count(priority) / 10_000 for priority in Priority}
    wanted = {Priority.CRITICAL: 0.1, Priority.HIGH: 0.2, Priority.DEFAULT: 0.5, Priority.LOW: 0.2}
    assert parts == pytest.approx(wanted, abs=0.02)
    assert [chosen_timeout(seconds) for seconds in (0, 600, 601, 7_776_000, 7_776_001)] == [
        600,
        600,
        3600,
        7_776_000,
        7_776_001,
    ]


ROW = "1,blue,1,1,1,5,10,0,Pass\n"
SWF = "1 10 5 100 4 -1 -1 8 3600 1024 1 3 1 -1 2 -1 -1 -1\n"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("t.txt", "", "t.txt: is of no kind that is known; name it .jsonl, .csv or .swf"),
        (
            "t.csv",
            "",
            "t.csv, line 1, column user: is missing; the header has nothing; name the column of the team",
        ),
        ("t.csv", "user,interval\n", "line 1, column run_time: is missing; the header has user, interval"),
        (
            "t.csv",
            HEADER + ROW + "1,blue,1,1,1,-5,10,0,Pass\n",
            "t.csv, line 3, column interval: '-5' is not a whole",
        ),
        (
            "t.csv",
            HEADER + "1,blue,1,1,1,5,1.5,0,Pass\n",
            "line 2, column run_time: '1.5' is not a whole number from 0",
        ),
        ("t.csv", HEADER + "1,blue,1,1,1,5,,0,Pass\n", "line 2, column run_time: '' is not a whole number"),
        ("t.csv", HEADER + "1,blue,1,1,1,5,1_0,0,Pass\n", "column run_time: '1_0' is not"),
        ("t.csv", HEADER + "1,blue,1,1,1,5,٣,0,Pass\n", "column run_time: '٣' is not"),
        ("t.csv", HEADER + "1,blue,1,1,1,5,--3,0,Pass\n", "column run_time: '--3' is not"),
        ("t.csv", HEADER + f"1,blue,1,1,1,5,{'9' * 5000},0,Pass\n", "column run_time: '999999999"),
        (
            "t.csv",
            HEADER + "1,,1,1,1,5,10,0,Pass\n",
            "line 2, column user: '' is not a text of 1 to 317 characters",
        ),
        ("t.csv", HEADER + "1,blue,1\n", "line 2: has 3 columns, the header 9; correct the line"),
        ("t.csv", HEADER + 'x"\0\n', "line 2: has a byte of value 0; is it a trace?"),
        ("t.csv", HEADER + "x" * 200_000, "line 2: is longer than 100,000 characters; is it a trace?"),
        ("t.csv", 'user,interval,run_time\n"a\nb",0,5\nc,0,x\n', "line 4, column run_time: 'x' is not"),
        ("t.csv", 'user,interval,run_time\na,0,5\n"b\n' + "c,0,5\n" * 9, "line 3: has 1 columns, the"),
        ("t.csv", "a," * 500, "line 1: has 501 columns; is it a CSV file?"),
        (
            "t.csv",
            "user,interval,run_time,priority\na,1,1,urgent\n",
            "column priority: 'urgent' is no priority class; ",
        ),
        ("t.swf", SWF + "1 2 3\n", "t.swf, line 2: has 3 columns, SWF has 18; correct the line"),
        (
            "t.swf",
            SWF + SWF.replace("1 10", "2 9", 1),
            "line 2, column submit: '9' is 1 s before the line above; sort",
        ),
        ("t.swf", SWF.replace("1 10", "1 -1", 1), "line 1, column submit: '-1' is not a whole number from 0"),
        ("t.jsonl", "{", "t.jsonl, line 1: is no JSON: "),
        ("t.jsonl", "[" * 100_000, "t.jsonl, line 1: is no JSON: "),
        ("t.jsonl", "[1]\n", "line 1: is no JSON object; write one object a line"),
        (
            "t.jsonl",
            lines({**RUN, "pool": "default", "runSeconds": -1}),
            "line 1, column runSeconds: -1 is not a whole",
        ),
        (
            "t.jsonl",
            lines({**RUN, "pool": "default", "runSeconds": True}),
            "column runSeconds: True is not a whole",
        ),
        ("t.jsonl", lines({**RUN, "pool": "default", "submitted": -1}), "column submitted: -1 is neither"),
        ("t.jsonl", '{"run":"r","team":"t","runSeconds":1,"submitted":1e999}', "is no JSON"),
        ("t.jsonl", lines({"run": "r", "team": "t", "runSeconds": 1}), "column submitted: is missing"),
        (
            "t.jsonl",
            lines({**RUN, "pool": "default", "priority": "urgent"}),
            "column priority: 'urgent' is no priority",
        ),
        (
            "t.jsonl",
            lines({**RUN, "pool": "default", "seconds": 4}),
            "column seconds: 4 is in a column that is not known",
        ),
        (
            "t.jsonl",
            lines({**POOL, "spec": {"maxConcurrency": 0}}),
            "line 1, AgentPool: spec.maxConcurrency: 0",
        ),
        ("t.jsonl", lines({"kind": "Pod"}), "column kind: 'Pod' is neither AgentPool nor AgentTeam; leave"),
        ("t.jsonl", lines({"kind": None}), "column kind: is neither AgentPool nor AgentTeam; leave the line"),
        (
            "t.jsonl",
            '{"run":"r\\"s","team":"t","submitted":0,"runSeconds":1, "runSeconds" : 2}',
            "t.jsonl, line 1, column runSeconds: is there 2 times; keep one",
        ),
        ("t.jsonl", '{"run":"r","\\u0072un":"s"}', "line 1, column run: is there 2 times; keep one"),
        (
            "t.jsonl",
            lines(TEAM) + lines(POOL).replace('"spec": {', '"spec": {"maxConcurrency": 1, '),
            "t.jsonl, line 2, column maxConcurrency: is there 2 times; keep one",
        ),
        (
            "t.jsonl",
            lines(POOL, RUN, TEAM),
            "line 3, column kind: 'AgentTeam' stands below a run; put pools and teams",
        ),
        ("t.csv", "user,interval,run_time,user\n", "line 1, column user: is there 2 times; keep one"),
        (
            "t.jsonl",
            lines(POOL, POOL),
            "line 2, column kind: 'AgentPool' stands for 'p', which is above already; leave one of the two",
        ),
        (
            "t.jsonl",
            lines(TEAM, {**TEAM, "metadata": {"name": "c"}}),
            "line 2, column kind: 'AgentTeam' stands for 'Blue', which is above already",
        ),
        (
            "t.jsonl",
            lines(POOL, {**POOL, "metadata": {"name": "q"}}),
            "has more than one pool; choose one with --pool: p, q",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, name: str, text: str, words: str) -> None:
    with pytest.raises(TraceError) as told:
        read(tmp_path, name, text)
    assert words in str(told.value)
    assert len(str(told.value)) < 500


def test_a_team_column_or_pool_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="column dept: is missing; the header has u_id, user"):
        read(tmp_path, "t.csv", HEADER, team_column="dept")
    with pytest.raises(TraceError, match="cannot name a team by 'dept'; SWF has user, group"):
        read(tmp_path, "t.swf", SWF, team_column="dept")
    with pytest.raises(TraceError, match="'q' is not in the trace; choose one with --pool: p"):
        read(tmp_path, "t.jsonl", lines(POOL), pool="q")


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with (
        pytest.raises(TraceError, match=r"none\.csv: cannot be read: No such file"),
        opened(tmp_path / "none.csv"),
    ):
        pass
    whole = gzip.compress((HEADER + ROW * 5000).encode())
    for broken in (whole[: len(whole) // 2], b"plain text", whole[:-12] + b"x" * 12):
        path = tmp_path / "broken.csv.gz"
        path.write_bytes(broken)
        with pytest.raises(TraceError, match=r"broken\.csv\.gz: cannot be read"), opened(path) as trace:
            list(trace.runs)
    # Far down, and named nevertheless: what is read ahead is not what is looked at.
    (tmp_path / "latin.csv").write_bytes((HEADER + ROW * 2498).encode() + b"1,bl\xe4u,1,1,1,5,10,0,Pass\n")
    with (
        pytest.raises(TraceError, match=r"latin\.csv, line 2,500: is not UTF-8"),
        opened(tmp_path / "latin.csv") as trace,
    ):
        list(trace.runs)


def test_a_long_trace_is_never_held(tmp_path: Path) -> None:
    path = tmp_path / "long.csv.gz"
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write(HEADER)
        for number in range(20_000):
            file.write(f"{number},team-{number % 97},1,1,1,5,10,0,Pass\n")
    tracemalloc.start()
    with opened(path) as trace:
        count = sum(1 for _ in trace.runs)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 20_000
    assert most < 400_000  # the file has 0.7 MB of text
