"""The Activity tab of a server: the audit log in sentences, with filters, pages and undo."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from urllib.parse import urlencode
from uuid import UUID

import reflex as rx

from gateways import gateways
from locales import N_, _, day
from models import now, transaction
from models.db.row_ids import row_id
from services.core import event_kinds
from services.core.actors import Actor
from services.core.errors import HoldfastError, ProviderUnavailable, TooMany
from services.core.relative_times import ago
from services.runtime import rate_limits
from services.servers import activity, undo
from services.servers.activity import BY_ITSELF, LogFilter, LogLine
from services.servers.activity_sentences import FORGOTTEN
from settings import settings
from state.core.dialog import Dialog
from state.core.errors import UNREADABLE
from state.core.gate import signed_in, writes
from state.core.session import SessionState
from state.core.toasts import refuse, say
from state.dashboard.server_page import ServerPageState, ServerTab, after_change, open_tab

PAGE_SIZE = 50
ROLE, RULE = "role:", "rule:"
KINDS = event_kinds.filters()
"""Groups of kinds to filter by, and their labels."""
MARKS = tuple((kind, one.icon, one.tone) for kind, one in event_kinds.EVENT_KINDS.items() if one.group is not None)
"""The icon and tone of each kind that the screen can show."""
PERIODS = (("1", N_("The last day")), ("7", N_("The last 7 days")), ("30", N_("The last 30 days")))
"""Periods in days, and their labels."""


@dataclass(frozen=True)
class EventRowView:
    """A line of the log, or several adjacent lines of one batch, of which `more` has the other sentences.

    `batch` is the id to undo it by, empty if it cannot be undone; `member` can be opened in the Members tab.
    """

    id: int
    kind: str
    text: str
    more: list[str]
    age: str
    time: str
    batch: str
    member: str


@dataclass(frozen=True)
class OptionView:
    """An option of a filter."""

    value: str
    label: str


class ActivityState(Dialog, ServerTab, rx.State):
    """One page of the log, its filters, and the dialog before an undo."""

    rows: list[EventRowView] = []
    page: int = 1
    is_last: bool = True
    kind: str = ""
    member: str = ""
    member_key: int = 0
    """Changes when we fill in the member, so that the input is created again."""
    subject: str = ""
    done_by: str = ""
    days: str = ""
    roles: list[OptionView] = []
    rules: list[OptionView] = []
    actors: list[OptionView] = []
    csv_url: str = ""
    asked_text: str = ""
    undoing: str = ""
    _visit: int = -1
    _starts: list[int] = []
    """For each page after the first, the id of the line before which it begins."""

    @signed_in
    async def load(self, actor: Actor) -> None:
        """Read the log if its tab is open; `member` in the URL filters it."""
        page = await open_tab(self, "activity")
        if page is None:
            return
        named = self.router.url.query_parameters.get("member", "")[:32]
        visit = (await self.get_state(SessionState)).visit
        # After a mere reconnect, the filters are those that the person has chosen since.
        if self.shown_for != page.server_id or (named and visit != self._visit):
            self._clear(named)
            self._link(page)
        self._visit = visit
        self.asked = ""

        choices = await self._tried(page, lambda db: activity.choices(db, gateways(), actor, page.server_id))
        if choices is None:
            return
        self.roles = [OptionView(f"{ROLE}{role_id}", name) for role_id, name in choices.roles]
        self.rules = [OptionView(f"{RULE}{rule_id}", name) for rule_id, name in choices.rules]
        self.actors = [OptionView(discord_id, name) for discord_id, name in choices.actors]
        if await self._first(actor, page):
            self.shown_for = page.server_id

    def _clear(self, member: str = "") -> None:
        self.kind = self.subject = self.done_by = self.days = ""
        # A new input loses text that somebody types at the same time, so it is created only if the text differs.
        if self.member != member:
            self.member, self.member_key = member, self.member_key + 1

    def _wanted(self) -> LogFilter:
        return LogFilter(
            kind=self.kind,
            member=self.member,
            role_id=self.subject.removeprefix(ROLE) if self.subject.startswith(ROLE) else "",
            rule_id=row_id(self.subject.removeprefix(RULE)),
            actor=self.done_by,
            since=now() - timedelta(days=int(self.days)) if self.days in dict(PERIODS) else None,
        )

    async def _first(self, actor: Actor, page: ServerPageState) -> bool:
        self.page, self._starts = 1, []
        return await self._read(actor, page)

    async def _read(self, actor: Actor, page: ServerPageState) -> bool:
        wanted = self._wanted()
        before = self._starts[self.page - 2] if self.page > 1 else None

        found = await self._tried(
            page,
            lambda db: activity.read(db, gateways(), actor, page.server_id, wanted, before=before, limit=PAGE_SIZE + 1),
        )
        if found is None:
            return False
        self.is_last = len(found) <= PAGE_SIZE
        self.rows = _rows(found[:PAGE_SIZE])
        if not self.is_last:
            self._starts = [*self._starts[: self.page - 1], found[PAGE_SIZE - 1].id]
        self._link(page)
        return True

    def _link(self, page: ServerPageState) -> None:
        self.csv_url = f"/api/servers/{page.server_id}/events.csv?{_query(self._wanted())}"

    async def _filtered(self, actor: Actor) -> None:
        page = await open_tab(self, "activity")
        if page is not None:
            await self._first(actor, page)

    @signed_in
    async def choose_kind(self, actor: Actor, value: str) -> None:
        """Filter by kind."""
        self.kind = value if value in dict(KINDS) else ""
        await self._filtered(actor)

    @signed_in
    async def enter_member(self, actor: Actor, value: str) -> None:
        """Filter by member after a pause in typing: part of a name, or a whole id."""
        self.member = value.strip()[: activity.LONGEST_QUERY]
        await self._filtered(actor)

    @signed_in
    async def choose_subject(self, actor: Actor, value: str) -> None:
        """Filter by role or rule."""
        self.subject = value[:60]
        await self._filtered(actor)

    @signed_in
    async def choose_actor(self, actor: Actor, value: str) -> None:
        """Filter by actor."""
        self.done_by = value[:60]
        await self._filtered(actor)

    @signed_in
    async def choose_days(self, actor: Actor, value: str) -> None:
        """Filter by period."""
        self.days = value[:3]
        await self._filtered(actor)

    @signed_in
    async def clear(self, actor: Actor) -> None:
        """Clear all filters."""
        self._clear()
        await self._filtered(actor)

    @signed_in
    async def turn(self, actor: Actor, by: int) -> None:
        """Turn to older lines (1) or back to newer ones (-1)."""
        page = await open_tab(self, "activity")
        if page is not None:
            shown, self.page = self.page, min(max(1, self.page + by), len(self._starts) + 1)
            try:
                await self._read(actor, page)
            except UNREADABLE:
                self.page = shown  # whose rows are still there
                raise

    @signed_in
    async def ask_undo(self, actor: Actor, batch: str) -> None:
        """Open the dialog that explains the undo."""
        page = await self.get_state(ServerPageState)
        try:
            # It does the whole undo and rolls it back: a second of the database's work for 20,000 members.
            await rate_limits.spend(rate_limits.PREVIEWS, actor.user_id)
            async with transaction() as db:
                view = await undo.preview(db, gateways(), actor, page.server_id, UUID(batch))
        except TooMany as fault:
            await refuse(self, _("Not so fast"), fault.message)
        except (HoldfastError, ValueError) as fault:
            await self._refuse_undo(fault)
        else:
            self.asked, self.asked_text = view.batch, view.text

    @writes
    async def undo(self, actor: Actor):
        """Undo the batch that the dialog asks about."""
        batch, self.asked = self.asked, ""
        if not batch:
            return
        self.undoing = batch
        yield
        page = await self.get_state(ServerPageState)
        try:
            async with transaction() as db:
                view = await undo.undo(db, gateways(), actor, page.server_id, UUID(batch))
            await after_change(self._filtered(actor))
            await say(self, _("Undone"), view.text)
        except HoldfastError as fault:
            await self._refuse_undo(fault)
        finally:
            self.undoing = ""

    async def _refuse_undo(self, fault: Exception) -> None:
        """Say why nothing was undone. It can be undone later if only Discord, which knows the rights, was away."""
        title = (
            _("Discord could not be asked") if isinstance(fault, ProviderUnavailable) else _("This cannot be undone")
        )
        await refuse(self, title, fault.message if isinstance(fault, HoldfastError) else "")


def _rows(lines: Sequence[LogLine]) -> list[EventRowView]:
    """Join adjacent lines of one batch into one row."""
    rows: list[EventRowView] = []
    batches: list[str | None] = []
    for line in lines:
        if rows and line.batch and batches[-1] == line.batch and rows[-1].kind == line.kind:
            rows[-1] = replace(rows[-1], more=[*rows[-1].more, line.text], member="")
            continue
        batches.append(line.batch)
        rows.append(
            EventRowView(
                id=line.id,
                kind=line.kind,
                text=line.text,
                more=[],
                age=ago(line.at),
                time=_("{date}, {time} UTC").format(date=day(line.at), time=f"{line.at:%H:%M:%S}"),
                batch=(line.batch or "") if line.undoable else "",
                member=line.subject if line.subject and not line.subject.startswith(FORGOTTEN) else "",
            )
        )
    return rows


def _query(wanted: LogFilter) -> str:
    asked = {
        "kind": wanted.kind, "member": wanted.member, "roleId": wanted.role_id, "ruleId": wanted.rule_id,
        "actor": wanted.actor, "since": wanted.since.isoformat() if wanted.since else None,
    }  # fmt: skip
    return urlencode({name: value for name, value in asked.items() if value})


ACTORS = (OptionView(BY_ITSELF, _("{product}, automatically").format(product=settings().product_name)),)
"""Actors besides people."""
