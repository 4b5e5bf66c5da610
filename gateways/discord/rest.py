"""Discord's REST API with the bot's token: the few calls that this product makes, each with a time limit."""

import asyncio
import math
import random
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import cast
from urllib.parse import quote

import httpx
import orjson

from gateways.discord.application import Application, SessionStarts, read_application, read_session_starts
from gateways.discord.audit_log import AuditLogCalls
from gateways.discord.channels import ChannelCalls
from gateways.discord.invalid_requests import GuildRests, Refusals, TooManyRefusals
from gateways.discord.rate_limiter import READS, WRITES, Limiter, Ticket, WaitTooLong
from gateways.discord.types import (
    DISCORD,
    BotGuild,
    BotUser,
    Guild,
    GuildMember,
    MemberGone,
    MissingAccess,
    Role,
    read_guild,
    read_member,
    read_roles,
    read_user,
    refusal,
)
from gateways.transport import corrected_clock, provider_reports
from gateways.transport.connections import GatedClient, timeouts, tls
from gateways.transport.errors import (
    LONGEST_PAUSE,
    NotYet,
    ProviderBusy,
    ProviderConfused,
    ProviderDown,
    ProviderError,
    no_answer,
    seconds_to_wait,
)
from gateways.transport.fair_turns import FairGate
from gateways.transport.json_shape import Shape, listed
from gateways.transport.size_limited_client import SizeLimitedClient

VERSION = "1.0"
ATTEMPTS = 5
GUILDS_A_PAGE = 200
CONNECTIONS = 100
MEMBERS = "/guilds/{}/members"
MEMBER = f"{MEMBERS}/{{}}"
MEMBER_ROLE = f"{MEMBER}/roles/{{}}"
MEMBER_SEARCH = f"{MEMBERS}/search"
SEARCHED = 1_000
"""The most members that one search returns."""
LISTS_TRIED_AGAIN = 600.0
"""Seconds until the list of members is requested again after a refusal because the Members intent is off."""
SHARED = 40062
"""Discord's code for the limit of a resource that other bots use too, which does not count as our refusal
(docs/facts.md#discord-error-codes)."""
UNSIGNED_SECONDS = 10.0
"""Seconds for which a 429 that is not Discord's own is remembered."""
PATIENCE = 1.0
"""Seconds that a role write waits for its turn; the role writer can serve other guilds meanwhile."""


