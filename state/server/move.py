"""The Move tab of a server: the move's form, who has arrived, the days so far, its end and its undo."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import ClassVar

import reflex as rx

from gateways import gateways
from locales import _, day, day_and_time, listed, ngettext, short_day
from models import transaction
from services.core.actors import Actor
from services.core.errors import FieldRefused, HoldfastError, MoveNotFound, NotFound, Outdated, ProviderUnavailable
from services.engine.previews.proposals import MoveEnd
from services.guilds.verification_channel import ChannelOption
from services.roles.moves import coverage, lifecycle, views
from services.roles.moves.coverage import CoverageDay
from services.roles.moves.lifecycle import MoveOrder, SeenMove
from services.roles.moves.views import MoveScreen, MoveView, MovingRole
from settings import settings
from state.core.dialog import Dialog
from state.core.entered_dates import end_of_day, start_of_day
from state.core.errors import UNREADABLE
from state.core.form_fault import FormFault
from state.core.gate import public, signed_in, writes
from state.core.toasts import say
from state.dashboard.charts import HEIGHT, WIDTH
from state.dashboard.server_page import ServerPageState, ServerTab, after_change, open_tab
from state.rule_form.preview import RulePreviewState

_log = logging.getLogger(__name__)

NONE = "none"
"""The state without a move; the other states are those of `views`."""
END, UNDO = "end", "undo"
"""The actions that a dialog asks about."""
USUAL_DAYS = 30
MOST_DAYS = 60
"""Days that the chart shows, the newest ones."""
FEWEST_DAYS = 14
"""The least number of days that the chart has room for, so that the first ones are not wide blocks."""
_BAR_SHARE = 0.8


@dataclass(frozen=True)
class MoveChoiceView:
    """A role to choose for the move."""

    id: str
    name: str
    color: str
    chosen: bool


@dataclass(frozen=True)
class MovingRoleView:
    """A role of the move: its holders by standing, with each one's share of the bar, and who else gives or takes it."""

    id: str
    name: str
    color: str
    right: int
    wrong: int
    unverified: int
    unknown: int
    shares: list[str]
    summary: str
    taken: str
    rivals: str
    undecided: str


@dataclass(frozen=True)
class StandingBarView:
    """One standing's part of a day's bar."""

    key: str
    x: int
    y: int
    width: int
    height: int
    standing: str


@dataclass(frozen=True)
class CoverageDayView:
    """One day's row in the table behind the chart."""

    day: str
    right: int
    wrong: int
    unverified: int
    unknown: int


