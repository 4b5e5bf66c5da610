"""The dashboard's list of a person's servers."""

import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import reflex as rx
from reflex.event import EventSpec

from gateways import gateways
from locales import ngettext
from models import transaction
from models.db.row_ids import row_id
from services.core.actors import Actor
from services.runtime import rate_limits
from services.runtime.database_faults import UNANSWERED
from services.servers import servers
from state.core.gate import background, signed_in, writes
from state.core.retry import ask
from state.core.session import MEMBER, SessionState
from state.core.timing import INVITE_POLL_SECONDS, INVITE_WATCHED_SECONDS, SERVERS_STALE_SECONDS, VISIBLE_AGAIN_SECONDS
from state.core.watchers import Watcher
from state.dashboard.analytics import AnalyticsState
from state.dashboard.invite import InviteTabs

DASHBOARD_PATHS = ("/", "/dashboard")


@dataclass(frozen=True)
class ServerCardView:
    """A server's card; `internal_id` is 0 while the server is unknown to us."""

    id: str
    internal_id: int
    name: str
    icon_url: str
    bot_invited: bool
    rules: int
    verified_members: int
    held_back: str
    """The removals that wait for the admin's decision, as a sentence; otherwise empty."""
    configure_url: str


class DashboardState(InviteTabs, rx.State):
    """The list of a person's servers."""

    loaded: bool = False
    failed: bool = False
    refreshing: bool = False
    cards: list[ServerCardView] = []
    has_bot: bool = False
    """Whether the bot is in one of these servers."""
    highlighted: str = ""
    _read_at: float = 0.0

    @signed_in
    async def load(self, actor: Actor) -> None:
        """Read the servers; highlight the one in the URL."""
        await self._read(actor)
        wanted = self.router.url.query_parameters.get("server", "")
        self.highlighted = wanted if any(card.id == wanted for card in self.cards) else ""

    async def _read(self, actor: Actor) -> None:
        self.failed = not self.loaded

        async def read(db: Any) -> list[servers.ServerView]:
            await servers.ask_again(db, gateways(), actor)
            return await servers.list_servers(db, actor)

        self._show(await ask(read))
        self.failed, self.loaded, self._read_at = False, True, time.monotonic()

    def _show(self, listed: list[servers.ServerView]) -> None:
        self.cards = [_server_card(server) for server in listed]
        self.has_bot = any(server.bot_invited for server in listed)

    @signed_in
    async def focused(self, actor: Actor) -> None:
        """Read stale servers again when the window gets the focus; servers are always stale."""
        if time.monotonic() - self._read_at >= SERVERS_STALE_SECONDS:
            await self._read(actor)

    @background
    @signed_in
    async def visibility_changed(self, actor: Actor, hidden: bool):
        """Read servers and numbers again two seconds after the tab is shown."""
        if hidden:
            return
        watcher = Watcher(self, actor, "visible", every=VISIBLE_AGAIN_SECONDS)
        async for _ in watcher.looks(pages=DASHBOARD_PATHS):
            async with self:
                await self._read(actor)
            yield AnalyticsState.load()

    @writes
    async def refresh(self, actor: Actor):
        """Read from Discord again which servers the person runs."""
        self.refreshing = True
        yield
        try:
            await rate_limits.spend(rate_limits.RECHECKS, actor.user_id)
            async with transaction() as db:
                await servers.sync(db, gateways(), actor)
            await self._read(actor)
        finally:
            self.refreshing = False
        yield AnalyticsState.load()

    @signed_in
    async def invite(self, actor: Actor, server_id: str) -> list[EventSpec]:
        """Open Discord's page that adds the bot to a server, then watch for it."""
        if self._has_just_opened(server_id):
            return []
        return [self._tab(servers.invite_url(gateways(), server_id), server_id), DashboardState.watch()]

    @background
    @signed_in
    async def watch(self, actor: Actor):
        """Check for some minutes, while the dashboard is open, for servers that appear after an invite."""
        watcher = Watcher(self, actor, "servers", every=INVITE_POLL_SECONDS, lasts=INVITE_WATCHED_SECONDS)
        async for _ in watcher.looks(pages=DASHBOARD_PATHS):
            try:
                async with transaction() as db:
                    listed = await servers.list_servers(db, actor)
            except UNANSWERED:
                continue  # The database may be back for the next step.
            async with self:
                before = {card.id for card in self.cards if card.bot_invited}
                self._show(listed)
            if {server.id for server in listed if server.bot_invited} != before:
                yield AnalyticsState.load()


class OpenServerState(rx.State):
    """The route `/dashboard/server/{id}`, which leads to that server's configuration."""

    @signed_in
    async def open(self, actor: Actor) -> EventSpec | None:
        """Redirect to the configuration of the server in the path, or to the dashboard if it is unknown."""
        session = await self.get_state(SessionState)
        number = self.router.url.path.rstrip("/").rsplit("/", 1)[-1]
        if session.audience != MEMBER:
            return None

        mine = {server.internal_id: server for server in await ask(lambda db: servers.list_servers(db, actor))}
        server = mine.get(row_id(number) or 0)
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
        held_back=_held_back(server.held_back),
        configure_url=configure_url("/server-config", server.internal_id, server.id, server.name),
    )


def _held_back(roles: int) -> str:
    if roles == 0:
        return ""
    said = ngettext(
        "Removals of a role wait for your decision", "Removals of {count} roles wait for your decision", roles
    )
    return said.format(count=roles)


def configure_url(path: str, internal_id: int | str, discord_id: str, name: str) -> str:
    """Return the URL of a screen about one server, with the query parameters that these screens share."""
    return f"{path}?{urlencode({'serverId': internal_id, 'discordServerId': discord_id, 'serverName': name})}"
