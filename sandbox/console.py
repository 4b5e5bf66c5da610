"""`/console`: the page for people."""

from collections.abc import Sequence

from aiohttp import web

from sandbox.house import Sandbox


def routes(sandbox: Sandbox) -> Sequence[web.AbstractRouteDef]:
    """The console."""

    async def page(_: web.Request) -> web.Response:
        names = ", ".join(person.username for person in sandbox.people)
        return web.Response(text=f"<h1>Sandbox</h1><p>{names}</p>", content_type="text/html")

    return [web.get("/console", page)]
