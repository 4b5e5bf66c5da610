"""A server's rules: the list, and what can be done to each."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import reflex as rx
from reflex.event import EventSpec

from gateways import gateways
from locales import N_, _, ngettext, sentences, short_day
from models import transaction
from services.collections.census import reach, reach_by_day
from services.collections.census.reach_by_day import ReachOnDay
from services.core.actors import Actor
from services.core.chain_names import chain_title
from services.core.errors import NotFound, ProviderUnavailable
from services.engine.previews.proposals import Activation, RuleChange, RuleDeletion
from services.rules import limits, rules, views
from services.rules.expression import parse_stored, requirements
from services.rules.wording import Line
from services.runtime import rate_limits
from state.core.dialog import RowDialog
from state.core.gate import signed_in, writes
from state.core.toasts import say
from state.dashboard.server_page import ServerPageState, ServerTab, after_change, open_tab
from state.rule_form.preview import RulePreviewState
from state.server.protected_roles import ProtectedRolesState

_log = logging.getLogger(__name__)

PAUSE, RESUME, ACTIVATE, DELETE = "pause", "resume", "activate", "delete"
ACTIVATE_ALL = "activate all"
_SEVERAL = -1
"""The id that means several rules, in a dialog that is otherwise about one."""
FEW = 10
"""The most rules that are shown without a filter."""
LONGEST_FILTER = 200
FILTER_INPUT = "rule-filter"
"""The id of the filter's input."""
AT_ONCE = N_("Taken as soon as it is no longer earned")


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
    role_gone: bool
    """Whether it is paused because its role was deleted in Discord."""
    removal: str
    takes_over: bool
    delegated: bool
    holders: int
    reach: str
    """How many addresses meet it, and on which day they were counted; empty if they were not counted."""
    edit_url: str


