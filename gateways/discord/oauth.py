"""Signing in with Discord by OAuth2: the code grant with PKCE, tokens renewed and revoked, the bot's invite URL."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from urllib.parse import quote, urlencode

import httpx

from gateways.discord.own_guilds import LONGEST_WINDOW, WINDOW, Listing, OwnGuilds
from gateways.discord.rest import VERSION, json_of
from gateways.discord.types import DISCORD, OAuthUser, UserGuild, refusal
from gateways.transport import provider_reports
from gateways.transport.connections import GatedClient, timeouts, tls
from gateways.transport.errors import (
    ProviderBusy,
    ProviderConfused,
    ProviderDown,
    ProviderError,
    ProviderRefused,
    Unauthorized,
    no_answer,
    seconds_to_wait,
)
from gateways.transport.fair_turns import FairGate
from gateways.transport.json_shape import Shape, listed
from gateways.transport.size_limited_client import SizeLimitedClient

with warnings.catch_warnings(record=True):
    # The import warns, despite every filter, that httpx will have a successor.
    from authlib.integrations.base_client import OAuthError
    from authlib.integrations.httpx_client import AsyncOAuth2Client

DEADLINE = 10.0
"""Seconds for each call."""
CONNECTIONS = 100
LONGEST_TOKEN = timedelta(days=3_650)
"""A token that claims to be valid for longer is not believed; Discord's are valid for a week."""


@dataclass(frozen=True, slots=True)
class TokenSet:
    """Discord's tokens for a sign-in; `scope` is space-separated, `expires_at` aware UTC."""

    access_token: str
    refresh_token: str
    expires_at: datetime
    scope: str

    def __repr__(self) -> str:
        """Return a text without the tokens, so that no log ever shows them."""
        return f"TokenSet(expires_at={self.expires_at.isoformat()}, scope={self.scope!r})"


class GrantRefused(ProviderRefused):
    """The code is invalid, used or too old, or the grant no longer exists: `invalid_grant`, and no other refusal.

    See docs/facts.md#discord-oauth2.
    """


_KINDS: Mapping[str, type[ProviderRefused]] = {"invalid_grant": GrantRefused, "invalid_client": Unauthorized}
"""What the errors of RFC 6749 §5.2 mean; the others say nothing about the grant."""


_AUTHLIBS_CLIENT: Any = AsyncOAuth2Client
"""Authlib's client has no types; everything that it returns is checked below."""


class _SignInClient(_AUTHLIBS_CLIENT, SizeLimitedClient):
    """Authlib's client, with bounded answers."""


