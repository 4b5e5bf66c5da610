"""The Verification channel tab: the state of the channel and its panel, and where alerts are posted."""

from dataclasses import dataclass

import reflex as rx

from gateways import gateways
from models import transaction
from services.core.actors import Actor
from services.core.errors import HoldfastError, NotFound, NotSignedIn
from services.guilds import alert_channel, channels
from services.runtime import rate_limits
from state.core.gate import public, signed_in
from state.core.toasts import refuse, say
from state.dashboard.server_page import ServerPageState, open_tab


@dataclass(frozen=True)
class ChannelOptionView:
    """A channel to choose."""

    id: str
    name: str


class ChannelsState(rx.State):
    """The Verification channel tab of a server's configuration."""

    shown_for: int = 0
    name: str = ""
    """The channel's name; empty if the bot sees no such channel."""
    faults: list[str] = []
    problem: str = ""
    """Why the channel's state is unknown; else empty."""
    options: list[ChannelOptionView] = []
    log_channel_id: str = ""
    chosen: str = ""
    working: bool = False
    saving: bool = False

    @signed_in
    async def load(self, actor: Actor) -> None:
        """Read the channel's state if its tab is open."""
        page = await open_tab(self, "channel")
        if page is not None:
            await self._read(actor, page)

    async def _read(self, actor: Actor, page: ServerPageState) -> None:
        try:
            async with transaction() as db:
                seen = await channels.view(db, gateways(), actor, page.server_id)
        except NotFound:
            page._lost()
            return
        except NotSignedIn:
            raise
        except HoldfastError as fault:
            self.problem, self.name, self.faults, self.options = fault.message, "", [], []
        else:
            self.problem, self.name, self.faults = "", seen.name or "", list(seen.faults)
            self.options = [ChannelOptionView(one.id, one.name) for one in seen.options]
            known = {one.id for one in seen.options}
            self.log_channel_id = seen.log_channel_id if seen.log_channel_id in known else ""
            self.chosen = self.log_channel_id
        self.shown_for = page.server_id

    @signed_in
    async def repair(self, actor: Actor):
        """Create the channel, or fix what is wrong with it."""
        self.working = True
        yield
        try:
            page = await self.get_state(ServerPageState)
            await rate_limits.spend(rate_limits.RECHECKS, actor.user_id)
            async with transaction() as db:
                outcome = await channels.create_or_repair(db, gateways(), actor, page.server_id)
            done = " ".join(outcome.done) or "Everything was right already."
            await say(self, f"#{outcome.channel_name} is ready", done)
            await self._read(actor, page)
        finally:
            self.working = False

    @public
    def choose(self, channel_id: str) -> None:
        """Select another log channel, without saving it."""
        self.chosen = channel_id[:32]

    @signed_in
    async def save(self, actor: Actor):
        """Save the selected log channel."""
        self.saving = True
        yield
        try:
            page = await self.get_state(ServerPageState)
            async with transaction() as db:
                name = await alert_channel.choose(db, gateways(), actor, page.server_id, self.chosen or None)
        except HoldfastError as fault:
            if isinstance(fault, NotSignedIn):
                raise
            await refuse(self, "Log channel not changed", fault.message)
        else:
            self.log_channel_id = self.chosen
            told = f"They are posted in #{name} from now on." if name else "They are shown on the Health tab only."
            await say(self, "Alerts" if name else "No more alerts in Discord", told)
        finally:
            self.saving = False
