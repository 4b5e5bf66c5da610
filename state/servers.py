"""The dashboard, the invite list and the form that adds a server by hand."""

import asyncio
from dataclasses import dataclass
from urllib.parse import urlencode

import reflex as rx
from reflex.event import EventSpec

from gateways import gateways
from models import transaction
from services import analytics, servers
from services.actors import Actor
from services.errors import HoldfastError, NotConnected
from settings import settings
from state.gate import actor_of, background, signed_in
from state.session import MEMBER, SessionState
from state.toasts import refuse, say

VISIBLE_AGAIN_SECONDS = 2.0
"""How long after a tab became visible again its servers are read anew."""
WATCH_SECONDS, WATCH_EVERY = 180.0, 3.0
"""After an invite was opened the dashboard looks by itself for this long, this often."""


@dataclass(frozen=True)
class ServerCardView:
    """A server as its card shows it; `internal_id` is 0 while we do not know the server."""

    id: str
    internal_id: int
    name: str
    icon_url: str
    bot_invited: bool
    rules: int
    verified_members: int
    configure_url: str


@dataclass(frozen=True)
class GuildCardView:
    """A guild that the person administers, as the invite list shows it."""

    id: str
    name: str
    icon_url: str
    owner: bool
    has_bot: bool


class DashboardState(rx.State):
    """The servers of a person and three numbers about them."""

    loaded: bool = False
    refreshing: bool = False
    cards: list[ServerCardView] = []
    highlighted: str = ""
    total_verifications: int = 0
    active_rules: int = 0
    connected_servers: int = 0
    _watch: int = 0

    @signed_in
    async def load(self, actor: Actor) -> None:
        """Read everything that the dashboard shows; the server in the address is the highlighted one."""
        await self._read(actor)
        wanted = self.router.url.query_parameters.get("server", "")
        self.highlighted = wanted if any(card.id == wanted for card in self.cards) else ""

    async def _read(self, actor: Actor) -> None:
        async with transaction() as db:
            listed = await servers.list_servers(db, actor)
            totals = await analytics.totals(db, actor)
        self._show(listed)
        self.total_verifications = totals.total_verifications
        self.active_rules = totals.active_rules
        self.connected_servers = totals.connected_servers
        self.loaded = True

    def _show(self, listed: list[servers.ServerView]) -> None:
        self.cards = [_server_card(server) for server in listed]

    @signed_in
    async def reload(self, actor: Actor) -> None:
        """The window got the focus: servers are always stale."""
        async with transaction() as db:
            self._show(await servers.list_servers(db, actor))

    @background
    @signed_in
    async def visibility_changed(self, actor: Actor, hidden: bool) -> None:
        """The tab was hidden or shown; shown again, it is up to date two seconds later."""
        if hidden:
            return
        await asyncio.sleep(VISIBLE_AGAIN_SECONDS)
        async with self:
            await self._read(actor)

    @signed_in
    async def refresh(self, actor: Actor):
        """Ask Discord anew which servers the person runs."""
        self.refreshing = True
        yield
        try:
            async with transaction() as db:
                await servers.sync(db, gateways(), actor)
            await self._read(actor)
        finally:
            self.refreshing = False

    @signed_in
    async def invite(self, actor: Actor, server_id: str) -> list[EventSpec]:
        """Open Discord's page that adds the bot to a server, then watch for it."""
        return [rx.redirect(servers.invite_url(gateways(), server_id), is_external=True), DashboardState.watch()]

    @background
    @signed_in
    async def watch(self, actor: Actor) -> None:
        """Look for servers that appear after an invite, for some minutes and while the dashboard is open."""
        async with self:
            self._watch += 1
            mine = self._watch
        for _ in range(int(WATCH_SECONDS / WATCH_EVERY)):
            await asyncio.sleep(WATCH_EVERY)
            if await actor_of(self) != actor:
                return
            async with transaction() as db:
                listed = await servers.list_servers(db, actor)
            async with self:
                if mine != self._watch or self.router.url.path not in {"/", "/dashboard"}:
                    return
                self._show(listed)