class DiscordOAuth:
    """OAuth2 with Discord (docs/facts.md#discord-oauth2, docs/facts.md#discord-users).

    Every call raises a ProviderError when there is no usable answer.
    """

    def __init__(
        self,
        *,
        client_id: str,
        client_secret: str,
        authorize_url: str,
        token_url: str,
        revoke_url: str,
        api_url: str,
        public_url: str,
    ) -> None:
        self._client_id = client_id
        self._authorize, self._token, self._revoke = authorize_url, token_url, revoke_url
        self._api = api_url.rstrip("/")
        self._own_guilds = OwnGuilds()
        agent = {"User-Agent": f"DiscordBot ({public_url}, {VERSION})"}
        common: dict[str, Any] = {
            "headers": agent,
            "timeout": timeouts(DEADLINE),
            "verify": tls(),
            "limits": httpx.Limits(max_connections=CONNECTIONS),
        }

        def oauth() -> Any:
            client: Any = cast("Any", _SignInClient)(
                client_id=client_id,
                client_secret=client_secret,
                token_endpoint_auth_method="client_secret_basic",
                revocation_endpoint_auth_method="client_secret_basic",
                code_challenge_method="S256",
                **common,
            )
            for hook in ("access_token_response", "refresh_token_response"):
                client.register_compliance_hook(hook, _only_oauth_answers)
            return client

        self._oauth: GatedClient[Any] = GatedClient("Discord's sign-in", oauth, FairGate(CONNECTIONS))
        self._http = GatedClient(
            "Discord's sign-in", lambda: SizeLimitedClient(follow_redirects=False, **common), FairGate(CONNECTIONS)
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._oauth.close()
        await self._http.close()

    def authorize_url(self, state: str, verifier: str, scopes: Sequence[str], redirect_uri: str) -> str:
        """Return the address of Discord's consent page for a code grant with PKCE S256.

        See docs/facts.md#discord-oauth2.
        """
        url, _ = self._oauth.client.create_authorization_url(
            self._authorize, state=state, code_verifier=verifier, scope=" ".join(scopes), redirect_uri=redirect_uri
        )
        # Discord requires %20 between scopes; a literal plus sign is already %2B.
        return str(url).replace("+", "%20")

    def bot_invite_url(self, guild_id: str | None, permissions: int) -> str:
        """Return the address of Discord's page that adds the bot, to a fixed guild if one is given.

        See docs/facts.md#discord-oauth2.
        """
        query = {"client_id": self._client_id, "scope": "bot applications.commands", "permissions": str(permissions)}
        if guild_id is not None:
            query |= {"guild_id": guild_id, "disable_guild_select": "true"}
        return f"{self._authorize}?{urlencode(query, quote_via=quote)}"

    async def exchange(self, code: str, verifier: str, redirect_uri: str) -> TokenSet:
        """Exchange a code for tokens. Raises GrantRefused when the code is invalid, used or too old.

        POST to the token address, grant_type=authorization_code (docs/facts.md#discord-oauth2).
        """
        return await self._tokens(
            "", grant_type="authorization_code", code=code, code_verifier=verifier, redirect_uri=redirect_uri
        )

    async def refresh(self, token_set: TokenSet) -> TokenSet:
        """Return new tokens; keep their refresh token. Raises GrantRefused when the grant no longer exists.

        POST to the token address, grant_type=refresh_token.
        """
        former = token_set.refresh_token
        return await self._tokens(former, grant_type="refresh_token", refresh_token=former)

    async def _tokens(self, fallback: str, **grant: str) -> TokenSet:
        said = await self._guarded(self._oauth, lambda client: client.fetch_token(self._token, **grant))
        return _token_set(said, fallback=fallback)

    async def revoke(self, token: str) -> None:
        """End the whole grant that the token belongs to.

        POST to the revocation address. All tokens of that sign-in become invalid (docs/facts.md#discord-oauth2).
        """
        answer: httpx.Response = await self._guarded(
            self._oauth, lambda client: client.revoke_token(self._revoke, token=token)
        )
        if answer.status_code != 200:
            raise _fault(answer) or ProviderConfused(DISCORD, f"HTTP {answer.status_code} to a revocation")

    async def me(self, access_token: str) -> OAuthUser:
        """Return the token's user (GET /users/@me). Raises Unauthorized when the token is no longer valid."""
        user = Shape(_usable(await self._answer("/users/@me", access_token)), "the user", DISCORD)
        return OAuthUser(
            id=user.id(),
            username=user.text("username"),
            global_name=user.text_or_none("global_name"),
            avatar=user.text_or_none("avatar"),
            discriminator=user.text("discriminator"),
        )

    async def my_guilds(self, access_token: str, *, max_age: float = WINDOW) -> list[UserGuild]:
        """Return the person's guilds. Raises Unauthorized when the token is no longer valid.

        GET /users/@me/guilds: at most 200, so one page (docs/facts.md#discord-users). The answer may be up to `max_age`
        seconds old, because Discord answers only about one request a second.
        """
        answer = await self._own_guilds.of(access_token, lambda: self._own_list(access_token), max_age=max_age)
        items = [Shape(item, "a guild", DISCORD) for item in listed(answer, "the list of guilds", DISCORD)]
        return [
            UserGuild(
                id=item.id(),
                name=item.text("name"),
                icon=item.text_or_none("icon"),
                owner=item.flag("owner"),
                permissions=item.number("permissions"),
            )
            for item in items
        ]

    async def _own_list(self, access_token: str) -> Listing:
        answer = await self._answer("/users/@me/guilds", access_token)
        return Listing(_usable(answer), _window(answer))

    async def _answer(self, path: str, access_token: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {access_token}"}
        answer: httpx.Response = await self._guarded(
            self._http, lambda client: client.get(self._api + path, headers=headers)
        )
        if fault := _fault(answer):
            raise fault
        return answer

    async def _guarded(self, client: GatedClient[Any], call: Callable[[Any], Any]) -> Any:
        """Await a call within the deadline, and turn its exceptions into ours."""
        try:
            return await client.run(call, DEADLINE, within=DEADLINE)
        except OAuthError as fault:
            status = 401 if fault.error == "invalid_client" else 400
            kind = _KINDS.get(str(fault.error), ProviderRefused)
            raise kind(DISCORD, f"sign-in refused ({fault.error})", status=status) from None
        except (httpx.TransportError, httpx.DecodingError, TimeoutError) as fault:
            raise ProviderDown(DISCORD, no_answer(fault)) from None


def _usable(answer: httpx.Response) -> object:
    body = json_of(answer)
    if answer.status_code != 200 or body is None:
        raise ProviderConfused(DISCORD, f"HTTP {answer.status_code} without usable JSON")
    return body


def _window(answer: httpx.Response) -> float:
    """Return the seconds until Discord allows the next request of this kind, according to its headers.

    See docs/facts.md#discord-rate-limits.
    """
    try:
        if int(answer.headers["x-ratelimit-remaining"]) > 0:
            return WINDOW
        return min(max(0.0, float(answer.headers["x-ratelimit-reset-after"])), LONGEST_WINDOW)
    except (KeyError, ValueError):
        return WINDOW


def _fault(answer: httpx.Response) -> ProviderError | None:
    status = answer.status_code
    if status == 429:
        provider_reports.count(provider_reports.DISCORD, provider_reports.THROTTLED)
        wait = seconds_to_wait(answer.headers.get("retry-after"))
        return ProviderBusy(DISCORD, "too many requests", retry_after=wait)
    if status >= 500:
        return ProviderDown(DISCORD, f"HTTP {status}")
    if status == 401:
        return Unauthorized(DISCORD, "the sign-in has ended", status=status)
    return refusal(status, json_of(answer)) if status >= 400 else None


def _only_oauth_answers(answer: httpx.Response) -> httpx.Response:
    """Return an OAuth2 answer for Authlib: a token, or an error in the form of RFC 6749 §5.2. Raise for any other."""
    body = json_of(answer)
    if isinstance(body, dict):
        if answer.status_code == 200 and "access_token" in body:
            _token_set(cast("object", body), fallback="")
            return answer
        if answer.status_code in {400, 401} and "error" in body:
            return answer
    raise _fault(answer) or ProviderConfused(DISCORD, f"HTTP {answer.status_code} without a token")


def _token_set(value: object, *, fallback: str) -> TokenSet:
    """Parse a token answer; its `expires_in` is in seconds from now."""
    token = Shape(value, "the token", DISCORD)
    if token.text("token_type").lower() != "bearer" or not token.text("access_token"):
        raise ProviderConfused(DISCORD, "the token is not a bearer token")
    seconds = token.number("expires_in")
    if not 0 < seconds <= LONGEST_TOKEN.total_seconds():
        raise ProviderConfused(DISCORD, "the token has no usable expires_in")
    return TokenSet(
        access_token=token.text("access_token"),
        refresh_token=token.text_or_none("refresh_token") or fallback,
        expires_at=datetime.now(UTC) + timedelta(seconds=seconds),
        scope=token.text("scope"),
    )
