"""One child process: it dies with us, its output is prefixed, and it is restarted with growing pauses."""

import asyncio
import ctypes
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from app.postgres import private_files
from app.postgres.account import Say
from app.supervisor import output

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Pauses:
    """Seconds to wait before a restart: doubled after each crash, reset after a stable run."""

    first: float = 1.0
    longest: float = 60.0
    stable: float = 60.0

    def after(self, previous: float | None, ran: float) -> float:
        """Return the pause after a process that ran `ran` seconds, when the previous pause was `previous`."""
        if previous is None or ran >= self.stable:
            return self.first
        return min(previous * 2, self.longest)


@dataclass(frozen=True)
class Program:
    """A program to keep running: a name for the log, a command, and additions to the environment.

    `ready_port` is a loopback port that must accept a connection before the next program in the list starts.
    `stop_seconds` is how long it may take to end after SIGTERM before it is killed. `hopeless_code` is the exit code
    after which a restart would fail the same way. `without` names variables of the environment that it does not get.
    With `after_health` it starts only once the plan's health check answers, so that it takes no processor time from
    the part of the start that people wait for.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    ready_port: int | None = None
    stop_seconds: float = 10.0
    hopeless_code: int | None = None
    without: frozenset[str] = frozenset()
    after_health: bool = False


class Keeper:
    """Keeps one program running until stopped."""

    def __init__(
        self, program: Program, *, cwd: Path, environment: Mapping[str, str], pauses: Pauses, say: Say
    ) -> None:
        self.program = program
        self.process: asyncio.subprocess.Process | None = None
        self.gave_up = False
        """Whether the program ended with its `hopeless_code` and is not started again."""
        self._cwd = cwd
        common = {name: value for name, value in environment.items() if name not in program.without}
        self._environment = {**common, **program.environment}
        self._pauses = pauses
        self._say = say
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start to keep the program running."""
        self._task = asyncio.create_task(self._keep(), name=f"keep {self.program.name}")

    async def stop(self) -> None:
        """Send SIGTERM, kill the program when its time is up, and wait for its end."""
        self._stopping.set()
        process = self.process
        if process is not None and process.returncode is None:
            process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(process.wait(), self.program.stop_seconds)
            except TimeoutError:
                self._say(f"{self.program.name} did not end within {self.program.stop_seconds:g} s: killing it")
                process.kill()
        if self._task is not None:
            await self._task

    def kill(self) -> None:
        """Kill the program, and start it no more; call `stop` afterwards, which waits for its end."""
        self._stopping.set()
        if self.process is not None and self.process.returncode is None:
            self.process.kill()

    async def ready(self, seconds: float = 120.0) -> bool:
        """Wait until the program's port accepts a connection; return False if it gave up, stops, or time is up.

        A program that crashed and will be started again may still become ready.
        """
        if self.program.ready_port is None:
            return True
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not (self._stopping.is_set() or self.gave_up):
            if await accepts(self.program.ready_port):
                return True
            await asyncio.sleep(0.05)
        return False

    async def _keep(self) -> None:
        pause: float | None = None
        while not self._stopping.is_set():
            begun = time.monotonic()
            code = await self._run_once()
            if self._stopping.is_set():
                return
            if code == self.program.hopeless_code:
                self.gave_up = True
                self._say(f"{self.program.name} cannot run here and is not started again; the reason is above")
                await self._stopping.wait()
                return
            pause = self._pauses.after(pause, time.monotonic() - begun)
            self._say(f"{self.program.name} ended with {describe(code)}; starting it again in {pause:g} s")
            try:
                await asyncio.wait_for(self._stopping.wait(), pause)
            except TimeoutError:
                continue

    async def _run_once(self) -> int:
        try:
            writing, printing = printed(self.program.name)
        except OSError as fault:
            self._say(f"{self.program.name} could not be started: {fault}")
            return 127
        try:
            process = await asyncio.create_subprocess_exec(
                *self.program.command,
                cwd=self._cwd,
                env=self._environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=writing,
                stderr=writing,
                # In a group of its own, so that Ctrl+C reaches us alone and we stop the programs in order.
                process_group=0,
                umask=private_files.UMASK,
                preexec_fn=_die_with(os.getpid()),
            )
        except OSError as fault:
            self._say(f"{self.program.name} could not be started: {fault}")
            return 127
        finally:
            os.close(writing)
        self.process = process
        if self._stopping.is_set():  # stop() was called before the process existed
            process.kill()
        code = await process.wait()
        await end_printing(printing)
        return code


def printed(name: str) -> tuple[int, asyncio.Task[None]]:
    """Return a descriptor for a program's output, and the task that prints each line of it after the program's name.

    It is our own pipe: asyncio's would keep wait() from returning while a grandchild holds the other end open.
    """
    reading, writing = os.pipe()
    return writing, asyncio.create_task(_print_lines(name, reading))


async def end_printing(printing: asyncio.Task[None]) -> None:
    """Print the rest of an ended program's output, but wait for none that a grandchild writes long after its end."""
    await asyncio.wait({printing}, timeout=1.0)
    printing.cancel()


async def _print_lines(name: str, descriptor: int) -> None:
    """Print a pipe's output line by line, and close the pipe."""
    stream = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(descriptor, "rb", 0)
    )
    rest = b""
    try:
        while chunk := await stream.read(65536):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                _print_line(name, line)
    finally:
        transport.close()
        if rest:
            _print_line(name, rest)


def _print_line(name: str, line: bytes) -> None:
    output.repeat(name, line.decode(errors="replace").rstrip("\r"))


async def accepts(port: int) -> bool:
    """Return whether something on this machine accepts connections on the port."""
    try:
        _, writer = await asyncio.open_connection("localhost", port)
    except OSError:
        return False
    writer.close()
    return True


def describe(code: int) -> str:
    """Describe a process's end: its exit code, or the signal that ended it."""
    if code >= 0:
        return f"exit code {code}"
    if code == -signal.SIGKILL:
        # The kernel's own note of that is in a log that few operators know.
        return "SIGKILL, as when memory runs out"
    try:
        return signal.Signals(-code).name
    except ValueError:  # real-time signals have no names but the first and the last
        return f"signal {-code}"


def _die_with(parent: int) -> Callable[[], None]:
    """Return a function that a child calls before its program: it asks the kernel for SIGTERM when the parent dies.

    SIGTERM and not SIGKILL, so that a child can end its own children. The next start ends children that ignore it.
    """

    def arm() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # the parent died before the line above
            os.kill(os.getpid(), signal.SIGTERM)

    return arm
