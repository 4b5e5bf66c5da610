"""The protected roles of a server, below its rules: which, since when and by whom."""

from dataclasses import dataclass

import reflex as rx

from gateways import gateways
from locales import _
from models import transaction
from services.core.actors import Actor
from services.core.relative_times import ago
from services.servers import protection
from services.servers.protection import ProtectedRole
from state.core.dialog import Dialog
from state.core.gate import public, signed_in, writes
from state.core.toasts import say
from state.dashboard.server_page import ServerPageState, ServerTab, after_change, open_tab


@dataclass(frozen=True)
class ProtectedRoleView:
    """A role that nobody loses; `since` says by whom and when, or is empty if the log does not reach that far back."""

    id: str
    name: str
    color: str
    since: str


class ProtectedRolesState(Dialog, ServerTab, rx.State):
    """The protected roles, the selected next one, and the dialog before a protection ends."""

    rows: list[ProtectedRoleView] = []
    ids: list[str] = []
    """The ids of the protected roles, for the texts about rules."""
    offered: list[ProtectedRoleView] = []
    chosen: str = ""
    asked_name: str = ""
    working: bool = False

    @signed_in
    async def load(self, actor: Actor) -> None:
        """Read them if the Rules tab is open."""
        self.asked = ""
        page = await open_tab(self, "rules")
        if page is not None:
            await self._read(actor, page)

    async def _read(self, actor: Actor, page: ServerPageState) -> None:
        found = await self._tried(page, lambda db: protection.view(db, gateways(), actor, page.server_id))
        if found is None:
            self.rows, self.ids, self.offered = [], [], []
            return
        self.rows, self.offered = [_row(role) for role in found.roles], [_row(role) for role in found.offered]
        self.ids = [role.id for role in self.rows]
        if all(role.id != self.chosen for role in self.offered):
            self.chosen = ""
        self.shown_for = page.server_id

    async def _change(self, actor: Actor, role_id: str, protected: bool) -> None:
        page = await self._page()
        async with transaction() as db:
            await protection.of_role(db, gateways(), actor, page.server_id, role_id, protected)
        await after_change(self._read(actor, page))

    @public
    def choose(self, role_id: str) -> None:
        """Select another role, without protecting it."""
        self.chosen = role_id[:32]

    @writes
    async def protect(self, actor: Actor):
        """Protect the selected role."""
        if not self.chosen:
            return
        self.working = True
        yield
        try:
            await self._change(actor, self.chosen, True)
            await say(self, _("Protected"), _("The role is taken from nobody until you end it."))
        finally:
            self.working = False

    @public
    def ask(self, role_id: str) -> None:
        """Open the dialog that explains the end of a protection."""
        role = next((role for role in self.rows if role.id == role_id), None)
        if role is not None:
            self.asked, self.asked_name = role.id, role.name

    @writes
    async def end(self, actor: Actor):
        """End the protection that the dialog is about."""
        role_id, self.asked = self.asked, ""
        if not role_id:
            return
        self.working = True
        yield
        try:
            await self._change(actor, role_id, False)
            await say(self, _("No longer protected"), _("Members keep and lose the role by the rules again."))
        finally:
            self.working = False


def _row(role: ProtectedRole) -> ProtectedRoleView:
    since = _("Protected by {name}, {ago}").format(name=role.by, ago=ago(role.since)) if role.by and role.since else ""
    return ProtectedRoleView(role.role_id, role.role_name, role.role_color, since)
