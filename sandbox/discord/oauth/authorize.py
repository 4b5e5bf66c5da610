"""`/discord/oauth2/authorize`: the page where people agree to a sign-in or let the bot into a guild."""

from collections.abc import Mapping
from html import escape
from urllib.parse import urlencode, urlsplit

from aiohttp import web

from sandbox.base.body import is_whole
from sandbox.discord.actions import bots
from sandbox.discord.oauth.oauth import SCOPES, WITHOUT_USER, OAuth
from sandbox.discord.oauth.page_frame import page
from sandbox.discord.world import permissions
from sandbox.discord.world.application import is_redirect
from sandbox.discord.world.audit import By
from sandbox.discord.world.entities import Guild, User

CALLBACK_PATH = "/api/auth/discord/callback"
REMEMBERED = "sandbox_user"


class BadRequest(Exception):
    """A link for which Discord shows an error page. The text is what people read."""


class Authorize:
    """The consent pages."""

    def __init__(self, oauth: OAuth) -> None:
        self.oauth, self.discord = oauth, oauth.discord

    def routes(self) -> list[web.RouteDef]:
        """Return the page's routes, at today's path and at the one that the OpenAPI description still lists."""
        return [web.get("/discord/oauth2/authorize", self.show), web.get("/discord/api/oauth2/authorize", self.show)]

    async def show(self, request: web.Request) -> web.Response:
        """Ask for consent, or approve at once with `&as=<username>`, or deny with `&deny=1`."""
        query = request.query
        try:
            scopes = self._scopes(query)
            redirect = self._redirect(query, scopes)
        except BadRequest as bad:
            return _page("Something is wrong with this link", f"<p>{escape(str(bad))}</p>", 400)
        if query.get("deny") == "1":
            return self._denied(query, redirect)
        user = self._user(query.get("as"))
        if "as" in query and user is None:
            return _page("Nobody", f"<p>There is no person {escape(query['as'])}.</p>", 404)
        if user is None and query.get("prompt") == "none" and not WITHOUT_USER & set(scopes):
            remembered = self._user(request.cookies.get(REMEMBERED))
            if remembered and set(scopes) <= self.oauth.granted_scopes(remembered.id):
                user = remembered
        if "bot" in scopes:
            return self._invited(query, scopes, redirect, user)
        if user is None:
            return self._ask_who(request, scopes)
        return self._approved(query, scopes, redirect, user, None)

    def _scopes(self, query: Mapping[str, str]) -> list[str]:
        if query.get("client_id") != self.discord.bot_id:
            raise BadRequest("Unknown Application: client_id names no application of this sandbox.")
        scopes = query.get("scope", "").split()
        if not scopes:
            raise BadRequest("scope is missing.")
        unknown = [scope for scope in scopes if scope not in SCOPES]
        if unknown:
            raise BadRequest(f"Invalid scope: {', '.join(unknown)}")
        return list(dict.fromkeys(scopes))

    def _redirect(self, query: Mapping[str, str], scopes: list[str]) -> str | None:
        redirect, response_type = query.get("redirect_uri"), query.get("response_type")
        if redirect is None and response_type is None and set(scopes) <= WITHOUT_USER:
            return None
        if response_type != "code":
            raise BadRequest("response_type is missing or not supported; this sandbox does the code grant.")
        if redirect is None or not self._is_registered(redirect):
            known = ", ".join(self.discord.redirects) or f"any address of this machine with path {CALLBACK_PATH}"
            raise BadRequest(f"Invalid OAuth2 redirect_uri. Registered: {known}")
        return redirect

    def _is_registered(self, redirect: str) -> bool:
        """Return whether it is exactly one of the registered addresses or, if there are none, on this machine."""
        return redirect in self.discord.redirects if self.discord.redirects else _is_of_this_machine(redirect)

    def _user(self, username: str | None) -> User | None:
        user = self.discord.user_called(username) if username else None
        return None if user and user.bot else user

    def _denied(self, query: Mapping[str, str], redirect: str | None) -> web.Response:
        if redirect is None:
            return _page("Cancelled", "<p>Nothing was authorized.</p>", 200)
        description = "The resource owner or authorization server denied the request"
        return _to(redirect, {"error": "access_denied", "error_description": description}, query.get("state"))

    def _approved(
        self, query: Mapping[str, str], scopes: list[str], redirect: str | None, user: User, guild: Guild | None
    ) -> web.Response:
        if redirect is None:
            name = f" to <b>{escape(guild.name)}</b>" if guild else ""
            response = _page("Authorized", f"<p>The bot was added{name}. You may close this window.</p>", 200)
        else:
            challenge = query.get("code_challenge")
            pkce = (challenge, query.get("code_challenge_method", "plain")) if challenge else None
            code = self.oauth.issue_code(user.id, scopes, redirect, pkce, guild.id if guild else None)
            answer = {"code": code}
            if guild:
                answer |= {"guild_id": guild.id, "permissions": query.get("permissions", "0")}
            response = _to(redirect, answer, query.get("state"))
        response.set_cookie(REMEMBERED, user.username, path="/discord", httponly=True, samesite="Lax")
        return response

    def _invited(
        self, query: Mapping[str, str], scopes: list[str], redirect: str | None, user: User | None
    ) -> web.Response:
        wanted = query.get("guild_id")
        if wanted is not None and wanted not in self.discord.world.guilds:
            return _page("No such server", "<p>You cannot add the bot to this server.</p>", 403)
        if user is None or wanted is None:
            return self._ask_where(query, user)
        guild = self.discord.world.guilds[wanted]
        if not self._may_invite(user, guild):
            text = f"<p>{escape(user.username)} may not add a bot to {escape(guild.name)}: Manage Server is needed.</p>"
            return _page("Not allowed", text, 403)
        asked = query.get("permissions", "0")
        if not is_whole(asked):
            return _page("Something is wrong with this link", "<p>permissions is a number.</p>", 400)
        bots.add(self.discord, guild, int(asked) & permissions.ALL, By(user.id))
        return self._approved(query, scopes, redirect, user, guild)

    def _may_invite(self, user: User, guild: Guild) -> bool:
        member = guild.members.get(user.id)
        return member is not None and permissions.may_manage(guild, member)

    def _ask_who(self, request: web.Request, scopes: list[str]) -> web.Response:
        choices = "".join(
            f"<li>{_choice(request.query, {'as': user.username}, f'Authorize as {user.username}')}</li>"
            for user in self.discord.world.users.values()
            if not user.bot and not user.crowd
        )
        bot = self.discord.world.users[self.discord.bot_id].username
        body = f"<p>{escape(bot)} asks for <b>{escape(' '.join(scopes))}</b>. Who are you?</p><ul>{choices}</ul>"
        return _page("Authorize access to your account", body + _cancel(request.query), 200)

    def _ask_where(self, query: Mapping[str, str], only: User | None) -> web.Response:
        wanted, fixed = query.get("guild_id"), query.get("disable_guild_select") == "true"
        items: list[str] = []
        for user in [only] if only else self.discord.world.users.values():
            for guild in self.discord.world.guilds.values():
                if self._may_invite(user, guild) and not user.bot and (guild.id == wanted or not (wanted and fixed)):
                    label = f"Add to {guild.name} as {user.username}"
                    items.append(f"<li>{_choice(query, {'as': user.username, 'guild_id': guild.id}, label)}</li>")
        bot = self.discord.world.users[self.discord.bot_id].username
        shown = "".join(items) or "<li>Nobody here may add the bot to that server.</li>"
        asked = escape(query.get("permissions", "0"))
        body = f"<p>{escape(bot)} wants to join a server with permissions <b>{asked}</b>.</p><ul>{shown}</ul>"
        return _page("Add the bot to a server", body + _cancel(query), 200)


def _is_of_this_machine(redirect: str) -> bool:
    if not is_redirect(redirect):
        return False
    parts = urlsplit(redirect)
    loopback = parts.hostname in ("localhost", "127.0.0.1", "::1")
    return loopback and parts.scheme in ("http", "https") and parts.path == CALLBACK_PATH and not parts.fragment


def _choice(query: Mapping[str, str], more: Mapping[str, str], label: str) -> str:
    link = "?" + urlencode({**query, **more})
    return f'<a class="choice" href="{escape(link)}">{escape(label)}</a>'


def _cancel(query: Mapping[str, str]) -> str:
    return f"<p>{_choice(query, {'deny': '1'}, 'Cancel')}</p>"


def _to(redirect: str, answer: Mapping[str, str], state: str | None) -> web.Response:
    parameters = {**answer, **({"state": state} if state is not None else {})}
    joint = "&" if urlsplit(redirect).query else "?"
    return web.Response(status=302, headers={"Location": f"{redirect}{joint}{urlencode(parameters)}"})


def _page(title: str, body: str, status: int) -> web.Response:
    content = f'<div class="card"><h1>{escape(title)}</h1>{body}</div>'
    return web.Response(text=page(title, content, narrow=True), status=status, content_type="text/html")
