"""Processes that tests start to see what they load or survive."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

COMMAND = "import sys; from cosmos_workflow_state._cli import main; sys.exit(main())"


def loaded_by(program: str, *packages: str) -> list[str]:
    """Run a program in a fresh process and return which of some packages it loaded."""
    asked = f"{program}\nimport sys; print(*sorted(set({packages!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1].split()


class EmulatorProcess:
    """The command line's emulator in a process of its own.

    Attributes:
        process: The process.
        printed: All lines it printed until it was ready.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """Wait until the emulator is ready, or has ended."""
        self.process = process
        self.printed: list[str] = []
        assert process.stdout is not None
        for line in process.stdout:
            self.printed.append(line.rstrip("\n"))
            if "PROVISIONING" in line:
                break

    def shown(self, name: str) -> str:
        """Return what it printed behind a name."""
        found = re.search(rf"^  {name} +(\S+)$", "\n".join(self.printed), re.MULTILINE)
        assert found is not None
        return found[1]

    def environment(self) -> dict[str, str]:
        """Return the environment block that it printed."""
        return dict(re.findall(r"^export (\w+)='(.*)'$", "\n".join(self.printed), re.MULTILINE))

    def end(self, number: int) -> tuple[int, str, str]:
        """Send a signal and return the exit code and what was printed since, on both streams."""
        self.process.send_signal(number)
        output, errors = self.process.communicate(timeout=20)
        return self.process.returncode, output, errors


@contextmanager
def emulator_process(*arguments: str) -> Generator[EmulatorProcess]:
    """Run the emulator's command with a free port."""
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, "emulator", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield EmulatorProcess(process)
        finally:
            if process.poll() is None:
                process.kill()
