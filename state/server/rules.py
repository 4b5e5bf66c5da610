"""A server's rules: the list, and what can be done to each."""

from collections.abc import Mapping
from dataclasses import dataclass

import reflex as rx

from gateways import gateways
from models import transaction
from services.core.actors import Actor
from services.core.chain_names import chain_title
from services.engine.preview import Proposal
from services.rules import limits, rules
from services.rules.wording import Line
from services.runtime import rate_limits
from state.core.gate import public, signed_in
from state.core.toasts import say
from state.dashboard.server_page import ServerPageState, ServerTab, open_tab
from state.rule_form.preview import ImpactState
from state.server.protected_roles import ProtectedRolesState

PAUSE, RESUME, ACTIVATE, DELETE = "pause", "resume", "activate", "delete"
ACTIVATE_ALL = "activate all"
_SEVERAL = -1
"""Stands for several rules where a dialog is about one."""
AT_ONCE = "Taken as soon as it is no longer earned"


@dataclass(frozen=True)
class RuleRowView:
    """A rule in the list; `state` is active, shadow or paused."""

    id: int
    name: str
    lines: list[Line]
    chains: list[str]
    role_id: str
    role_name: str
    role_color: str
    state: str
    pause_reason: str
    removal: str
    takes_over: bool
    delegated: bool
    holders: int
    edit_url: str


class RulesState(ServerTab, rx.State):
    """The Rules tab of a server's configuration."""

    rows: list[RuleRowView] = []
    room: str = ""
    """How much of its limits the server has used."""
    working: int = 0
    asked_id: int = 0
    asked_what: str = ""
    asked_title: str = ""
    asked_text: str = ""
    asked_action: str = ""

    @rx.var
    def waiting(self) -> int:
        """How many rules are in shadow."""
        return len(self._in_shadow())

    @signed_in
    async def load(self, actor: Actor) -> None:
        """Read the rules if their tab is open."""
        page = await open_tab(self, "rules")
        if page is None:
            return
        self.asked_id = 0
        if (found := await self._tried(page, lambda: _read(actor, page.server_id))) is not None:
            self._show(found, page)

    def _show(self, found: tuple[list[rules.RuleView], str], page: ServerPageState) -> None:
        listed, self.room = found
        self.rows, self.shown_for = [_row(rule, page) for rule in listed], page.server_id

    async def _reread(self, actor: Actor) -> None:
        page = await self.get_state(ServerPageState)
        self._show(await _read(actor, page.server_id), page)

    @signed_in
    async def ask(self, actor: Actor, rule_id: int, what: str):
        """Open the dialog that explains what pausing, resuming, activating or deleting a rule does, and to whom."""
        row = next((row for row in self.rows if row.id == rule_id), None)
        if row is None or what not in _QUESTIONS:
            return
        wording = _QUESTIONS[what]
        self.asked_id, self.asked_what, self.asked_action = rule_id, what, wording.action
        self.asked_title = wording.title.format(name=row.name)
        protected = row.role_id in (await self.get_state(ProtectedRolesState)).ids
        self.asked_text = _consequence(row, protected) if what == DELETE else wording.text
        impact = await self.get_state(ImpactState)
        changes = {} if what == DELETE else {"state": wording.state}
        impact._ask(Proposal(rule_id=rule_id, changes=changes, deletes=what == DELETE))
        yield ImpactState.watch

    @signed_in
    async def ask_all(self, actor: Actor):
        """Open the dialog that explains what activating all rules in shadow does, and to whom."""
        ids = self._in_shadow()
        if not ids:
            return
        count = "1 rule" if len(ids) == 1 else f"{len(ids)} rules"
        self.asked_id, self.asked_what, self.asked_action = _SEVERAL, ACTIVATE_ALL, f"Activate {count}"
        self.asked_title = f"What {count} would do"
        self.asked_text = "The rules in shadow, as if all of them were active. Only members with a wallet can gain."
        page, impact = await self.get_state(ServerPageState), await self.get_state(ImpactState)
        impact._ask(Proposal(server_id=page.server_id, activates=ids))
        yield ImpactState.watch

    def _in_shadow(self) -> tuple[int, ...]:
        return tuple(row.id for row in self.rows if row.state == "shadow")

    @signed_in
    async def imported(self, actor: Actor, count: int) -> None:
        """Show the rules that an import has just made."""
        await self._reread(actor)
        made = "1 rule is" if count == 1 else f"{max(0, count)} rules are"
        await say(self, "Rules imported", f"{made} in shadow: nothing is given or taken yet.")

    @public
    def keep(self, is_open: bool) -> None:
        """Close the dialog."""
        if not is_open:
            self.asked_id = 0

    @signed_in
    async def confirm(self, actor: Actor):
        """Do what the dialog is about."""
        rule_id, self.asked_id = self.asked_id, 0
        if rule_id == _SEVERAL and self.asked_what == ACTIVATE_ALL:
            await self._activate_all(actor)
            yield ProtectedRolesState.load
            return
        wording = _QUESTIONS.get(self.asked_what)
        if rule_id <= 0 or wording is None:
            return
        self.working = rule_id
        yield
        try:
            async with transaction() as db:
                if self.asked_what == DELETE:
                    await rules.delete(db, gateways(), actor, rule_id)
                else:
                    await rules.change(db, gateways(), actor, rule_id, {"state": wording.state})
            await self._reread(actor)
            await say(self, wording.done, wording.after)
        finally:
            self.working = 0
        # The rules decide which roles can be protected.
        yield ProtectedRolesState.load

    async def _activate_all(self, actor: Actor) -> None:
        page = await self.get_state(ServerPageState)
        await rate_limits.spend(rate_limits.RECHECKS, actor.user_id)
        async with transaction() as db:
            count = await rules.activate_all(db, gateways(), actor, page.server_id, self._in_shadow())
        await self._reread(actor)
        done = "Rule activated" if count == 1 else f"{count} rules activated"
        await say(self, done, "Members are being checked now." if count else "No rule was in shadow any more.")


