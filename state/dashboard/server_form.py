"""The form that adds a server by hand."""

import reflex as rx

from gateways import gateways
from locales import _
from models import transaction
from services.core.actors import Actor
from services.core.errors import HoldfastError
from services.servers import servers
from state.core.gate import writes
from state.core.toasts import refuse, say


class ServerFormState(rx.State):
    """The form's state while it is being sent."""

    pending: bool = False

    @writes
    async def create(self, actor: Actor, form: dict[str, str]):
        """Add the server and open its configuration."""
        discord_id, name = form.get("discordServerId", "").strip(), form.get("serverName", "").strip()
        if not discord_id or not name:
            await refuse(self, _("Missing required fields"), _("Please fill in Discord Server ID and Server Name"))
            return
        self.pending = True
        yield
        try:
            async with transaction() as db:
                icon, about = form.get("serverIcon", "").strip(), form.get("description", "").strip()
                added = await servers.add(db, gateways(), actor, discord_id, name, icon or None, about or None)
        except HoldfastError as fault:
            await refuse(self, _("Failed to create server"), fault.message)
        else:
            said = _("{server} is now configured for NFT verification").format(server=added.name)
            await say(self, _("Server created successfully"), said)
            yield rx.redirect(f"/dashboard/server/{added.internal_id}")
        finally:
            self.pending = False
