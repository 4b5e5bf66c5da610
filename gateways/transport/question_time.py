"""The time limit of each question to a chain; its clock stops while the question only waits for its turn at gates."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar

LONGEST = 3.0
"""The factor by which waiting for turns may extend a question's time at most."""


class TimedQuestion:
    """The clock of one question.

    It counts the question's waiting and running requests, and the seconds in which it only waited, at most `spare`.
    """

    def __init__(self, spare: float) -> None:
        self._spare = spare
        self._waited = 0.0
        self._stopped: float | None = None
        self._waiting = self._running = 0
        self._followers: list[TimedQuestion] = []
        self._timeouts: dict[asyncio.Timeout, float] = {}

    def waited(self) -> float:
        """Return the seconds by which waiting has delayed everything in the question."""
        still = 0.0 if self._stopped is None else asyncio.get_running_loop().time() - self._stopped
        return min(self._spare, self._waited + still)

    def count(self, waiting: int, running: int) -> None:
        """Add to the numbers of waiting and running requests, here and in the questions that follow this one."""
        self._waiting += waiting
        self._running += running
        stops = self._waiting > 0 and not self._running
        if stops and self._stopped is None:
            self._stopped = asyncio.get_running_loop().time()
            self._postpone(self._spare)
        elif not stops and self._stopped is not None:
            self._waited, self._stopped = self.waited(), None
            self._postpone(self._waited)
        for follower in self._followers:
            follower.count(waiting, running)

    def follow(self, other: "TimedQuestion") -> None:
        """Count the other question's waiting and running requests as this one's, until `leave`."""
        other._followers.append(self)
        self.count(other._waiting, other._running)

    def leave(self, other: "TimedQuestion") -> None:
        """Stop following the other question."""
        other._followers.remove(self)
        self.count(-other._waiting, -other._running)

    def add(self, timeout: asyncio.Timeout, deadline: float) -> None:
        """Make a timeout that has begun end at `deadline` in this question's time."""
        timeout.reschedule(deadline + (self._waited if self._stopped is None else self._spare))
        self._timeouts[timeout] = deadline

    def remove(self, timeout: asyncio.Timeout) -> None:
        """Forget a timeout that is about to end."""
        self._timeouts.pop(timeout, None)

    def _postpone(self, seconds: float) -> None:
        for timeout, deadline in self._timeouts.items():
            if not timeout.expired():
                timeout.reschedule(deadline + seconds)


_question: ContextVar[TimedQuestion | None] = ContextVar("question", default=None)


@contextmanager
def _counted(waiting: int, running: int) -> Generator[None]:
    question = _question.get()
    if question is not None:
        question.count(waiting, running)
    try:
        yield
    finally:
        if question is not None:
            question.count(-waiting, -running)


def waiting() -> AbstractContextManager[None]:
    """Count a request of the running question as waiting for its turn, inside a `with`."""
    return _counted(1, 0)


def running() -> AbstractContextManager[None]:
    """Count a request of the running question as under way, inside a `with`."""
    return _counted(0, 1)


def now() -> float:
    """Return loop time minus the seconds that the question waited for turns; outside a question, plain loop time."""
    question = _question.get()
    return asyncio.get_running_loop().time() - (0.0 if question is None else question.waited())


@asynccontextmanager
async def timeout_at(deadline: float) -> AsyncGenerator[None]:
    """Raise TimeoutError in the code inside at a deadline in the question's time."""
    question = _question.get()
    if question is None:
        async with asyncio.timeout_at(deadline):
            yield
        return
    async with asyncio.timeout_at(None) as timeout:
        question.add(timeout, deadline)
        try:
            yield
        finally:
            question.remove(timeout)


@asynccontextmanager
async def of(deadline: float) -> AsyncGenerator[None]:
    """Make the code inside, with the tasks that it starts, one question that ends at `deadline` with TimeoutError.

    The question's time stops while some of its requests wait at gates and none is under way. Whatever it waits for, it
    ends after LONGEST times the seconds that it had at the start.
    """
    seconds = max(0.0, deadline - asyncio.get_running_loop().time())
    token = _question.set(TimedQuestion((LONGEST - 1) * seconds))
    try:
        async with timeout_at(deadline):
            yield
    finally:
        _question.reset(token)


@contextmanager
def shared() -> Generator[TimedQuestion]:
    """Make a task that is created inside a separate question, for which several others can wait with `joined`."""
    token = _question.set(made := TimedQuestion(0.0))
    try:
        yield made
    finally:
        _question.reset(token)


@contextmanager
def joined(other: TimedQuestion) -> Generator[None]:
    """Count another question's waiting and running requests as the running question's own, inside a `with`."""
    question = _question.get()
    if question is not None:
        question.follow(other)
    try:
        yield
    finally:
        if question is not None:
            question.leave(other)