class RulesState(RowDialog, ServerTab, rx.State):
    """The Rules tab of a server's configuration."""

    rows: list[RuleRowView] = []
    filter: str = ""
    """What the filter was given; it stays when the rules are read again."""
    left_out: list[int] = []
    """The ids of the rules that do not match the filter."""
    room: str = ""
    """How much of its limits the server has used."""
    working: int = 0
    asked_what: str = ""
    asked_title: str = ""
    asked_text: str = ""
    asked_action: str = ""
    _versions: dict[int, str] = {}
    """What `changes_of` returned when the rules were read."""
    _texts: dict[int, list[str]] = {}
    """What the filter compares with, by rule: its texts in one, then the addresses of its collections."""

    @rx.var
    def waiting(self) -> int:
        """Return how many rules are in shadow."""
        return len(self._in_shadow())

    @signed_in
    async def load(self, actor: Actor) -> None:
        """Read the rules if their tab is open."""
        page = await open_tab(self, "rules")
        if page is None:
            return
        self.asked_id = 0
        if (found := await self._tried(page, lambda db: _read(db, actor, page.server_id))) is not None:
            self._show(found, page)

    def _show(self, found: "_Found", page: ServerPageState) -> None:
        self.room = found.room
        self.rows = [_row(rule, found.reach.get(rule.id), page) for rule in found.rules]
        self._versions = found.versions
        self._texts = {rule.id: _texts(rule) for rule in found.rules}
        if self.shown_for != page.server_id:
            self.filter = ""
        self._leave_out()
        self.shown_for = page.server_id

    def _leave_out(self) -> None:
        wanted = self.filter.casefold()
        self.left_out = [
            rule
            for rule, (text, *contracts) in self._texts.items()
            # Within an address, a short text such as "bee" would be found by chance.
            if wanted not in text and not any(contract.startswith(wanted) for contract in contracts)
        ]

    @signed_in
    async def narrow(self, actor: Actor, value: str) -> None:
        """Show only the rules that contain this in their name, role or conditions, or the beginning of an address."""
        self.filter = value.strip()[:LONGEST_FILTER]
        self._leave_out()

    @signed_in
    async def show_all(self, actor: Actor) -> EventSpec:
        """Empty the filter."""
        self.filter, self.left_out = "", []
        return rx.set_value(FILTER_INPUT, "")

    @signed_in
    async def look(self, actor: Actor) -> None:
        """Read the rules again if they, their roles or their holders differ from those shown; called often.

        Roles move while the tab is open, another admin changes rules, and a rule is paused by what happens in Discord.
        """
        page = await open_tab(self, "rules")
        if page is None or self.shown_for != page.server_id or self.asked_id or self.working:
            return
        async with transaction() as db:
            present = await views.changes_of(db, page.server_id)
        if present == self._versions:
            return
        try:
            await self._reread(actor)
        except NotFound:
            page._lost()
        except ProviderUnavailable as fault:
            _log.info("rules not read again server=%s reason=%s", page.server_id, fault.message)

    async def _reread(self, actor: Actor) -> None:
        page = await self.get_state(ServerPageState)
        async with transaction() as db:
            found = await _read(db, actor, page.server_id)
        self._show(found, page)

    @signed_in
    async def ask(self, actor: Actor, rule_id: int, what: str):
        """Open the dialog that explains what pausing, resuming, activating or deleting a rule does, and to whom."""
        row = next((row for row in self.rows if row.id == rule_id), None)
        if row is None or what not in _QUESTIONS:
            return
        wording = _QUESTIONS[what]
        self.asked_id, self.asked_what, self.asked_action = rule_id, what, _(wording.action)
        self.asked_title = _(wording.title).format(name=row.name)
        protected = row.role_id in (await self.get_state(ProtectedRolesState)).ids
        self.asked_text = _consequence(row, protected) if what == DELETE else _(wording.text)
        impact = await self.get_state(RulePreviewState)
        impact._ask(RuleDeletion(rule_id) if what == DELETE else RuleChange(rule_id, {"state": wording.state}))
        yield RulePreviewState.watch

    @signed_in
    async def ask_all(self, actor: Actor):
        """Open the dialog that explains what activating all rules in shadow does, and to whom."""
        ids = self._in_shadow()
        if not ids:
            return
        self.asked_id, self.asked_what = _SEVERAL, ACTIVATE_ALL
        count = len(ids)
        self.asked_action = ngettext("Activate {count} rule", "Activate {count} rules", count).format(count=count)
        title = ngettext("What {count} rule would do", "What {count} rules would do", count)
        self.asked_title = title.format(count=count)
        self.asked_text = _("The rules in shadow, as if all of them were active. Only members with a wallet can gain.")
        page, impact = await self._page(), await self.get_state(RulePreviewState)
        impact._ask(Activation(page.server_id, ids))
        yield RulePreviewState.watch

    def _in_shadow(self) -> tuple[int, ...]:
        return tuple(row.id for row in self.rows if row.state == "shadow")

    @signed_in
    async def imported(self, actor: Actor, count: int) -> None:
        """Show the rules that an import has just made."""
        await self._reread(actor)
        made = ngettext(
            "{count} rule is in shadow: nothing is given or taken yet.",
            "{count} rules are in shadow: nothing is given or taken yet.",
            max(0, count),
        )
        await say(self, _("Rules imported"), made.format(count=max(0, count)))

    @writes
    async def confirm(self, actor: Actor):
        """Carry out what the dialog asks about."""
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
            await after_change(self._reread(actor))
            await say(self, _(wording.done), _(wording.after))
        except NotFound:
            # Somebody else has deleted it since the list was read.
            await after_change(self._reread(actor))
            raise
        finally:
            self.working = 0
        # The rules decide which roles can be protected.
        yield ProtectedRolesState.load

    async def _activate_all(self, actor: Actor) -> None:
        page = await self._page()
        await rate_limits.spend(rate_limits.RECHECKS, actor.user_id)
        async with transaction() as db:
            count = await rules.activate_all(db, gateways(), actor, page.server_id, self._in_shadow())
        await after_change(self._reread(actor))
        done = ngettext("{count} rule activated", "{count} rules activated", count).format(count=count)
        after = _("Members are being checked now.") if count else _("No rule was in shadow any more.")
        await say(self, _("Rule activated") if count == 1 else done, after)


