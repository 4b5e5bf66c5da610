"""`/console`: the page for people. Its forms do exactly what `/control` does; its upper part renews itself."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from aiohttp import ClientSession, web

from sandbox.console import forms, view
from sandbox.discord.pages import page
from sandbox.house import Sandbox

NUMBERS = ("seconds", "position", "depth", "blocks")
RENEW = """
<script>
setInterval(async () => {
  if (document.hidden) return;
  const answer = await fetch("/console/live").catch(() => null);
  if (answer && answer.ok) document.getElementById("live").innerHTML = await answer.text();
}, 2000);
</script>
"""


def routes(sandbox: Sandbox) -> Sequence[web.AbstractRouteDef]:
    """The page, its part that renews itself, and what its forms post to."""

    async def console(request: web.Request) -> web.Response:
        world = await sandbox.world()
        said = view.said(request.query.get("said"))
        live = f'<div id="live">{view.live(sandbox, world)}</div>'
        body = f"<h1>Holdfast sandbox</h1>{said}{live}{forms.all_forms(world)}{view.people(world)}{RENEW}"
        return web.Response(text=page("Sandbox console", body), content_type="text/html")

    async def renewed(_: web.Request) -> web.Response:
        return web.Response(text=view.live(sandbox, await sandbox.world()), content_type="text/html")

    async def act(request: web.Request) -> web.Response:
        """A form becomes the control call of the same name; a collection is written as its chain and its contract."""
        form = {name: str(value) for name, value in (await request.post()).items() if value != ""}
        path = request.match_info["path"]
        if "collection" in form:
            chain, _, form["contract"] = form.pop("collection").partition(" ")
            path = path.replace("{chain}", chain)
        body: dict[str, Any] = {k: float(v) if k in NUMBERS and v.isdigit() else v for k, v in form.items()}
        said = await _controlled(sandbox, path, body)
        raise web.HTTPSeeOther("/console?" + urlencode({"said": said}))

    return [
        web.get("/console", console),
        web.get("/console/live", renewed),
        web.post("/console/do/{path:.+}", act),
    ]


async def _controlled(sandbox: Sandbox, path: str, body: dict[str, Any]) -> str:
    """Make the control call over loopback; what a person reads of its answer."""
    method = "DELETE" if path == "faults" and not body else "POST"
    url = f"http://127.0.0.1:{sandbox.port}/control/{path}"
    async with ClientSession() as http, http.request(method, url, json=body) as answer:
        text = await answer.text()
        return "Done." if answer.ok else f"{answer.status}: {text}"
