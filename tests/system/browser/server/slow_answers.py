"""A socket whose answers come late."""

from dataclasses import dataclass, field

from playwright.async_api import WebSocketRoute


@dataclass
class Slow:
    """A page's socket to a server whose answers can be held up; they come late, and one after another.

    With `only`, the first answer that contains these words is held up, and all that follow it.
    """

    holds: bool = False
    only: str = ""
    passed: list[str] = field(default_factory=list[str])
    """The answers that the page has."""
    asked: list[str] = field(default_factory=list[str])
    """What the page has sent."""
    _held: list[str | bytes] = field(default_factory=list[str | bytes])
    _lines: list[WebSocketRoute] = field(default_factory=list[WebSocketRoute])

    def through(self, line: WebSocketRoute) -> None:
        """Pass a socket's messages on."""
        server = line.connect_to_server()
        server.on_message(lambda one: self._pass(line, one))
        line.on_message(lambda one: self._ask(server, one))
        self._lines.append(line)

    def _ask(self, server: WebSocketRoute, question: str | bytes) -> None:
        self.asked.append(str(question))
        server.send(question)

    def _pass(self, line: WebSocketRoute, answer: str | bytes) -> None:
        if self.holds and (self._held or self.only in str(answer)):
            self._held.append(answer)
        else:
            self._send(line, answer)

    def _send(self, line: WebSocketRoute, answer: str | bytes) -> None:
        self.passed.append(str(answer))
        line.send(answer)

    def answers(self) -> None:
        """Send what was held up, and hold nothing up any more."""
        self.holds = False
        for answer in self._held:
            self._send(self._lines[-1], answer)
        self._held.clear()