@dataclass(frozen=True)
class _Found:
    """What the tab shows: the rules, how much of its limits the server has used, and each rule's last count."""

    versions: dict[int, str]
    rules: list[rules.RuleView]
    room: str
    reach: Mapping[int, ReachOnDay]


async def _read(db: Any, actor: Actor, server_id: int) -> _Found:
    # Before the rules: a change in between is then read again at the next look.
    versions = await views.changes_of(db, server_id)
    listed = await rules.list_rules(db, gateways(), actor, server_id)
    room = await limits.room(db, server_id)
    return _Found(versions, listed, room.words, await reach_by_day.newest(db, server_id))


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
        N_("Pause “{name}”?"),
        N_("A paused rule gives and takes nothing. Roles it gave stay as they are."),
        N_("Pause rule"),
        "paused",
        N_("Rule paused"),
        N_("Roles it gave stay as they are."),
    ),
    RESUME: _Question(
        N_("Resume “{name}”?"),
        N_("It gives and takes roles again, starting with what members hold now."),
        N_("Resume rule"),
        "active",
        N_("Rule resumed"),
        N_("Members are being checked now."),
    ),
    ACTIVATE: _Question(
        N_("What “{name}” would do"),
        N_("The rule is in shadow. This is what it would do if it were active."),
        N_("Activate rule"),
        "active",
        N_("Rule activated"),
        N_("Members are being checked now."),
    ),
    DELETE: _Question(
        N_("Delete “{name}”?"), "", N_("Delete rule"), "", N_("Rule deleted"), N_("Its roles are being updated.")
    ),
}


def _consequence(row: RuleRowView, protected: bool) -> str:
    if row.holders == 0:
        return _("Nobody has {role} through this rule, so no role is taken.").format(role=row.role_name)
    people = ngettext(
        "{count} member has {role} through this rule.", "{count} members have {role} through this rule.", row.holders
    ).format(count=row.holders, role=row.role_name)
    if protected:
        rest = _("Nobody loses it, because the role is protected.")
    elif row.removal == _(AT_ONCE):
        rest = _("Members without another rule for it lose it now.")
    else:
        rest = _("Members without another rule for it lose it when the grace time is over.")
    return sentences(people, rest)


def _texts(rule: rules.RuleView) -> list[str]:
    shown = "\n".join([rule.rule_name, rule.role_name, *(line.text for line in rule.lines)])
    return [
        text.casefold() for text in (shown, *(leaf.contract for leaf in requirements(parse_stored(rule.expression))))
    ]


def _counted_on(found: ReachOnDay) -> str:
    said = reach.in_words(found.holders, found.verified)
    # Translators: {numbers} is a whole sentence, such as "5,204 addresses meet this, 12 verified here."
    return _("{numbers} Counted on {day}.").format(numbers=said, day=short_day(found.day))


def _row(rule: rules.RuleView, found: ReachOnDay | None, page: ServerPageState) -> RuleRowView:
    hours = rule.removal.hours or 0
    late = ngettext(
        "Taken {count} hour after it is no longer earned", "Taken {count} hours after it is no longer earned", hours
    )
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
        role_gone=rule.state == "paused" and rule.pause_cause == "role_gone",
        removal=late.format(count=hours) if waits else _(AT_ONCE),
        takes_over=rule.takes_over,
        delegated=rule.delegated,
        holders=rule.holders,
        reach=_counted_on(found) if found is not None else "",
        edit_url=f"{page.add_rule_url}&ruleId={rule.id}",
    )
