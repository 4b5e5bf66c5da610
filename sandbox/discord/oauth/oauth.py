"""OAuth2: codes, grants and the token calls (facts: Discord's OAuth2 page and RFC 6749 section 5.2)."""

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_plus

from aiohttp import web

from sandbox.base.body import form
from sandbox.discord.answers.response import answered
from sandbox.discord.rest.call import VERSIONS
from sandbox.discord.world import shapes
from sandbox.discord.world.entities import Grant, Guild
from sandbox.discord.world.protocols import Discord

SCOPES = (
    "identify", "email", "guilds", "guilds.join", "guilds.members.read", "connections", "openid",
    "bot", "applications.commands", "applications.commands.permissions.update", "role_connections.write",
)  # fmt: skip
# These are about the application alone; they need no redirect, and the page ends with "Authorized".
WITHOUT_USER = {"bot", "applications.commands"}
CODE_SECONDS = 60
TOKEN_SECONDS = 604_800


class TokenRefusal(Exception):
    """A token call that fails, with RFC 6749's error name."""

    def __init__(self, error: str, description: str, status: int = 400) -> None:
        super().__init__(description)
        self.status = status
        self.body = {"error": error, "error_description": description}


@dataclass(frozen=True)
class Code:
    """What a user agreed to, until its single exchange. `until` is monotonic seconds."""

    user_id: str
    scopes: tuple[str, ...]
    redirect_uri: str
    challenge: str | None
    challenge_method: str
    guild_id: str | None
    until: float