class MoveState(FormFault, Dialog, ServerTab, rx.State):
    """The move of the server, its form, one list of names, and the dialog before its end or its undo."""

    state: str = NONE
    headline: str = ""
    counted: str = ""
    roles: list[MovingRoleView] = []
    bars: list[StandingBarView] = []
    days: list[CoverageDayView] = []
    chart_summary: str = ""

    editing: bool = False
    choices: list[MoveChoiceView] = []
    options: list[ChannelOption] = []
    until: str = ""
    """The last day, as `YYYY-MM-DD` in UTC."""
    begins: str = ""
    begins_open: bool = True
    _moments: dict[str, datetime] = {}
    """By field, the moments of the stored move: a program may have chosen another one than midnight."""
    channel: str = ""
    _filled: tuple[list[MoveChoiceView], str, str, str] = ([], "", "", "")  # the form as it was read
    _seen: SeenMove = SeenMove()  # the open move that the form is about
    _asked_about: SeenMove = SeenMove()  # the open move that the dialog is about
    first_day: str = ""
    saving: bool = False

    named_role: str = ""
    named_standing: str = ""
    named_title: str = ""
    names: list[str] = []
    names_page: int = 0
    names_more: int = 0
    names_hidden: bool = False

    working: bool = False
    _tab: ClassVar[str] = "move"

    @signed_in
    async def look(self, actor: Actor) -> None:
        """Read the numbers again, unless somebody fills in the form or answers a question."""
        page = await open_tab(self, "move")
        is_idle = not (self.editing or self.asked or self.working or self.state == NONE)
        if page is not None and is_idle and self.shown_for == page.server_id:
            try:
                async with transaction() as db:
                    found = await views.view(db, gateways(), actor, page.server_id)
            except MoveNotFound:
                # Another admin has undone it.
                await self._read(actor, page)
            except NotFound:
                page._lost()
            except ProviderUnavailable as fault:
                _log.info("move not read again server=%s reason=%s", page.server_id, fault.message)
            else:
                self._show(found)

    async def _read(self, actor: Actor, page: ServerPageState) -> None:
        self.asked = ""
        if (seen := await self._tried(page, lambda db: views.screen(db, gateways(), actor, page.server_id))) is None:
            return
        # What is typed stays when the tab is read again, as after a lost connection.
        is_typed = self.shown_for == page.server_id and self._typed() != self._filled
        self._learn(seen)
        if not is_typed or (self.state == NONE) != (seen.move is None):
            self._fill()
        if seen.move is None:
            self.state, self.roles = NONE, []
        else:
            self._show(seen.move)
        self.named_role, self.shown_for = "", page.server_id

    def _learn(self, seen: MoveScreen) -> None:
        """Remember the form of the open move, or the defaults, which Cancel puts back."""
        move = seen.move if seen.move is not None and seen.move.state != views.APPROVED else None
        chosen = {one.role_id for one in (move.roles if move else seen.roles)}
        if len(chosen) > lifecycle.MOST_ROLES:
            chosen = set()  # All of them would be refused, and nobody knows which of them to take out.
        choices = [
            MoveChoiceView(one.role_id, one.role_name, one.role_color, one.role_id in chosen) for one in seen.roles
        ]
        self.options = list(seen.channels)
        channel = next((one.id for one in seen.channels if move and one.id == move.channel_id), "")
        last = move.until if move else seen.now + timedelta(days=USUAL_DAYS)
        self.begins_open = move is None or move.state == views.PLANNED
        begins = f"{move.begins_at.astimezone(UTC):%Y-%m-%d}" if move and self.begins_open else ""
        self._moments = {"until": move.until, "beginsAt": move.begins_at} if move else {}
        self._seen = views.seen(move)
        self.first_day = f"{seen.now.astimezone(UTC):%Y-%m-%d}"
        self._filled = choices, f"{last.astimezone(UTC):%Y-%m-%d}", begins, channel

    def _fill(self) -> None:
        """Fill in the form as it was read, and close it."""
        self.choices, self.until, self.begins, self.channel = self._filled
        self._clear_fault()
        self.editing = False

    def _typed(self) -> tuple[list[MoveChoiceView], str, str, str]:
        return list(self.choices), self.until, self.begins, self.channel

    def _show(self, move: MoveView) -> None:
        self.state = move.state
        self.headline = _headline(move)
        self.counted = day_and_time(move.counted_at)
        self.roles = [_role(role) for role in move.roles]
        shown = move.days[-MOST_DAYS:]
        self.bars, self.chart_summary = _bars(shown), _summary(shown)
        self.days = [CoverageDayView(short_day(one.day), *_counts(one)) for one in reversed(shown)]

    @signed_in
    async def edit(self, actor: Actor) -> None:
        """Open the form of an existing move, as it is now: another admin may have changed it since it was shown."""
        page = await open_tab(self, "move")
        if page is not None:
            await self._read(actor, page)
            self.editing = self.state not in {NONE, views.APPROVED}

    @public
    def cancel(self) -> None:
        """Close the form of an existing move, and forget what was typed."""
        self._fill()

    @public
    def choose(self, role_id: str, chosen: bool) -> None:
        """Choose a role for the move, or leave it out."""
        self.choices = [replace(one, chosen=chosen) if one.id == role_id else one for one in self.choices]

    @public
    def set_until(self, value: str) -> None:
        """Set the last day."""
        self.until = value[:10]

    @public
    def set_begins(self, value: str) -> None:
        """Set the first day; empty for now."""
        self.begins = value[:10]

    @public
    def set_channel(self, channel_id: str) -> None:
        """Choose the channel of the announcement; empty for none."""
        self.channel = channel_id[:32]

    @writes
    async def save(self, actor: Actor):
        """Begin the move, or change it."""
        is_new = self.state in {NONE, views.APPROVED}
        if not (is_new or self.editing):
            return  # The second click of a double click: the form is closed.
        self.saving = True
        self._clear_fault()
        yield
        try:
            page = await self._page()
            async with transaction() as db:
                is_told = await lifecycle.begin_or_change(db, gateways(), actor, page.server_id, self._order())
        except HoldfastError as fault:
            await self._show_fault(_("Move not saved"), fault)
            if isinstance(fault, Outdated):
                await after_change(self._read(actor, await self.get_state(ServerPageState)))
        else:
            self._filled = self._typed()
            title = _("The move has begun") if is_new else _("The move is changed")
            await say(self, title, _("Nobody loses a role of it before you approve its end.") if is_told else _untold())
            await after_change(self._read(actor, page))
        finally:
            self.saving = False

    def _order(self) -> MoveOrder:
        """Return the order that the form describes. Raises FieldRefused for a text that is not a date."""
        until = self._unchanged("until", self.until) or end_of_day(self.until, "until")
        if until is None:
            raise FieldRefused("until", _("Choose the last day of the move."))
        begins = self._unchanged("beginsAt", self.begins) or start_of_day(self.begins, "beginsAt")
        chosen = [one.id for one in self.choices if one.chosen]
        return MoveOrder(until, chosen, begins if self.begins_open else None, self.channel or None, self._seen)

    def _unchanged(self, field: str, day: str) -> datetime | None:
        """Return the stored moment if the form still shows its day."""
        stored = self._moments.get(field)
        return stored if stored is not None and f"{stored.astimezone(UTC):%Y-%m-%d}" == day else None

    @signed_in
    async def show_names(self, actor: Actor, role_id: str, standing: str) -> None:
        """List the members of one standing of a role; hide the list when pressed again."""
        role = next((one for one in self.roles if one.id == role_id), None)
        if role is None or standing not in coverage.STANDINGS:
            return
        if (self.named_role, self.named_standing) == (role_id, standing):
            self.named_role = self.named_standing = ""
            return
        self.named_role, self.named_standing, self.names, self.names_page = role_id, standing, [], 0
        self.named_title = f"{role.name}: {_titles()[standing]}"
        try:
            await self._more(actor)
        except UNREADABLE:
            self.named_role = self.named_standing = ""
            raise

    @signed_in
    async def more_names(self, actor: Actor) -> None:
        """List the next members."""
        if self.named_role:
            await self._more(actor)

    async def _more(self, actor: Actor) -> None:
        page = await self.get_state(ServerPageState)
        number = self.names_page + 1
        async with transaction() as db:
            found = await coverage.holders(
                db, gateways(), actor, page.server_id, self.named_role, self.named_standing, number
            )
        self.names_page = number
        self.names = [*self.names, *(one.name for one in found.members)]
        self.names_hidden = not found.named
        self.names_more = max(0, found.total - len(self.names)) if found.named and found.members else 0

    @signed_in
    async def ask_end(self, actor: Actor):
        """Open the dialog that shows what the end of the move would do."""
        if self.state not in {views.RUNNING, views.OVER}:
            return
        self.asked, self._asked_about = END, self._seen
        page, impact = await self._page(), await self.get_state(RulePreviewState)
        impact._ask(MoveEnd(page.server_id))
        yield RulePreviewState.watch

    @public
    def ask_undo(self) -> None:
        """Open the dialog that explains what undoing the move does."""
        self.asked = UNDO if self.state != NONE else ""

    @writes
    async def confirm(self, actor: Actor):
        """Carry out what the dialog asks about."""
        what, self.asked = self.asked, ""
        if not what:
            return
        self.working = True
        yield
        try:
            page = await self._page()
            async with transaction() as db:
                if what == END:
                    is_told = await lifecycle.approve(db, gateways(), actor, page.server_id, self._asked_about)
                    title, told = _("End of the move approved"), _("The rules decide about its roles now.")
                else:
                    undone = await lifecycle.undo(db, gateways(), actor, page.server_id)
                    is_told = undone.messages_updated
                    title, told = _("Move undone"), _undone(undone.members)
            self._filled = self._typed()
            await say(self, title, told if is_told else f"{told} {_untold()}")
            await after_change(self._read(actor, page))
        except Outdated as fault:
            await self._show_fault(_("Move not saved"), fault)
            await after_change(self._read(actor, await self.get_state(ServerPageState)))
        finally:
            self.working = False


