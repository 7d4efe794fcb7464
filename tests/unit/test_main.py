"""`python -m agentjobs` is the operator, and nothing else."""

import subprocess
import sys


def test_a_command_given_to_the_operator_does_not_start_it() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "agentjobs", "simulate"],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr == (
        "agentjobs: python -m agentjobs runs the operator and takes no arguments, not 'simulate'; "
        "commands such as simulate are those of the program agentjobs\n"
    )