class OAuth:
    """Codes in memory, grants in the world."""

    def __init__(self, discord: Discord) -> None:
        self.discord = discord
        self._codes: dict[str, Code] = {}

    def issue_code(
        self,
        user_id: str,
        scopes: Sequence[str],
        redirect_uri: str,
        challenge: tuple[str, str] | None = None,
        guild_id: str | None = None,
    ) -> str:
        """Return a single-use code, valid for 60 s; `challenge` is PKCE's (challenge, method)."""
        now, code = time.monotonic(), secrets.token_urlsafe(22)
        # Codes of sign-ins that nobody finishes would otherwise stay until a reset.
        self._codes = {known: one for known, one in self._codes.items() if one.until >= now}
        value, method = challenge or (None, "plain")
        until = now + CODE_SECONDS
        self._codes[code] = Code(user_id, tuple(scopes), redirect_uri, value, method, guild_id, until)
        return code

    def granted_scopes(self, user_id: str) -> set[str]:
        """Return all scopes of the user's live grants."""
        mine = (grant for grant in self.discord.world.grants.values() if grant.user_id == user_id)
        return {scope for grant in mine if grant.expires_at > time.time() for scope in grant.scopes}

    def bearer(self, token: str) -> Grant | None:
        """Return the grant of a live access token, or None."""
        grant = self.discord.world.grants.get(token)
        return grant if grant and grant.expires_at > time.time() else None

    @property
    def waiting(self) -> int:
        """The number of codes in memory."""
        return len(self._codes)

    def forget(self) -> None:
        """Drop the codes that wait for their exchange."""
        self._codes.clear()

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of token and revocation, with and without the version in the path."""
        return [
            web.post(base + path, handler)
            for base in VERSIONS
            for path, handler in (("/oauth2/token", self._token), ("/oauth2/token/revoke", self._revoke))
        ]

    async def _token(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, self._granted)

    async def _revoke(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, self._revoked)

    async def _answer(self, request: web.Request, verb: Any) -> web.StreamResponse:
        faulty = await self.discord.faulty(request)
        if faulty is not None:
            return faulty
        try:
            if request.content_type != "application/x-www-form-urlencoded":
                raise TokenRefusal("invalid_request", "The content type is application/x-www-form-urlencoded.")
            form = await _form(request)
            self._authenticate(request.headers.get("Authorization"), form)
            return answered(verb(form), 200, {"Cache-Control": "no-store"})
        except TokenRefusal as refusal:
            return answered(refusal.body, refusal.status)

    def _authenticate(self, header: str | None, form: Mapping[str, str]) -> None:
        given = form.get("client_id", ""), form.get("client_secret", "")
        if header and header.startswith("Basic "):
            try:
                name, _, secret = base64.b64decode(header[6:], validate=True).decode().partition(":")
            except ValueError:
                raise TokenRefusal("invalid_client", "The Authorization header is not a Basic one.", 401) from None
            given = unquote_plus(name), unquote_plus(secret)
        settings = self.discord.sandbox.settings
        own = settings["DISCORD_CLIENT_ID"], settings["DISCORD_CLIENT_SECRET"]
        if not all(hmac.compare_digest(a.encode(), b.encode()) for a, b in zip(given, own, strict=True)):
            raise TokenRefusal("invalid_client", "Invalid client credentials.", 401)

    def _granted(self, form: Mapping[str, str]) -> dict[str, Any]:
        match form.get("grant_type"):
            case "authorization_code":
                return self._exchanged(form)
            case "refresh_token":
                return self._refreshed(form)
            case "client_credentials":
                return self._own(form)
            case None:
                raise TokenRefusal("invalid_request", 'Missing "grant_type" in request.')
            case _:
                raise TokenRefusal("unsupported_grant_type", "Grant type is not supported.")

    def _exchanged(self, form: Mapping[str, str]) -> dict[str, Any]:
        code = self._codes.pop(form.get("code", ""), None)
        if code is None or code.until < time.monotonic():
            raise TokenRefusal("invalid_grant", 'Invalid "code" in request.')
        if form.get("redirect_uri") != code.redirect_uri:
            raise TokenRefusal("invalid_grant", 'Invalid "redirect_uri" in request.')
        if code.challenge is not None and not _verifies(code, form.get("code_verifier", "")):
            raise TokenRefusal("invalid_grant", 'Invalid "code_verifier" in request.')
        answer = self._issue(code.user_id, list(code.scopes))
        guild = self.discord.world.guilds.get(code.guild_id or "")
        return {**answer, "guild": _guild(guild)} if guild else answer

    def _own(self, form: Mapping[str, str]) -> dict[str, Any]:
        """Return a token for the application's owner, without a refresh token (RFC 6749 section 4.4)."""
        scopes = form.get("scope", "").split()
        if not scopes or not set(scopes) <= set(SCOPES) - WITHOUT_USER:
            raise TokenRefusal("invalid_scope", "The requested scope is invalid, unknown, or malformed.")
        answer = self._issue(self.discord.sandbox.people[0].id, scopes)
        del answer["refresh_token"]
        return answer

    def _refreshed(self, form: Mapping[str, str]) -> dict[str, Any]:
        wanted = form.get("refresh_token", "")
        for grant in self.discord.world.grants.values():
            if wanted and hmac.compare_digest(grant.refresh.encode(), wanted.encode()):
                self.discord.world.remove(grant)
                return self._issue(grant.user_id, grant.scopes)
        raise TokenRefusal("invalid_grant", 'Invalid "refresh_token" in request.')

    def _issue(self, user_id: str, scopes: list[str]) -> dict[str, Any]:
        access, refresh = secrets.token_urlsafe(22), secrets.token_urlsafe(22)
        self.discord.world.save(Grant(access, refresh, user_id, scopes, time.time() + TOKEN_SECONDS))
        return {
            "token_type": "Bearer",
            "access_token": access,
            "expires_in": TOKEN_SECONDS,
            "refresh_token": refresh,
            "scope": " ".join(scopes),
        }

    def _revoked(self, form: Mapping[str, str]) -> dict[str, Any]:
        """Revoke every grant of the token's user; an unknown token gets the same answer (RFC 7009)."""
        if not form.get("token"):
            raise TokenRefusal("invalid_request", 'Missing "token" in request.')
        grants = self.discord.world.grants
        owners = {grant.user_id for grant in grants.values() if form["token"] in (grant.id, grant.refresh)}
        self.discord.world.remove(*[grant for grant in grants.values() if grant.user_id in owners])
        return {}


async def _form(request: web.Request) -> dict[str, str]:
    try:
        return {key: str(value) for key, value in (await form(request)).items()}
    except ValueError:
        raise TokenRefusal("invalid_request", "The body is not a form.") from None


def _verifies(code: Code, verifier: str) -> bool:
    if code.challenge_method == "S256":
        verifier = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    return hmac.compare_digest(verifier.encode(), (code.challenge or "").encode())


def _guild(guild: Guild) -> dict[str, Any]:
    """Return the guild in the token answer: here role permissions are a number, with the text beside it."""
    shape = shapes.guild(guild)
    shape["roles"] = [
        {**role, "permissions": int(role["permissions"]), "permissions_new": role["permissions"]}
        for role in shape["roles"]
    ]
    return shape
