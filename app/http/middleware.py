"""What middleware shares: a class for HTTP requests, and whether an answer has begun."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HttpMiddleware:
    """Middleware that passes on everything but HTTP requests, which a subclass handles."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, or pass on anything else."""
        await (self.handle if scope["type"] == "http" else self._app)(scope, receive, send)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        raise NotImplementedError


class Begun:
    """A `send` that passes everything on and remembers whether it was called: no other answer can then follow."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.yet: bool = False

    async def __call__(self, message: Message) -> None:
        """Pass a part of the answer on."""
        self.yet = True
        await self._send(message)
