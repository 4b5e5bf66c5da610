"""Benchmark rounds: every method in a process of its own, one after the other, repeatedly; medians and ratios."""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from benchmarks.support.install_peers import PEERS
from benchmarks.support.nft_chain import ROOT
from services.runtime import garbage_collection
from tests.conftest import free_port, wait_until_open

READY = "ready\n"
"""What a process prints once it is prepared."""


@dataclass(frozen=True)
class Sample:
    """One run of one method: seconds by the clock and of the processor, for so many units, with a sum to compare."""

    seconds: float
    cpu: float
    units: int
    sum: int
    rss: int
    """Kilobytes at the most."""

    @property
    def each(self) -> float:
        """Microseconds by the clock for one unit."""
        return self.seconds / self.units * 1e6

    @property
    def cpu_each(self) -> float:
        """Microseconds of this process's processor time for one unit."""
        return self.cpu / self.units * 1e6


@dataclass
class Method:
    """A way of doing the work: a command that prints one Sample as JSON, whose sum must be `expected`."""

    name: str
    command: Sequence[str]
    expected: int | None = None
    samples: list[Sample] = field(default_factory=list[Sample])
    missing: str = ""
    """Why it could not run."""

    def run(self) -> None:
        """Run once; raises when the sum is wrong, because a fast wrong answer is worth nothing."""
        if self.missing:
            return
        done = subprocess.run(self.command, cwd=ROOT, capture_output=True, text=True, env=environment(), check=False)
        if done.returncode != 0:
            self.missing = (done.stderr.strip().splitlines() or ["it failed"])[-1][:150]
            return
        sample = Sample(**json.loads(done.stdout.strip().splitlines()[-1]))
        if self.expected is not None and sample.sum != self.expected:
            raise SystemExit(f"{self.name} says {sample.sum} where {self.expected} is right")
        self.samples.append(sample)


def environment() -> dict[str, str]:
    """Return a method's environment: node from the wheel, and one thread for libraries that would use all cores."""
    path = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return {**os.environ, "PATH": path, "NODE_PATH": str(PEERS / "npm" / "node_modules")}


def options(module: str, about: str | None, *, quick: str) -> argparse.ArgumentParser:
    """Return the options of a benchmark: `--quick`, which `quick` explains, and those that are added to them."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{module}", description=about)
    parser.add_argument("--quick", action="store_true", help=quick)
    return parser


@contextmanager
def started(module: str, *arguments: str, **more: Any) -> Iterator["subprocess.Popen[Any]"]:
    """A module in a process of its own, which is killed at the end of the block; `more` as for Popen."""
    process = subprocess.Popen([sys.executable, "-m", module, *arguments], cwd=ROOT, env=environment(), **more)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def prepared(module: str, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """A module in a process of its own that has said READY, and works for each line that it then gets."""
    with started(module, *arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == READY, f"{module} did not prepare itself"
        yield process


def said_by(module: str, *arguments: str) -> Any:
    """Run a module in a process of its own, and return the JSON of the last line that it prints.

    Raises SystemExit with the end of its errors if it fails.
    """
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr[-4000:])
    return json.loads(done.stdout.splitlines()[-1])


@contextmanager
def serving(module: str, *arguments: str) -> Iterator[str]:
    """A module that serves on the port that is its last argument; yields its address, and ends with the block."""
    port = free_port()
    with started(module, *arguments, str(port)) as process:
        wait_until_open(port, process)
        yield f"http://127.0.0.1:{port}"


def interleaved(methods: Sequence[Method], rounds: int, before: Callable[[], None] = lambda: None) -> None:
    """Run each method once a round, so that other load on the machine affects all of them alike."""
    for number in range(rounds):
        for method in methods:
            before()
            method.run()
            print(f"\r  round {number + 1} of {rounds}: {method.name:<44}", end="", file=sys.stderr, flush=True)
    print("\r" + 70 * " " + "\r", end="", file=sys.stderr, flush=True)


def ratio(slow: Method, fast: Method) -> tuple[float, float, float] | None:
    """Return how many times faster `fast` is, per unit, round by round: median, least and most."""
    pairs = [a.each / b.each for a, b in zip(slow.samples, fast.samples, strict=False)]
    return (median(pairs), min(pairs), max(pairs)) if pairs else None


def show(title: str, unit: str, methods: Sequence[Method], ours: Method) -> None:
    """Print the table of one benchmark."""
    print(f"\n{title}\n")
    print(
        f"| method | µs a {unit}, median (min-max) | own CPU, µs a {unit} | memory, MB | ours is so many times faster |"
    )
    print("|---|---|---|---|---|")
    for method in methods:
        if method.missing:
            print(f"| {method.name} | not run: {method.missing} | | | |")
            continue
        each = [sample.each for sample in method.samples]
        cpu = median(sample.cpu_each for sample in method.samples)
        rss = max(sample.rss for sample in method.samples) // 1024
        said = ratio(method, ours)
        times = "" if said is None or method is ours else f"{said[0]:.1f} ({said[1]:.1f}-{said[2]:.1f})"
        print(
            f"| {method.name} | {median(each):.2f} ({min(each):.2f}-{max(each):.2f}) | {cpu:.2f} | {rss} | {times} |",
            flush=True,
        )


@dataclass(frozen=True)
class Goal:
    """A goal, and the value that this run reached."""

    benchmark: str
    text: str
    value: float | None
    wanted: str
    met: bool

    @property
    def row(self) -> str:
        """Return a row of the table of goals."""
        value = "not measured" if self.value is None else f"{self.value:.3g}"
        return f"| {self.benchmark} | {self.text} | {value} | {self.wanted} | {self.verdict} |"

    @property
    def verdict(self) -> str:
        """The verdict in a word."""
        return "-" if self.value is None else "met" if self.met else "MISSED"


GOALS: list[Goal] = []
"""The goals of all benchmarks that this process has run."""


def goal(
    benchmark: str, text: str, value: float | None, *, least: float | None = None, most: float | None = None
) -> None:
    """Print one line about a goal, and whether this run met it."""
    wanted = f"at least {least:g}" if least is not None else f"at most {most:g}"
    met = value is not None and (least is None or value >= least) and (most is None or value <= most)
    made = Goal(benchmark, text, value, wanted, met)
    GOALS.append(made)
    said = "" if value is None else f"{value:.3g} "
    print(f"- {made.verdict}: {text}: {said}({wanted})", flush=True)


class Measured:
    """The clock's and the processor's time of a block of this process."""

    def __enter__(self) -> "Measured":
        garbage_collection.freeze()  # as every process of the product does; peers are given the same
        self._clock, self._cpu = time.perf_counter(), cpu_of(resource.getrusage(resource.RUSAGE_SELF))
        return self

    def __exit__(self, *_: Any) -> None:
        self.seconds = time.perf_counter() - self._clock
        self.cpu = cpu_of(resource.getrusage(resource.RUSAGE_SELF)) - self._cpu

    def tell(self, units: int, total: int) -> None:
        """Print the sample."""
        rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        sample = Sample(self.seconds, self.cpu, units, total, rss)
        print(json.dumps(sample.__dict__), flush=True)


def cpu_of(usage: resource.struct_rusage) -> float:
    """Return the seconds of processor time."""
    return usage.ru_utime + usage.ru_stime
