"""A role in another's place: the form, the rules that change, and the dialog before it."""

from dataclasses import dataclass

import reflex as rx

from gateways import gateways
from locales import _, ngettext
from models import transaction
from services.core.actors import Actor
from services.core.errors import HoldfastError
from services.engine.previews.proposals import NewRole
from services.rules.replacements import new_role
from services.rules.replacements.contract_migrations import LeftRule
from services.rules.replacements.new_role import RoleOrder
from services.runtime import rate_limits
from services.servers import servers
from state.core.dialog import Dialog
from state.core.form_fault import FormFault
from state.core.gate import public, signed_in, writes
from state.core.toasts import say
from state.dashboard.server_page import ServerPageState, page_of
from state.rule_form.preview import RulePreviewState
from state.rule_form.role_options import options_of
from state.server.protected_roles import ProtectedRolesState
from state.server.rules import RulesState


@dataclass(frozen=True)
class RoleChoiceView:
    """A role to choose; the label of one that no rule can give says why."""

    id: str
    label: str
    assignable: bool = True


class NewRoleState(FormFault, Dialog, rx.State):
    """The card of the Rules tab about a role that takes another one's place."""

    is_open: bool = False
    opening: bool = False
    old_roles: list[RoleChoiceView] = []
    new_roles: list[RoleChoiceView] = []
    old: str = ""
    new: str = ""

    looking: bool = False
    looked: bool = False
    """Whether the sentences are about the form as it is filled in."""
    summary: str = ""
    rules: list[str] = []
    left: list[LeftRule] = []

    working: bool = False
    _opened_for: int = 0
    """The server for which the form was opened."""

    @signed_in
    async def load(self, actor: Actor) -> None:
        """Close the dialog, and the form if it is about another server."""
        self.asked = ""
        if (await self.get_state(ServerPageState)).server_id != self._opened_for:
            self.is_open, self.old_roles, self.new_roles = False, [], []
            self._changed()

    @signed_in
    async def open_form(self, actor: Actor, role_id: str):
        """Show the form, for this role if a rule gives it, and read the server's roles."""
        self.opening = True
        self._changed()
        yield
        try:
            page, rules = await self.get_state(ServerPageState), await self.get_state(RulesState)
            async with transaction() as db:
                found = await servers.roles(db, gateways(), actor, page.discord_id)
            there = {one.id: one.name for one in found}
            given = {row.role_id: row.role_name for row in rules.rows}
            self.old_roles = [
                RoleChoiceView(one, there.get(one) or _("{role} (deleted)").format(role=name))
                for one, name in given.items()
            ]
            self.new_roles = [RoleChoiceView(one.id, one.label, one.assignable) for one in options_of(found)]
            self.old = role_id if role_id in given else next((one.id for one in self.old_roles), "")
            self.new, self.is_open, self._opened_for = "", True, page.server_id
        finally:
            self.opening = False

    @public
    def close(self) -> None:
        """Hide the form."""
        self.is_open = False
        self._changed()

    def _changed(self) -> None:
        self.looked, self.rules, self.left, self.asked = False, [], [], ""
        self._clear_fault()

    @public
    def set_old(self, role_id: str) -> None:
        """Choose the role that is replaced."""
        self.old = role_id[:32]
        self._changed()

    @public
    def set_new(self, role_id: str) -> None:
        """Choose the role that takes its place."""
        self.new = role_id[:32]
        self._changed()

    def _order(self) -> RoleOrder:
        return RoleOrder(self.old, self.new)

    @signed_in
    async def look(self, actor: Actor):
        """Show which rules would give the new role; changes nothing."""
        self._changed()
        if not self.new:
            self.fault_field, self.fault_text = "newRole", _("Choose the role that takes its place.")
            return
        self.looking = True
        yield
        try:
            page = await page_of(self, self._opened_for)
            await rate_limits.spend(rate_limits.PREVIEWS, actor.user_id)
            async with transaction() as db:
                found = await new_role.preview(db, gateways(), actor, page.server_id, self._order())
        except HoldfastError as fault:
            await self._show_fault(_("Could not look at the rules"), fault)
        else:
            self.looked = True
            self.rules = [one.name for one in found.rules]
            self.left = list(found.left)
            told = ngettext(
                "{count} member has {old} from us. They get {new} first, and lose {old} after that.",
                "{count} members have {old} from us. They get {new} first, and lose {old} after that.",
                found.members,
            )
            self.summary = told.format(count=found.members, old=found.old_name, new=found.new_name)
        finally:
            self.looking = False

    @signed_in
    async def ask(self, actor: Actor):
        """Open the dialog that shows what the change would do to members."""
        if not self.looked or not self.rules:
            return
        self.asked = self.new
        page, impact = await page_of(self, self._opened_for), await self.get_state(RulePreviewState)
        impact._ask(NewRole(page.server_id, self._order()))
        yield RulePreviewState.watch

    @writes
    async def confirm(self, actor: Actor):
        """Let the rules give the new role."""
        if not self.asked:
            return
        self.asked, self.working = "", True
        yield
        try:
            page = await page_of(self, self._opened_for)
            async with transaction() as db:
                done = await new_role.apply(db, gateways(), actor, page.server_id, self._order())
            self.is_open = False
            self._changed()
            count = len(done.rules)
            title = ngettext("{count} rule changed", "{count} rules changed", count).format(count=count)
            await say(self, title, _("Members are being checked now. Activity has the way back."))
        finally:
            self.working = False
        yield RulesState.load
        # The rules decide which roles can be protected.
        yield ProtectedRolesState.load
