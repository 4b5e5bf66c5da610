"""The Verification channel tab: the state of the channel and its panel, and where alerts are posted."""

from typing import ClassVar

import reflex as rx

from gateways import gateways
from locales import _, sentences
from models import transaction
from services.core.actors import Actor
from services.core.errors import HoldfastError
from services.guilds import alert_channel, verification_channel
from services.guilds.verification_channel import ChannelOption
from services.runtime import rate_limits
from state.core.gate import public, writes
from state.core.toasts import refuse, say
from state.dashboard.server_page import ServerPageState, ServerTab, after_change
from state.server.panel import PanelState

CREATE, REPAIR, CHECK = "create", "repair", "check"
"""What the button does, by what was shown: no channel, one with problems, or one without."""


class ChannelsState(ServerTab, rx.State):
    """The Verification channel tab of a server's configuration."""

    name: str = ""
    """The channel's name; empty if the bot sees no such channel."""
    faults: list[str] = []
    options: list[ChannelOption] = []
    log_channel_id: str = ""
    chosen: str = ""
    working: bool = False
    saving: bool = False
    _tab: ClassVar[str] = "channel"

    async def _read(self, actor: Actor, page: ServerPageState) -> None:
        seen = await self._tried(page, lambda db: verification_channel.view(db, gateways(), actor, page.server_id))
        if seen is None:
            return
        self.name, self.faults = seen.name or "", list(seen.faults)
        self.options = list(seen.options)
        known = {one.id for one in seen.options}
        stored = seen.log_channel_id if seen.log_channel_id in known else ""
        # A choice that is not saved yet stays.
        if self.shown_for != page.server_id or self.chosen == self.log_channel_id or self.chosen not in {"", *known}:
            self.chosen = stored
        self.log_channel_id = stored
        (await self.get_state(PanelState))._open(page.server_id, seen)
        self.shown_for = page.server_id

    def _needs(self) -> str:
        if self.faults:
            return REPAIR
        return CHECK if self.name else CREATE

    @writes
    async def repair(self, actor: Actor, what: str):
        """Create the channel, or fix what is wrong with it; nothing if the screen shows by now that it is done.

        The second click of a double click would say that there was nothing to repair, and hide what was done.
        """
        if what != self._needs():
            return
        self.working = True
        yield
        try:
            page = await self._page()
            await rate_limits.spend(rate_limits.RECHECKS, actor.user_id)
            async with transaction() as db:
                outcome = await verification_channel.create_or_repair(db, gateways(), actor, page.server_id)
            self.name, self.faults = outcome.channel_name, []
            done = sentences(*outcome.done) or _("There was nothing to repair.")
            await say(self, _("#{channel} is ready").format(channel=outcome.channel_name), done)
            await after_change(self._read(actor, page))
        finally:
            self.working = False

    @public
    def choose(self, channel_id: str) -> None:
        """Select another log channel, without saving it."""
        self.chosen = channel_id[:32]

    @writes
    async def save(self, actor: Actor):
        """Save the selected log channel; the second click of a double click would greet it again."""
        self.saving = True
        yield
        try:
            page = await self._page()
            if self.chosen == self.log_channel_id:
                return
            async with transaction() as db:
                name = await alert_channel.choose(db, gateways(), actor, page.server_id, self.chosen or None)
        except HoldfastError as fault:
            await refuse(self, _("Log channel not changed"), fault.message)
        else:
            self.log_channel_id = self.chosen
            told = (
                _("They are posted in #{channel} from now on.").format(channel=name)
                if name
                else _("They are shown on the Health tab only.")
            )
            await say(self, _("Alerts") if name else _("No more alerts in Discord"), told)
        finally:
            self.saving = False