def _untold() -> str:
    said = _("Discord did not let {bot} change its messages. Repair the verification channel.")
    return said.format(bot=settings().bot_name)


def _undone(members: int) -> str:
    if not members:
        return _("Everybody keeps the roles of the move.")
    said = ngettext("{count} member gets roles back.", "{count} members get roles back.", members)
    return said.format(count=members)


def _titles() -> Mapping[str, str]:
    return {
        coverage.RIGHT: _("verified, and right"), coverage.WRONG: _("verified, but no rule says yes"),
        coverage.UNVERIFIED: _("no wallet counts here"), coverage.UNKNOWN: _("unknown"),
    }  # fmt: skip


def _headline(move: MoveView) -> str:
    match move.state:
        case views.PLANNED:
            return _("The move begins on {day}").format(day=day(move.begins_at))
        case views.RUNNING:
            return _("The move runs until {until}").format(until=day_and_time(move.until))
        case views.OVER:
            return _("The time of the move is over: it waits for your approval")
        case _:
            return _("The move is over")


def _role(role: MovingRole) -> MovingRoleView:
    counts = (role.right, role.wrong, role.unverified, role.unknown)
    total = sum(counts)
    rivals = listed([one.name or _("Somebody") for one in role.rivals]) if role.rivals else ""
    moved = _("{names} moved this role too, last on {time}.")
    undecided = _(
        "No active rule gives this role yet, so holders with a wallet count as unknown. Activate one on the Rules tab."
    )
    taken = ngettext("Taken from {count} member so far", "Taken from {count} members so far", role.taken)
    return MovingRoleView(
        role.role_id, role.role_name, role.role_color, *counts,
        shares=[f"{100 * count / total:.3f}%" if total else "0%" for count in counts],
        summary=_arrived(role.right, total),
        taken=taken.format(count=role.taken) if role.taken else "",
        rivals=moved.format(names=rivals, time=day_and_time(role.rivals[0].last_at)) if rivals else "",
        undecided="" if role.decided else undecided,
    )  # fmt: skip


