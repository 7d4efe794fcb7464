"""The example agents, run as plain processes, and what users are told about them."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentjobs.apis.validation import validate
from deploy.local import node_images
from deploy.local.oci import Blob
from examples.traceback.agent import RESULT_BYTES, report

EXAMPLES = sorted(path.parent.name for path in node_images.EXAMPLES.glob("*/agent.py"))


class Run:
    """An agent with the environment that the sandbox would give it."""

    def __init__(self, folder: Path, example: str, payload: object) -> None:
        self.result_file = folder / "result"
        (folder / "input").write_text(json.dumps(payload))
        environment = {
            **os.environ,
            "AGENT_JOB_ID": "J",
            "AGENT_ATTEMPT": "1",
            "AGENT_INPUT_FILE": str(folder / "input"),
            "AGENT_RESULT_FILE": str(self.result_file),
        }
        agent = node_images.EXAMPLES / example / "agent.py"
        self.process = subprocess.Popen(
            [sys.executable, agent],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def first_line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def end(self) -> tuple[int, str]:
        """Its exit code, and what it printed."""
        output, _ = self.process.communicate(timeout=20)
        return self.process.returncode, output

    def result(self) -> Any:
        return json.loads(self.result_file.read_text())


def test_compute_returns_42(tmp_path: Path) -> None:
    run = Run(tmp_path, "compute", {"duration": 0})
    assert run.end()[0] == 0
    assert run.result() == {"result": 42}


@pytest.mark.parametrize("duration", ["ten", -1, True, None, [1]])
def test_compute_names_what_is_wrong(tmp_path: Path, duration: object) -> None:
    run = Run(tmp_path, "compute", {"duration": duration})
    assert run.end()[0] == 1
    expected = f"inputPayload.duration is {duration!r}; it must be a number of seconds, 0 or more"
    assert run.result() == {"error": expected}


def test_compute_stops_on_sigterm_without_a_result(tmp_path: Path) -> None:
    run = Run(tmp_path, "compute", {"duration": 600})
    assert "computing for 600 s" in run.first_line()
    run.process.send_signal(signal.SIGTERM)
    assert run.end() == (143, "SIGTERM: stopping\n")
    assert not run.result_file.exists()


def test_traceback_fails_with_one(tmp_path: Path) -> None:
    run = Run(tmp_path, "traceback", {"orders": [{"price": 1, "pieces": 0}]})
    code, output = run.end()
    assert code == 1
    assert run.result()["error"] == "ZeroDivisionError: division by zero"
    assert run.result()["traceback"] in output


def test_traceback_succeeds_with_sound_input(tmp_path: Path) -> None:
    run = Run(tmp_path, "traceback", {"orders": [{"price": 10, "pieces": 4}, {"price": 9, "pieces": 2}]})
    assert run.end()[0] == 0
    assert run.result() == {"result": [2.5, 4.5]}


@pytest.mark.parametrize("text", ["x" * 20_000, "ü" * 20_000, '"\n' * 20_000])
def test_a_long_failure_still_fits_the_result_file(text: str) -> None:
    document = report(ValueError(text))
    assert len(document.encode()) <= RESULT_BYTES
    assert json.loads(document)["error"].startswith("ValueError: ")


def test_memory_hog_says_when_no_limit_stopped_it(tmp_path: Path) -> None:
    run = Run(tmp_path, "memory-hog", {"megabytes": 16})
    assert run.end() == (1, "holding 16 MB\n")
    assert "was not stopped" in run.result()["error"]


def test_stubborn_ignores_sigterm(tmp_path: Path) -> None:
    run = Run(tmp_path, "stubborn", {"duration": 600})
    assert "come what may" in run.first_line()
    run.process.send_signal(signal.SIGTERM)
    assert run.first_line() == "SIGTERM: not today\n"
    run.process.kill()
    assert run.end() == (-signal.SIGKILL, "")


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_local_image_is_what_the_dockerfile_says(example: str) -> None:
    folder = node_images.EXAMPLES / example
    lines = [line for line in (folder / "Dockerfile").read_text().splitlines() if line and line[0] != "#"]
    image = node_images.agent_image(Blob(b""), folder / "agent.py")
    environment = {name: value for name, value in image.environment.items() if name != "PATH"}
    assert lines == [
        "FROM python:3.13-slim",
        "ENV " + " ".join(f"{name}={value}" for name, value in environment.items()),
        "COPY agent.py /agent/agent.py",
        f"USER {image.user}",
        f"ENTRYPOINT {json.dumps(image.entrypoint)}",
    ]


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_manifest_is_valid_and_names_the_local_image(example: str) -> None:
    manifest = yaml.safe_load((node_images.EXAMPLES / example / "agentjob.yaml").read_text())
    assert validate(manifest) == []
    assert manifest["metadata"]["name"] == example
    assert manifest["spec"]["agentImage"] == node_images.image_name(example)
