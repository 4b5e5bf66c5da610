"""The server that a screen is about, the open tab, and the content above the tabs."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, TypeVar

import reflex as rx
from reflex.event import EventSpec

from gateways import gateways
from locales import _
from models import transaction
from models.db.row_ids import row_id
from services.core.actors import Actor
from services.core.errors import Conflict, NotFound, ProviderUnavailable
from services.guilds import permissions
from services.servers import servers
from state.core.errors import UNREADABLE, sentence_of
from state.core.gate import signed_in
from state.core.retry import ask
from state.dashboard.invite import InviteTabs
from state.dashboard.servers import configure_url

TABS = ("rules", "members", "activity", "health", "channel", "move", "developers")
"""Values of `tab` in the URL; any other value means the first."""
T = TypeVar("T")
_log = logging.getLogger(__name__)


class ServerPageState(InviteTabs, rx.State):
    """The server in the URL, which the services check at every use."""

    server_id: int = 0
    discord_id: str = ""
    name: str = ""
    config_url: str = ""
    add_rule_url: str = ""
    tab: str = TABS[0]
    loaded: bool = False
    missing: bool = False
    fault: str = ""
    """Why not even the server's name could be read; otherwise empty."""
    bot_invited: bool = True
    bot_turns: int = 0
    """How often the bot has joined or left while the page was open: the open tab is then read again."""
    _read_for: int = 0

    def _read_address(self) -> None:
        asked, before = self.router.url.query_parameters, self.server_id
        self.server_id = row_id(asked.get("serverId", "")) or 0
        # Of another server nothing is known before it is read.
        self.bot_invited = self.bot_invited or self.server_id != before
        tab = asked.get("tab", "")
        self.tab = tab if tab in TABS else TABS[0]
        # A link can carry any name, so the name comes from the service.
        self._name(asked.get("discordServerId", ""), self.name if self.server_id == before else "")

    def _name(self, discord_id: str, name: str) -> None:
        self.discord_id, self.name = discord_id[:32], name[:100]
        self.config_url = configure_url("/server-config", self.server_id, self.discord_id, self.name)
        self.add_rule_url = configure_url("/add-verification-rule", self.server_id, self.discord_id, self.name)

    @signed_in
    async def load(self, actor: Actor):
        """Read the server. A change of tab keeps it, because each tab checks the permission itself."""
        before, discord_id, name = self.tab, self.discord_id, self.name
        self._read_address()
        if self._read_for != self.server_id:
            self.loaded = self.missing = False
            yield
        elif self.tab != before and not self.missing:
            self._name(discord_id, name)
            return
        self.fault = ""
        try:
            await self._read(actor)
        except UNREADABLE as fault:
            self.fault = sentence_of(fault)
        # Not in a `finally`: a load that the next navigation cancels has read nothing, so that one has to read.
        self.loaded, self._read_for = True, self.server_id

    async def _read(self, actor: Actor) -> None:
        try:
            server = await ask(lambda db: servers.get(db, gateways(), actor, self.server_id))
        except NotFound:
            self.missing = True
            return
        except ProviderUnavailable:
            # Discord is away. Its last answer is enough for the name; each tab checks the permission itself.
            async with transaction() as db:
                mine = {one.internal_id: one for one in await servers.list_servers(db, actor)}
            if (server := mine.get(self.server_id)) is None:
                raise
        self._name(server.id, server.name)
        self.missing, self.bot_invited = False, server.bot_invited

    @signed_in
    async def look(self, actor: Actor) -> None:
        """Read the server again if the bot has joined or left it since; the screen calls this every few seconds."""
        if not self.loaded or self.missing or self.fault or self._read_for != self.server_id:
            return
        async with transaction() as db:
            stored = await permissions.find_server(db, self.server_id)
        before = self.bot_invited
        if stored is not None and stored.bot_invited == before:
            return
        await after_change(self._read(actor))
        if self.bot_invited != before:
            self.bot_turns += 1

    @signed_in
    async def invite(self, actor: Actor) -> EventSpec | None:
        """Open Discord's page that adds the bot to this server."""
        if self._has_just_opened(self.discord_id):
            return None
        return self._tab(servers.invite_url(gateways(), self.discord_id), self.discord_id)

    def _lost(self) -> None:
        """Show that the server does not exist, or that the person does not run it."""
        self.missing = True


async def open_tab(state: rx.State, *tabs: str) -> ServerPageState | None:
    """Return the page if one of these tabs of a server is open on it; every tab's load begins here."""
    page = await state.get_state(ServerPageState)
    known = page.loaded and not page.missing and page._read_for == page.server_id
    return page if known and page.tab in tabs else None


async def page_of(state: rx.State, shown_for: int) -> ServerPageState:
    """Return the page, for a change to the server with this internal id, whose content the state shows (0: none).

    Raises Conflict if the URL names another server by now: what was typed for one server is never saved in another.
    """
    page = await state.get_state(ServerPageState)
    if shown_for not in {0, page.server_id}:
        raise Conflict(_("This page shows another server now, so nothing was changed."))
    return page


async def after_change(read: Awaitable[object]) -> None:
    """Read a tab again after a change. A failure leaves the tab as it was, because the toast says what was changed."""
    try:
        await read
    except UNREADABLE as fault:
        _log.info("tab not read after a change reason=%s", sentence_of(fault))


class ServerTab(rx.State, mixin=True):
    """A tab of a server: the server whose content it shows, or why it shows none.

    It names itself in `_tab` and reads its content in `_read`, or has a `load` of its own.
    """

    shown_for: int = 0
    """The internal id of the server whose content is shown; 0 at first."""
    fault: str = ""
    """Why nothing could be read; otherwise empty."""
    _tab: ClassVar[str] = ""
    """The name of the tab in the URL, one of TABS."""

    @signed_in
    async def load(self, actor: Actor) -> None:
        """Read the content if the tab is open."""
        page = await open_tab(self, self._tab)
        if page is not None:
            await self._read(actor, page)

    async def _read(self, actor: Actor, page: ServerPageState) -> object:
        raise TypeError("a tab reads its own content")

    async def _page(self) -> ServerPageState:
        """Return the page, for a change to the server that the tab shows. Raises Conflict as `page_of` does."""
        return await page_of(self, self.shown_for)

    async def _tried(self, page: ServerPageState, read: Callable[[Any], Awaitable[T]]) -> T | None:
        """Return what `read` returns for the tab; None if the server no longer exists, or after a failure.

        `read` gets a transaction. If the tab already shows its content, that stays, and the failure is raised for a
        toast.
        """
        self.fault = ""
        try:
            return await ask(read)
        except NotFound:
            page._lost()
        except UNREADABLE as fault:
            if self.shown_for == page.server_id:
                raise
            self.fault = sentence_of(fault)
        return None
