"""Progress of set-up: numbered steps with their time, and one moving line on a terminal."""

from __future__ import annotations

import os
import selectors
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable, Mapping, Sequence  # noqa: UP035  (also run by Pythons that are too old)

from app.postgres import private_files

QUIET_SECONDS = 15.0  # how often a log (not a terminal) reports that a long step continues
TAIL_LINES = 25


class StepFailed(Exception):
    """Raised when a step failed; the text says what to do, or where to read on."""


def start(command: Sequence[str], environment: Mapping[str, str], *, apart: bool = False) -> subprocess.Popen[bytes]:
    """Start a program for `Teller.follow` to read; `apart` gives it a process group of its own."""
    return subprocess.Popen(
        list(command), env=dict(environment), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=apart,
    )  # fmt: skip


class Teller:
    """Numbers the steps and prints each one's progress and time."""

    def __init__(self, total: int, log: Path) -> None:
        self._total = total
        self._number = 0
        self._log = log
        self._begun = time.monotonic()
        self._terminal = sys.stdout.isatty()
        self._title = ""
        self._told = 0.0

    def begin(self, title: str) -> None:
        """Begin the next step."""
        self._number += 1
        self._title = title
        self._begun = self._told = time.monotonic()
        if not self._terminal:
            self._print(f"{title} ...")

    def progress(self, text: str = "") -> None:
        """Print the step's progress; cheap enough to call for every line of output."""
        now = time.monotonic()
        line = f"{self._title} ... {text}{', ' if text else ''}{now - self._begun:.0f} s"
        if self._terminal and now - self._told > 0.1:
            self._told = now
            width = shutil.get_terminal_size().columns
            sys.stdout.write(("\r\033[K" + self._label() + line)[: width + 3])
            sys.stdout.flush()
        elif not self._terminal and now - self._told > QUIET_SECONDS:
            self._told = now
            self._print(line)

    def done(self, text: str = "done") -> None:
        """End the step, with its time if it took any."""
        took = time.monotonic() - self._begun
        if self._terminal:
            sys.stdout.write("\r\033[K")
        self._print(f"{self._title}: {text}" + (f" ({took:.1f} s)" if took >= 0.1 else ""))

    def run(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        measure: Callable[[str], str] = lambda line: line,
        *,
        optional: bool = False,
    ) -> None:
        """Run a program with its output in the log; `measure` turns each line into the progress.

        Raises StepFailed with the end of the output if it fails. That ends the step unless it is `optional`.
        """
        self.follow(start(command, environment), measure, optional=optional)

    def follow(
        self,
        process: subprocess.Popen[bytes],
        measure: Callable[[str], str] = lambda line: line,
        *,
        optional: bool = False,
    ) -> None:
        """Follow a program that was started before, in the same way."""
        assert process.stdout is not None
        command = " ".join(map(str, process.args)) if isinstance(process.args, list) else str(process.args)
        lines: list[str] = []
        shown = ""
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with (
            open(self._log, "a", encoding="utf-8", opener=private_files.opener) as log,
            selectors.DefaultSelector() as selector,
        ):
            log.write(f"\n$ {command}\n")
            selector.register(process.stdout, selectors.EVENT_READ)
            rest = b""
            while True:
                if selector.select(timeout=1.0):
                    chunk = os.read(process.stdout.fileno(), 65536)
                    if not chunk:
                        break
                    *whole, rest = (rest + chunk).split(b"\n")
                    for line in (raw.decode(errors="replace").rstrip() for raw in whole):
                        log.write(line + "\n")
                        lines.append(line)
                        shown = measure(line) or shown
                self.progress(shown)
            process.stdout.close()
            lines.append(rest.decode(errors="replace"))
            log.write(lines[-1])
        if process.wait() != 0:
            if not optional:
                self.done("failed")
            tail = "\n".join(f"    {line}" for line in lines[-TAIL_LINES:] if line.strip())
            raise StepFailed(f"{tail}\n{command} failed; its whole output is in {self._log}.")

    def _label(self) -> str:
        return f"[{self._number}/{self._total}] "

    def _print(self, text: str) -> None:
        print(self._label() + text, flush=True)