class InviteState(rx.State):
    """The servers that a person may add the bot to."""

    loaded: bool = False
    connected: bool = True
    guilds: list[GuildCardView] = []
    inviting: str = ""

    @signed_in
    async def load(self, actor: Actor) -> None:
        """Ask Discord which servers the person runs."""
        try:
            async with transaction() as db:
                listed = await servers.invite_list(db, gateways(), actor)
        except NotConnected:
            self.connected, self.guilds = False, []
        else:
            self.connected = True
            self.guilds = [
                GuildCardView(guild.id, guild.name, guild.icon_url or "", guild.owner, guild.has_bot)
                for guild in listed
            ]
        finally:
            self.loaded = True

    @signed_in
    async def refresh(self, actor: Actor):
        """Ask again."""
        self.loaded = False
        yield InviteState.load()

    @signed_in
    async def invite(self, actor: Actor, server_id: str):
        """Open Discord's page that adds the bot to a server."""
        self.inviting = server_id
        yield
        name = next((guild.name for guild in self.guilds if guild.id == server_id), None)
        try:
            if name is None:
                await refuse(self, "Invite Failed", "Please try again")
                return
            url = servers.invite_url(gateways(), server_id)
            bot = settings().bot_name
            await say(self, f"Invite {bot}", f"Follow the instructions to add {bot} to {name}")
            yield rx.redirect(url, is_external=True)
            yield InviteState.watch()
        finally:
            self.inviting = ""

    @background
    @signed_in
    async def watch(self, actor: Actor) -> None:
        """Look whether the bot has arrived, for some minutes and while the list is open."""
        before = {guild.id for guild in self.guilds if guild.has_bot}
        for _ in range(int(WATCH_SECONDS / WATCH_EVERY)):
            await asyncio.sleep(WATCH_EVERY)
            if await actor_of(self) != actor:
                return
            async with transaction() as db:
                listed = await servers.list_servers(db, actor)
            arrived = {server.id for server in listed if server.bot_invited} - before
            async with self:
                if self.router.url.path != "/invite":
                    return
                if arrived:
                    self.guilds = [
                        GuildCardView(one.id, one.name, one.icon_url, one.owner, one.has_bot or one.id in arrived)
                        for one in self.guilds
                    ]
                    return


class ServerFormState(rx.State):
    """The form that adds a server by hand."""

    pending: bool = False

    @signed_in
    async def create(self, actor: Actor, form: dict[str, str]):
        """Add the server and open its configuration."""
        discord_id, name = form.get("discordServerId", "").strip(), form.get("serverName", "").strip()
        if not discord_id or not name:
            await refuse(self, "Missing required fields", "Please fill in Discord Server ID and Server Name")
            return
        self.pending = True
        yield
        try:
            async with transaction() as db:
                icon, about = form.get("serverIcon", "").strip(), form.get("description", "").strip()
                added = await servers.add(db, gateways(), actor, discord_id, name, icon or None, about or None)
        except HoldfastError as fault:
            await refuse(self, "Failed to create server", fault.message)
        else:
            await say(self, "Server created successfully", f"{added.name} is now configured for NFT verification")
            yield rx.redirect(f"/dashboard/server/{added.internal_id}")
        finally:
            self.pending = False


class OpenServerState(rx.State):
    """`/dashboard/server/{id}`, which opens that server's configuration."""

    @signed_in
    async def open(self, actor: Actor) -> EventSpec | None:
        """Lead on to the configuration of the server in the path; an unknown one leads to the dashboard."""
        session = await self.get_state(SessionState)
        number = self.router.url.path.rstrip("/").rsplit("/", 1)[-1]
        if session.audience != MEMBER:
            return None
        async with transaction() as db:
            mine = {server.internal_id: server for server in await servers.list_servers(db, actor)}
        server = mine.get(int(number)) if number.isascii() and number.isdigit() else None
        return rx.redirect("/dashboard" if server is None else _server_card(server).configure_url, replace=True)


def _server_card(server: servers.ServerView) -> ServerCardView:
    return ServerCardView(
        id=server.id,
        internal_id=server.internal_id,
        name=server.name,
        icon_url=server.icon_url or "",
        bot_invited=server.bot_invited,
        rules=server.verification_rules_count,
        verified_members=server.verified_members,
        configure_url=configure_url("/server-config", server.internal_id, server.id, server.name),
    )


def configure_url(path: str, internal_id: int | str, discord_id: str, name: str) -> str:
    """A screen about one server, with the query parameters that all of them take."""
    return f"{path}?{urlencode({'serverId': internal_id, 'discordServerId': discord_id, 'serverName': name})}"
