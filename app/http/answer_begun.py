"""Tracks whether an answer has begun; after that no other answer can replace it."""

from starlette.types import Message, Send


class Begun:
    """A `send` that passes everything on and remembers whether it was called."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.yet: bool = False

    async def __call__(self, message: Message) -> None:
        """Pass a part of the answer on."""
        self.yet = True
        await self._send(message)
