"""The outcome part of the rule form: the role, the grace time, shadow, and taking over a role."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import reflex as rx

from locales import _
from models import transaction
from services.core.actors import Actor
from services.core.discord_text import DEFAULT_COLOR
from services.guilds import permissions
from services.rules.rules import RuleView
from services.servers import servers
from state.core.errors import UNREADABLE
from state.core.gate import signed_in
from state.core.retry import ask
from state.dashboard.server_page import ServerPageState
from state.rule_form.condition_draft import as_typed

NOW, GRACE = "now", "grace"
SHADOW, PAUSED = "shadow", "paused"
DEFAULT_GRACE_HOURS = "24"
_SHOWN_DIGITS = 5
"""Digits of a role's id that an option shows when other roles have its name."""


@dataclass(frozen=True)
class RoleOptionView:
    """A role to choose, with the reason if it cannot be given."""

    id: str
    name: str
    color: str
    label: str
    assignable: bool


class RoleOptions(rx.State, mixin=True):
    """The fields after the conditions. A form that uses them implements `_recheck`, `_read` and `_failed`."""

    role_id: str = ""
    role_name: str = ""
    role_color: str = DEFAULT_COLOR
    roles: list[RoleOptionView] = []
    roles_loaded: bool = False
    roles_failed: bool = False
    roles_fault: str = ""
    """Why the roles could not be read; otherwise empty."""
    removal: str = NOW
    grace_hours: str = DEFAULT_GRACE_HOURS
    shadow: bool = False
    takes_over: bool = False
    delegated: bool = False
    paused: bool = False
    _stored_state: str = ""

    def _recheck(self) -> None:
        """React to a changed choice."""
        raise TypeError("a form says what depends on its fields")

    async def _read(self, db: Any, actor: Actor, page: ServerPageState, number: str) -> None:
        """Read the server and its roles, and a stored rule unless `number` is empty."""
        raise TypeError("a form reads what it shows")

    def _failed(self, fault: Exception) -> None:
        """Note what could not be read."""
        raise TypeError("a form says what it shows without its roles")

    @signed_in
    async def load_roles(self, actor: Actor):
        """Read the server's roles again after a failure."""
        self.roles_loaded = self.roles_failed = False
        yield
        await self._load_roles(actor, await self.get_state(ServerPageState))

    @signed_in
    async def look_for_bot(self, actor: Actor) -> None:
        """Read the roles once the bot is in the server; the form calls this every few seconds while it is away."""
        page = await self.get_state(ServerPageState)
        async with transaction() as db:
            stored = await permissions.find_server(db, page.server_id)
        if stored is not None and stored.bot_invited and not page.bot_invited:
            await self._load_roles(actor, page)

    async def _load_roles(self, actor: Actor, page: ServerPageState) -> None:
        try:
            await ask(lambda db: self._read(db, actor, page, ""))
            self.roles_failed = False
        except UNREADABLE as fault:
            self._failed(fault)
        finally:
            self.roles_loaded = True

    def _clear_outcome(self) -> None:
        self.role_id, self.role_name, self.role_color = "", "", DEFAULT_COLOR
        self.roles, self.roles_loaded, self.roles_failed, self.roles_fault = [], False, False, ""
        self.removal, self.grace_hours = NOW, DEFAULT_GRACE_HOURS
        self.shadow, self.takes_over, self.paused, self._stored_state = False, False, False, ""
        self.delegated = False

    def _show_outcome(self, rule: RuleView) -> None:
        self.role_id, self.role_name, self.role_color = rule.role_id, rule.role_name, rule.role_color
        self.removal, self.takes_over, self._stored_state = rule.removal.mode, rule.takes_over, rule.state
        self.delegated = rule.delegated
        self.shadow, self.paused = rule.state == SHADOW, rule.state == PAUSED
        self.grace_hours = str(rule.removal.hours) if rule.removal.mode == GRACE else DEFAULT_GRACE_HOURS

    def _offer(self, found: Sequence[servers.RoleView]) -> None:
        before = {role.id: role for role in self.roles}
        stored = RoleOptionView(self.role_id, self.role_name, self.role_color, "", False)
        known = {role.id for role in found}
        # Without an option of its own, a deleted role would look as if no role were chosen.
        gone = [before.get(one, stored) for one in self._chosen_roles() if one and one not in known]
        options = options_of(found)
        self.roles = [*options, *(_deleted(role) for role in dict.fromkeys(gone))]
        self._name_role()

    def _chosen_roles(self) -> list[str]:
        """Return the ids of the roles that are chosen, with empty ones where none is."""
        return [self.role_id]

    def _hours(self) -> int:
        """Return the grace time in hours; -1 if it is not a number of at least 1."""
        if self.removal != GRACE:
            return 0
        hours = self.grace_hours
        return int(hours) if hours.isascii() and hours.isdigit() and hours.strip("0") else -1

    def _new_state(self) -> str:
        """Return the new state of a stored rule; empty if unchanged."""
        if self.paused or self.shadow == (self._stored_state == SHADOW):
            return ""
        return SHADOW if self.shadow else "active"

    @signed_in
    async def choose_role(self, actor: Actor, value: str) -> None:
        """Choose the role that holders get."""
        self.role_id = value[:32]
        self._name_role()
        self._recheck()

    def _name_role(self) -> None:
        role = next((one for one in self.roles if one.id == self.role_id), None)
        if role is not None:
            self.role_name, self.role_color = role.name, role.color

    @signed_in
    async def choose_removal(self, actor: Actor, value: str) -> None:
        """Choose whether a role is taken at once or after a grace time."""
        if value in {NOW, GRACE}:
            self.removal = value
            self._recheck()

    @signed_in
    async def enter_grace(self, actor: Actor, value: float | None) -> None:
        """Set the grace time in hours."""
        self.grace_hours = as_typed(value)
        self._recheck()

    @signed_in
    async def switch_shadow(self, actor: Actor, value: bool) -> None:
        """Switch the rule to shadow or back."""
        self.shadow = value
        self._recheck()

    @signed_in
    async def switch_takes_over(self, actor: Actor, value: bool) -> None:
        """Set whether the rule also covers members who have the role from somebody else."""
        self.takes_over = value
        self._recheck()

    @signed_in
    async def switch_delegated(self, actor: Actor, value: bool) -> None:
        """Set whether vaults that delegated to members' wallets count too."""
        self.delegated = value
        self._recheck()


def options_of(found: Sequence[servers.RoleView]) -> list[RoleOptionView]:
    """Return a server's roles to choose from, those that cannot be given with the reason."""
    names = Counter(role.name for role in found)
    return [_option(role, alone=names[role.name] == 1) for role in found]


def _option(role: servers.RoleView, *, alone: bool) -> RoleOptionView:
    # Several roles can have one name; Discord's own "Copy Role ID" then says which is which.
    name = role.name if alone else f"{role.name} (…{role.id[-_SHOWN_DIGITS:]})"
    label = name if role.assignable else f"{name} – {role.short_reason}"
    color = f"#{role.color:06x}" if role.color else DEFAULT_COLOR
    return RoleOptionView(role.id, role.name, color, label, role.assignable)


def _deleted(role: RoleOptionView) -> RoleOptionView:
    # Translators: said of a role, after its name and a dash.
    reason = _("deleted in Discord")
    return replace(role, label=f"{role.name} – {reason}", assignable=False)
