"""Paths with a line break: route patterns end at a line, so no route would match them."""

from starlette.types import ASGIApp, Receive, Scope, Send


class LineBreaks:
    """Keeps line breaks in paths percent-encoded ("%0A"), so that such a path is answered like any other.

    It wraps Reflex's outermost router, whose bare refusal would lack our headers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        path = scope.get("path", "")
        await self._app({**scope, "path": path.replace("\n", "%0A")} if "\n" in path else scope, receive, send)