async def _read(actor: Actor, server_id: int) -> tuple[list[rules.RuleView], str]:
    """Return the rules, and how much of its limits the server has used."""
    async with transaction() as db:
        listed = await rules.list_rules(db, gateways(), actor, server_id)
        return list(listed), (await limits.room(db, server_id)).words


@dataclass(frozen=True)
class _Question:
    """One action on a rule, with the texts before and after it."""

    title: str
    text: str
    action: str
    state: str
    done: str
    after: str


_QUESTIONS: Mapping[str, _Question] = {
    PAUSE: _Question(
        "Pause {name}?", "A paused rule gives and takes nothing. Roles it gave stay as they are.",
        "Pause rule", "paused", "Rule paused", "Roles it gave stay as they are.",
    ),
    RESUME: _Question(
        "Resume {name}?", "It gives and takes roles again, starting with what members hold now.",
        "Resume rule", "active", "Rule resumed", "Members are being checked now.",
    ),
    ACTIVATE: _Question(
        "What {name} would do", "The rule is in shadow. This is what it would do if it were active.",
        "Activate rule", "active", "Rule activated", "Members are being checked now.",
    ),
    DELETE: _Question("Delete {name}?", "", "Delete rule", "", "Rule deleted", "Its roles are being updated."),
}  # fmt: skip


def _consequence(row: RuleRowView, protected: bool) -> str:
    if row.holders == 0:
        return f"Nobody has {row.role_name} through this rule, so no role is taken."
    people = "1 member has" if row.holders == 1 else f"{row.holders} members have"
    if protected:
        return f"{people} {row.role_name} through this rule. Nobody loses it, because the role is protected."
    when = "now" if row.removal == AT_ONCE else "when the grace time is over"
    return f"{people} {row.role_name} through this rule. Members without another rule for it lose it {when}."


def _row(rule: rules.RuleView, page: ServerPageState) -> RuleRowView:
    hours = "1 hour" if rule.removal.hours == 1 else f"{rule.removal.hours} hours"
    waits = rule.removal.mode == "grace" and rule.removal.hours
    return RuleRowView(
        id=rule.id,
        name=rule.rule_name,
        lines=list(rule.lines),
        chains=[chain_title(chain) for chain in rule.chains],
        role_id=rule.role_id,
        role_name=rule.role_name,
        role_color=rule.role_color,
        state=rule.state,
        pause_reason=rule.pause_reason or "",
        removal=f"Taken {hours} after it is no longer earned" if waits else AT_ONCE,
        takes_over=rule.takes_over,
        delegated=rule.delegated,
        holders=rule.holders,
        edit_url=f"{page.add_rule_url}&ruleId={rule.id}",
    )
