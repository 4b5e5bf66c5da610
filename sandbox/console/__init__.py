"""`/console`: the sandbox for people: a Discord window that refreshes itself, and tools for everything else.

The server makes every page, so all of it works without a script; the script only avoids reloading. A form of the tools
makes the control call of the same name. What a person does to the bot is an interaction, as in `/control/interactions`.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, web

from sandbox.assembly import WholeSandbox
from sandbox.base.body import parsed
from sandbox.base.refusal import Refusal
from sandbox.console import window
from sandbox.console.elements import place
from sandbox.console.elements.markup import Markup
from sandbox.console.elements.place import Place
from sandbox.console.modals import modal
from sandbox.console.panels import chains, faults, profiles, servers
from sandbox.console.submitted_forms import interaction_of, place_of, submitted
from sandbox.discord.cdn import picture
from sandbox.discord.control import guilds, interactions

HERE = Path(__file__).parent
PICTURE_SIZE = 64
NUMBERS = frozenset({"seconds", "position", "status", "times", "ms", "left", "code"})
HEADERS = {
    # A second barrier behind the escaping: only our one script runs here. Role colours are written as styles.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def routes(sandbox: WholeSandbox) -> Sequence[web.AbstractRouteDef]:
    """Return routes for the page, its parts that refresh, the targets of its forms, its style, script and pictures."""
    console = Console(sandbox)
    return [
        web.get("/console", console.show),
        web.get("/console/live", console.live),
        web.post("/console/act", console.act),
        web.post("/console/complete", console.complete),
        web.post("/console/say", console.say),
        web.post("/console/dismiss", console.dismiss),
        web.post("/console/do/{path:.+}", console.do),
        web.get("/console/{name:style.css|console.js}", console.file),
        web.get("/console/pictures/{seed}.png", console.picture),
    ]


class Console:
    """The pages of one sandbox. `dismissed` has the ids of the answers that people have closed."""

    def __init__(self, sandbox: WholeSandbox) -> None:
        self.sandbox = sandbox
        self.dismissed: set[str] = set()

    async def show(self, request: web.Request) -> web.Response:
        """Return the page that the address names."""
        here = place.find(self.sandbox.discord, request.query)
        text = window.page(self.sandbox, here, self.dismissed, await self._panel(here))
        return web.Response(text=text, content_type="text/html", headers=HEADERS)

    async def live(self, request: web.Request) -> web.Response:
        """Return `{version, parts}` of the page, or 204 when it has not changed since the version `seen`."""
        here = place.find(self.sandbox.discord, request.query)
        parts = window.parts(self.sandbox, here, self.dismissed)
        if here.panel:
            parts["panel-now"] = await self._now(here)
        version = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
        if request.query.get("seen") == version:
            return web.Response(status=204, headers=HEADERS)
        return web.json_response({"version": version, "parts": parts}, headers=HEADERS)

    async def act(self, request: web.Request) -> web.Response:
        """Let a person use a command, a button, a menu or a form of the bot."""
        form = await submitted(request)
        back, body = place_of(form), interaction_of(form)
        seen: dict[str, Any]
        try:
            status, seen = await interactions.used(self.sandbox.discord, body)
        except Refusal as refused:
            status, seen = refused.status, {"message": refused.message}
        opened = seen["modal"]["custom_id"] if status == 200 and "modal" in seen else None
        said = "" if status == 200 else str(seen["message"])
        return self._answered(request, back, said, status < 400, opened)

    async def say(self, request: web.Request) -> web.Response:
        """Post a person's message. Text that begins with a slash is a command still to be chosen, not a message."""
        form = await submitted(request)
        back, typed = place_of(form), str(form.get("typed", ""))
        if typed.startswith("/"):
            raise web.HTTPSeeOther(place.find(self.sandbox.discord, back).url(typed=typed))
        body = {**interaction_of(form), "content": typed.replace("\r\n", "\n").strip()}
        try:
            guilds.speak(self.sandbox.discord, body)
        except Refusal as refused:
            return self._answered(request, back, refused.message, False)
        return self._answered(request, back, "", True)

    async def complete(self, request: web.Request) -> web.Response:
        """Return the choices that the bot offers for an option while it is being typed."""
        form = await submitted(request)
        body = {**interaction_of(form), "kind": "autocomplete", "focused": str(form.get("focused", ""))}
        try:
            status, seen = await interactions.used(self.sandbox.discord, body)
        except Refusal:
            return web.json_response({"choices": []}, headers=HEADERS)
        return web.json_response({"choices": seen.get("choices", []) if status == 200 else []}, headers=HEADERS)

    async def dismiss(self, request: web.Request) -> web.Response:
        """Close an answer that only this person sees."""
        form = await submitted(request)
        # Those that nobody sees any more are forgotten, and so is a text that names none.
        self.dismissed = (
            self.dismissed | {str(form.get("message", ""))}
        ) & self.sandbox.discord.interactions.hidden_ids()
        return self._answered(request, place_of(form), "", True)

    async def do(self, request: web.Request) -> web.Response:
        """Make the control call of the form's name over loopback, as any program would."""
        form = await submitted(request)
        path, body = request.match_info["path"], _body(form)
        method = "PUT" if "/accounts/" in path or path == "limits" else "POST"
        if path in ("faults", "limits") and not body:
            method = "DELETE"
        url = f"http://127.0.0.1:{self.sandbox.port}/control/{path}"
        async with ClientSession() as http, http.request(method, url, json=body) as answer:
            text = await answer.text()
        try:
            told = json.loads(text)
        except ValueError:
            told = {"message": text}
        said = "Done." if answer.ok else str(told.get("message", text))
        return self._answered(request, place_of(form), said, answer.ok)

    async def file(self, request: web.Request) -> web.Response:
        """Return the style or the script."""
        name = request.match_info["name"]
        kind = "text/css" if name.endswith(".css") else "text/javascript"
        return web.Response(text=(HERE / name).read_text(), content_type=kind, headers=HEADERS)

    async def picture(self, request: web.Request) -> web.Response:
        """Return the picture that the CDN would draw; served here, since page views are not requests to a provider."""
        image = picture(request.match_info["seed"], PICTURE_SIZE)
        return web.Response(body=image, content_type="image/png", headers={"Cache-Control": "public, max-age=86400"})

    async def _panel(self, here: Place) -> Markup:
        match here.panel:
            case "servers":
                return servers.panel(self.sandbox.discord, here)
            case "chains":
                return await chains.panel(self.sandbox, here)
            case "profiles":
                return profiles.panel(self.sandbox, here)
            case "faults":
                return faults.panel(self.sandbox, here)
            case _:
                return Markup()

    async def _now(self, here: Place) -> Markup:
        match here.panel:
            case "servers":
                return servers.now(self.sandbox.discord, here)
            case "chains":
                return await chains.now(self.sandbox, here)
            case "faults":
                return faults.now(self.sandbox)
            case _:
                return Markup()

    def _answered(
        self, request: web.Request, back: Mapping[str, str], said: str, ok: bool, opened: str | None = None
    ) -> web.Response:
        """Return the JSON for the script; for a browser without it, redirect to where the form was."""
        here = place.find(self.sandbox.discord, back)
        if "application/json" in request.headers.get("Accept", ""):
            found = place.find(self.sandbox.discord, {**back, "modal": opened or ""})
            shown = modal(self.sandbox.discord, found) if opened else ""
            return web.json_response({"ok": ok, "said": said, "modal": shown}, headers=HEADERS)
        raise web.HTTPSeeOther(here.url(said=said or None, modal=opened))


def _body(form: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool's fields as a control call takes them. Empty fields are left out, but a bio may be empty."""
    switches = {"true": True, "false": False}
    body: dict[str, Any] = {}
    for name, value in form.items():
        text = str(value).replace("\r\n", "\n")
        if name == "back" or (text == "" and name != "bio"):
            continue
        if name in NUMBERS and text.isascii() and text.replace(".", "", 1).isdigit():
            body[name] = float(text)
        elif name == "body":
            body[name] = _json_or_text(text)
        else:
            body[name] = switches.get(text, text) if name in ("pending", "allowed") else text
    return body


def _json_or_text(text: str) -> Any:
    """Return the body of a chosen answer: parsed JSON where it is an object or a list, otherwise the text itself."""
    try:
        found = parsed(text.encode())
    except ValueError:
        return text
    return found if isinstance(found, dict | list) else text