class Discord(ChannelCalls, AuditLogCalls):
    """The client for Discord's REST API as the bot; one for each process and event loop.

    See docs/facts.md#discord-roles-and-members. Every call raises a ProviderError when there is no usable answer.
    `deadline` bounds each call in seconds, including waits for limits and repeats. A call that would have to wait
    longer raises ProviderBusy. A write that raises ProviderDown may or may not have happened. A role write that would
    have to wait longer than PATIENCE for its guild's limit raises NotYet, and was not sent.
    """

    def __init__(
        self,
        api_url: str,
        token: str,
        public_url: str,
        *,
        deadline: float = 10.0,
        limiter: Limiter | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__()
        self._api = api_url.rstrip("/")
        self._deadline = deadline
        self._limiter = limiter or Limiter()
        self.turns = self._limiter.turns
        """The requests a second that this process may send."""
        self.refusals = Refusals()
        """The count of Discord's recent refusals."""
        self._unsigned: dict[str, float] = {}
        """Guilds with a recent 429 that was not Discord's own, and when it came (loop time)."""
        self._without_lists: float | None = None
        """When Discord last refused the list of members because the intent for it is off (loop time)."""
        self._date: tuple[datetime, float] | None = None
        """Discord's newest Date header, and when it was received (loop time)."""
        # Discord requires this form of the User-Agent (docs/facts.md#discord-requests).
        headers = {"Authorization": f"Bot {token}", "User-Agent": f"DiscordBot ({public_url}, {VERSION})"}

        def client() -> httpx.AsyncClient:
            return SizeLimitedClient(
                headers=headers, transport=transport, timeout=timeouts(deadline), follow_redirects=False, verify=tls(),
                limits=httpx.Limits(max_connections=CONNECTIONS),
            )  # fmt: skip

        self._http = GatedClient(DISCORD, client, FairGate(CONNECTIONS))

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    async def turn(self) -> None:
        """Wait until one more request may be sent by another client of this process."""
        await self.turns.take(READS, "", math.inf)

    async def guild(self, guild_id: str) -> Guild:
        """Return the guild with its roles (GET /guilds/{guild}).

        Raises GuildGone or MissingAccess when the bot is not in it.
        """
        return read_guild(await self._get("/guilds/{}", guild_id), guild_id)

    async def roles(self, guild_id: str) -> tuple[Role, ...]:
        """Return all roles of a guild, including @everyone (GET /guilds/{guild}/roles)."""
        return read_roles(await self._get("/guilds/{}/roles", guild_id), guild_id)

    async def member(self, guild_id: str, user_id: str) -> GuildMember:
        """Return a member (GET /guilds/{guild}/members/{user}). Raises MemberGone for a user outside the guild."""
        asked_at = time.monotonic()
        answer = await self._get(MEMBER, guild_id, user_id)
        return self._read(answer, user_id, asked_at)

    async def membership(self, guild_id: str, user_id: str) -> GuildMember | None:
        """Return the member, or None only if two different requests show that the user is not in the guild.

        GET /guilds/{guild}/members/{user}. If that is 404, the second request is the list of members from just before
        the user, or a search for their name if our application lacks the Members intent, which the list requires.
        """
        try:
            return await self.member(guild_id, user_id)
        except MemberGone:
            pass
        if not self._is_without_lists():
            try:
                return await self._from_list(guild_id, user_id)
            except MissingAccess:
                if (await self.application()).members_intent:
                    raise
                self._without_lists = asyncio.get_running_loop().time()
        return await self._from_search(guild_id, user_id)

    def _is_without_lists(self) -> bool:
        since = self._without_lists
        return since is not None and asyncio.get_running_loop().time() - since < LISTS_TRIED_AGAIN

    async def _from_list(self, guild_id: str, user_id: str) -> GuildMember | None:
        query, asked_at = f"?limit=1&after={int(user_id) - 1}", time.monotonic()
        page = listed(await self._get(MEMBERS, guild_id, query=query), "the list of members", DISCORD)
        return self._among(page, user_id, asked_at)

    async def _from_search(self, guild_id: str, user_id: str) -> GuildMember | None:
        """Return the member from a search for names that begin with theirs (GET /guilds/{guild}/members/search)."""
        try:
            name = (await self.user(user_id)).username
        except MemberGone:
            return None  # the account was deleted
        query, asked_at = f"?query={quote(name, safe='')}&limit={SEARCHED}", time.monotonic()
        page = listed(await self._get(MEMBER_SEARCH, guild_id, query=query), "the found members", DISCORD)
        found = self._among(page, user_id, asked_at)
        if found is None and len(page) >= SEARCHED:
            raise ProviderConfused(DISCORD, "more members of that name than one search returns")
        return found

    def _among(self, page: Sequence[object], user_id: str, asked_at: float) -> GuildMember | None:
        for one in page:
            if Shape(one, "the member", DISCORD).inner("user").id() == user_id:
                return self._read(one, user_id, asked_at)
        return None

    def _read(self, value: object, user_id: str, asked_at: float) -> GuildMember:
        return replace(read_member(value, user_id), read_at=self._time(), asked_at=asked_at)

    async def user(self, user_id: str) -> BotUser:
        """Return any user (GET /users/{user}). Raises NotThere when there is none."""
        user = read_user(await self._request("GET", "/users/{}", (user_id,), major=""))
        if user.id != user_id:
            raise ProviderConfused(DISCORD, "another user than the one asked for")
        return user

    async def application(self) -> Application:
        """Return our own application (GET /applications/@me)."""
        return read_application(await self._get("/applications/@me"))

    async def session_starts(self) -> SessionStarts:
        """Return the limit on how often the bot may identify to the gateway (GET /gateway/bot)."""
        return read_session_starts(await self._get("/gateway/bot"))

    async def me(self) -> BotUser:
        """Return the bot itself (GET /users/@me)."""
        return read_user(await self._get("/users/@me"))

    async def bot_guilds(self) -> list[BotGuild]:
        """Return the bot's guilds. An absence from this list proves nothing: check with `guild`.

        GET /users/@me/guilds, page by page: 200 at a time, `after` the last id (docs/facts.md#discord-users).
        """
        found: list[BotGuild] = []
        while True:
            after = f"&after={found[-1].id}" if found else ""
            answer = await self._get("/users/@me/guilds", query=f"?limit={GUILDS_A_PAGE}&with_counts=true{after}")
            page = [Shape(item, "a guild", DISCORD) for item in listed(answer, "the list of guilds", DISCORD)]
            guilds = [_bot_guild(item) for item in page]
            if found and guilds and int(guilds[-1].id) <= int(found[-1].id):
                raise ProviderConfused(DISCORD, "the pages of guilds do not move on")
            found += guilds
            if len(guilds) < GUILDS_A_PAGE:
                return found

    async def add_role(self, guild_id: str, user_id: str, role_id: str, reason: str) -> None:
        """Give one role. It is a success if the member already has it.

        PUT of a single role, which changes no other; 204 (docs/facts.md#discord-roles-and-members).
        """
        await self._request("PUT", MEMBER_ROLE, (guild_id, user_id, role_id), reason=reason)

    async def remove_role(self, guild_id: str, user_id: str, role_id: str, reason: str) -> None:
        """Take one role. It is a success if the member does not have it.

        DELETE of a single role, which changes no other; 204 (docs/facts.md#discord-roles-and-members).
        """
        await self._request("DELETE", MEMBER_ROLE, (guild_id, user_id, role_id), reason=reason)

    def _time(self) -> datetime | None:
        """Return Discord's present time, from the newest Date header; None before the first."""
        if self._date is None:
            return None
        said, heard = self._date
        return said + timedelta(seconds=asyncio.get_running_loop().time() - heard)

    async def _get(self, template: str, *ids: str, query: str = "") -> object:
        return await self._request("GET", template, ids, query=query)

    async def _request(
        self,
        method: str,
        template: str,
        ids: tuple[str, ...],
        *,
        query: str = "",
        reason: str | None = None,
        major: str | None = None,
        body: Mapping[str, object] | None = None,
        once: bool = False,
    ) -> object:
        """Send a request, with waits and repeats within the deadline. Raises ProviderError.

        With `once`, a request that may have worked is never repeated.
        """
        if not all(item.isascii() and item.isdigit() for item in ids):
            raise ValueError(f"Discord's ids are digits, not {ids!r}")
        url = self._api + template.format(*ids) + query
        headers = {} if reason is None else {"X-Audit-Log-Reason": audit_reason(reason)}
        content = None if body is None else orjson.dumps(body)
        if content is not None:
            headers["Content-Type"] = "application/json"

        async def sending(http: httpx.AsyncClient) -> httpx.Response:
            return await http.request(method, url, headers=headers, content=content)

        route, top = f"{method} {template}", (ids[0] if ids else "") if major is None else major
        guild_id = self.guild_of(template, ids)
        with provider_reports.watched(provider_reports.DISCORD):
            answer = await self._send(sending, route, top, guild_id, once=once, brief=template == MEMBER_ROLE)
            return self._accept(answer, method, guild_id)

    async def _send(
        self,
        sending: Callable[[httpx.AsyncClient], Coroutine[object, object, httpx.Response]],
        route: str,
        top: str,
        guild_id: str,
        *,
        once: bool,
        brief: bool,
    ) -> httpx.Response:
        """Send until Discord accepts or refuses; `brief` waits only PATIENCE for each turn. Raises ProviderError."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._deadline
        last = "no answer in time"
        for attempt in range(ATTEMPTS):
            until = min(deadline, loop.time() + PATIENCE) if brief else deadline
            try:
                ticket = await self._ticket(route, top, until, guild_id)
            except NotYet as wait:
                if attempt == 0:
                    raise
                # An earlier attempt may have worked, unless Discord refused it.
                kind = ProviderBusy if last == "too many requests" else ProviderDown
                raise kind(DISCORD, last, retry_after=wait.retry_after) from None
            answer = None
            try:
                answer = await self._http.run(sending, self._deadline, within=deadline - loop.time())
                corrected_clock.note(DISCORD, answer.headers)
            except (httpx.TransportError, TimeoutError, httpx.DecodingError) as fault:
                last = no_answer(fault)
            finally:
                self._limiter.answered(ticket, route, top, None if answer is None else _lessons(answer))
            if answer is not None and (said := corrected_clock.http_date(answer.headers.get("date"))) is not None:
                self._date = said, loop.time()
            if answer is not None and answer.status_code == 429:
                last = "too many requests"
                self._too_many(ticket, answer, attempt, deadline, guild_id)
                continue
            if answer is not None and answer.status_code < 500:
                # The proxy in front of Discord refuses everything or nothing, so this answer shows that it does not.
                self._unsigned.clear()
                return answer
            last = last if answer is None else f"HTTP {answer.status_code}"
            # Pauses of about 0.5, 1, 2, 4 s; the jitter keeps many callers from retrying at the same moment.
            pause = 0.5 * 2**attempt * random.uniform(0.8, 1.2)
            if once or attempt + 1 == ATTEMPTS or loop.time() + pause >= deadline:
                break
            await asyncio.sleep(pause)
        raise ProviderBusy(DISCORD, last) if last == "too many requests" else ProviderDown(DISCORD, last)

    def _check_refusals(self, route: str, guild_id: str) -> None:
        """Raise GuildRests or TooManyRefusals if Discord refused too much lately."""
        # Reads of a guild for screens and permission checks continue while all other requests about it pause.
        read = route.startswith("GET /guilds/{}") and not (self.refusals.reads_rest and route == f"GET {MEMBER}")
        if guild_id and not read and (pause := self.refusals.guild_pause(guild_id)) > 0:
            raise GuildRests(DISCORD, "it refused too much in this server", retry_after=pause)
        if (pause := self.refusals.pause()) > 0:
            raise TooManyRefusals(DISCORD, "stopped asking after too many refusals", retry_after=pause)

    async def _ticket(self, route: str, major: str, deadline: float, guild_id: str) -> Ticket:
        self._check_refusals(route, guild_id)
        try:
            lane = WRITES if route.endswith(MEMBER_ROLE) else READS
            ticket = await self._limiter.acquire(route, major, deadline, lane)
        except WaitTooLong as wait:
            raise NotYet(DISCORD, "its rate limit is used up", retry_after=wait.seconds) from None
        try:
            # Earlier requests in the same bucket may have been refused while this one waited.
            self._check_refusals(route, guild_id)
        except ProviderError:
            self._limiter.give_back(ticket)
            raise
        return ticket

    def _too_many(self, ticket: Ticket, answer: httpx.Response, attempt: int, deadline: float, guild_id: str) -> None:
        """Pause the scope of a 429: its bucket, or all requests (docs/facts.md#discord-rate-limits)."""
        provider_reports.count(provider_reports.DISCORD, provider_reports.THROTTLED)
        body = json_of(answer)
        fields = cast("dict[str, object]", body) if isinstance(body, dict) else {}
        scope = "shared" if fields.get("code") == SHARED else answer.headers.get("x-ratelimit-scope")
        said = fields.get("retry_after")
        seconds = float(said) if isinstance(said, int | float) and not isinstance(said, bool) and said >= 0 else None
        if seconds is None:
            seconds = seconds_to_wait(answer.headers.get("retry-after"))
        if seconds is None:
            seconds = float(2**attempt)
        seconds = min(seconds, LONGEST_PAUSE)
        # An answer without any of Discord's own marks comes from the proxy in front of Discord.
        ours = scope is not None or "x-ratelimit-bucket" in answer.headers or "retry_after" in fields
        everything = scope == "global" or "x-ratelimit-global" in answer.headers or fields.get("global") is True
        if scope != "shared" and not everything:
            self.refusals.add(guild_id)
        if everything or (not ours and self._guarded(guild_id)):
            self._limiter.pause_all(seconds)
        else:
            self._limiter.pause(ticket, seconds)
        if asyncio.get_running_loop().time() + seconds >= deadline:
            raise ProviderBusy(DISCORD, "too many requests", retry_after=seconds)

    def _guarded(self, guild_id: str) -> bool:
        """Note a 429 that is not Discord's own; return whether the proxy in front of Discord refuses all our requests.

        That is so if it recently refused requests about more than one guild, and let none through since. With only one
        guild, the fault may lie in its routes, and requests about other guilds need not wait.
        """
        now = asyncio.get_running_loop().time()
        self._unsigned = {place: at for place, at in self._unsigned.items() if now - at < UNSIGNED_SECONDS}
        self._unsigned[guild_id] = now
        return len(self._unsigned) > 1

    def _accept(self, answer: httpx.Response, method: str, guild_id: str) -> object:
        """Return the JSON of a success, or None for a write's 204; raise a refusal as an error."""
        status = answer.status_code
        if status in {401, 403}:
            self.refusals.add(guild_id)
        if status >= 400:
            raise refusal(status, json_of(answer))
        if method in {"PUT", "DELETE"}:
            # A successful write of a role or an overwrite is answered with 204 only
            # (docs/facts.md#discord-roles-and-members).
            if status != 204:
                raise ProviderConfused(DISCORD, f"HTTP {status} to a write")
            return None
        # Discord returns the created or changed object: 201 for a channel, 200 for others
        # (docs/facts.md#discord-channels).
        body = json_of(answer) if status in {200, 201} else None
        if body is None:
            raise ProviderConfused(DISCORD, f"HTTP {status} without usable JSON")
        return body


def _lessons(answer: httpx.Response) -> dict[str, str] | None:
    """Return the headers to learn from; None for a 401, 429 or 5xx without limits, which is not about a bucket."""
    if answer.status_code in {401, 429} or answer.status_code >= 500:
        return dict(answer.headers) if "x-ratelimit-limit" in answer.headers else None
    return dict(answer.headers)


def json_of(answer: httpx.Response) -> object:
    """Return the JSON of an answer, or None if its body is not JSON."""
    try:
        return cast("object", orjson.loads(answer.content))
    except orjson.JSONDecodeError:
        return None


def audit_reason(reason: str) -> str:
    """Return the reason in the form of X-Audit-Log-Reason: percent-encoded UTF-8, 1 to 512 characters.

    See docs/facts.md#discord-audit-log-reasons.
    """
    encoded = quote(reason, safe=" /")
    if len(encoded) <= 512:
        return encoded
    kept = reason[:512]
    while len(quote(kept, safe=" /")) > 512:
        kept = kept[:-1]
    return quote(kept, safe=" /")


def _bot_guild(item: Shape) -> BotGuild:
    count = "approximate_member_count"
    members = item.number(count) if item.has(count) else 0
    return BotGuild(item.id(), item.text("name"), item.text_or_none("icon"), members)