def _arrived(right: int, total: int) -> str:
    said = ngettext("{right} of {total} holder has arrived", "{right} of {total} holders have arrived", total)
    return said.format(right=right, total=total)


def _bars(days: Sequence[CoverageDay]) -> list[StandingBarView]:
    """Return each day as parts on top of each other, from the bottom, in the order of STANDINGS."""
    peak = max((sum(_counts(one)) for one in days), default=0)
    if not peak:
        return []
    step = WIDTH / max(len(days), FEWEST_DAYS)
    found: list[StandingBarView] = []
    for place, one in enumerate(days):
        below = 0
        for standing, count in zip(coverage.STANDINGS, _counts(one), strict=True):
            top, bottom = (round(HEIGHT - HEIGHT * value / peak) for value in (below + count, below))
            below += count
            if bottom > top:
                x, width = round(place * step + step * (1 - _BAR_SHARE) / 2), max(1, round(step * _BAR_SHARE))
                found.append(StandingBarView(f"{place}-{standing}", x, top, width, bottom - top, standing))
    return found


def _counts(one: CoverageDay) -> tuple[int, int, int, int]:
    return one.right, one.wrong, one.unverified, one.unknown


def _summary(days: Sequence[CoverageDay]) -> str:
    if not days:
        return ""
    first, last = days[0], days[-1]
    if first is last:
        return _arrived(last.right, sum(_counts(last)))
    return _("Holders who have arrived: {before} on {first}, {after} of {total} on {last}.").format(
        before=first.right, first=short_day(first.day), after=last.right, total=sum(_counts(last)),
        last=short_day(last.day),
    )  # fmt: skip
