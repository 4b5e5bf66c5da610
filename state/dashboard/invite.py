"""The invite list: servers that a person may add the bot to."""

import time
from dataclasses import replace
from math import inf

import reflex as rx
from reflex.event import EventSpec

from gateways import gateways
from locales import _
from models import transaction
from services.core.actors import Actor
from services.core.errors import NotConnected
from services.runtime.database_faults import UNANSWERED
from services.servers import servers
from services.servers.servers import GuildView
from settings import settings
from state.core.gate import background, signed_in
from state.core.retry import ask
from state.core.timing import INVITE_AGAIN_SECONDS, INVITE_POLL_SECONDS, INVITE_WATCHED_SECONDS
from state.core.toasts import refuse, say
from state.core.watchers import Watcher


class InviteTabs(rx.State, mixin=True):
    """Tabs of Discord that add the bot to a server; a double click opens one.

    The browser sends the second click once the first one is handled, so a flag for that time would not notice it.
    """

    _opened: tuple[str, float] = ("", -inf)
    """The server of the newest tab, and when it was opened."""

    def _tab(self, url: str, server_id: str = "") -> EventSpec:
        self._opened = server_id, time.monotonic()
        return rx.redirect(url, is_external=True)

    def _has_just_opened(self, server_id: str = "") -> bool:
        of, at = self._opened
        return of == server_id and time.monotonic() - at < INVITE_AGAIN_SECONDS


class NavigationInviteState(InviteTabs, rx.State):
    """The navigation's invite link."""

    @signed_in
    async def open(self, actor: Actor) -> EventSpec | None:
        """Open Discord's page that adds the bot to a server, which is chosen there."""
        return None if self._has_just_opened() else self._tab(servers.navigation_invite_url(gateways()))


class InviteState(InviteTabs, rx.State):
    """The invite list, and the server being invited to."""

    loaded: bool = False
    failed: bool = False
    connected: bool = True
    guilds: list[GuildView] = []
    inviting: str = ""

    @signed_in
    async def load(self, actor: Actor) -> None:
        """Read from Discord which servers the person runs."""
        self.failed = True

        try:
            self.guilds = await ask(lambda db: servers.invite_list(db, gateways(), actor))
        except NotConnected:
            self.connected, self.guilds = False, []
        else:
            self.connected = True
        self.loaded, self.failed = True, False

    @signed_in
    async def refresh(self, actor: Actor):
        """Read the list again."""
        self.loaded = self.failed = False
        yield InviteState.load()

    @signed_in
    async def invite(self, actor: Actor, server_id: str):
        """Open Discord's page that adds the bot to a server."""
        if self._has_just_opened(server_id):
            return
        self.inviting = server_id
        yield
        name = next((guild.name for guild in self.guilds if guild.id == server_id), None)
        try:
            if name is None:
                await refuse(self, _("Invite Failed"), _("Please try again"))
                return
            url = servers.invite_url(gateways(), server_id)
            bot = settings().bot_name
            said = _("Follow the instructions to add {bot} to {server}").format(bot=bot, server=name)
            await say(self, _("Invite {bot}").format(bot=bot), said)
            yield self._tab(url, server_id)
            yield InviteState.watch()
        finally:
            self.inviting = ""

    @background
    @signed_in
    async def watch(self, actor: Actor) -> None:
        """Check for some minutes, while the list is open, whether the bot has joined."""
        before = {guild.id for guild in self.guilds if guild.has_bot}
        watcher = Watcher(self, actor, "invite", every=INVITE_POLL_SECONDS, lasts=INVITE_WATCHED_SECONDS)
        async for _turn in watcher.looks(pages=("/invite",)):
            try:
                async with transaction() as db:
                    listed = await servers.list_servers(db, actor)
            except UNANSWERED:
                continue  # The database may be back for the next step.
            arrived = {server.id for server in listed if server.bot_invited} - before
            async with self:
                if arrived:
                    self.guilds = [replace(one, has_bot=one.has_bot or one.id in arrived) for one in self.guilds]
                    return
