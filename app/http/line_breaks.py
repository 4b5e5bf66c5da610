"""Addresses with a line break in them: routes are found by patterns that end at a line, so none would fit them."""

from starlette.types import ASGIApp, Receive, Scope, Send


class LineBreaks:
    """Leaves line breaks in paths as they were sent, "%0A": the address is then answered like any other.

    It stands outside of Reflex's own outermost router, whose bare refusal has none of our headers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        path = scope.get("path", "")
        await self._app({**scope, "path": path.replace("\n", "%0A")} if "\n" in path else scope, receive, send)
