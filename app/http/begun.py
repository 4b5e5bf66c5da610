"""Whether an answer has begun: from then on no other can be given in its place."""

from starlette.types import Message, Send


class Begun:
    """A `send` that passes everything on and remembers that there was something."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.yet: bool = False

    async def __call__(self, message: Message) -> None:
        """Pass a part of the answer on."""
        self.yet = True
        await self._send(message)
