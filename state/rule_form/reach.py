"""How many addresses meet the rule in the form: the running count, its numbers, and those of the last days."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import reflex as rx

from gateways import gateways
from locales import _, number, short_day
from models import now, transaction
from services.collections.census import reach, reach_by_day
from services.collections.census.reach import ReachView
from services.collections.census.reach_by_day import ReachOnDay
from services.core.actors import Actor
from services.core.chain_names import chain_title
from services.core.errors import HoldfastError
from services.core.relative_times import ago
from services.engine.previews.proposals import NewRule
from services.guilds import permissions
from services.runtime import rate_limits
from state.core.errors import UNREADABLE, sentence_of
from state.core.gate import background, signed_in
from state.core.retry import ask
from state.core.timing import REACH_POLL_SECONDS, REACH_WATCHED_SECONDS
from state.core.watchers import Watcher, new_turn
from state.dashboard.charts import HEIGHT, WIDTH, BarView, bar
from state.dashboard.server_page import ServerPageState
from state.rule_form.rule_form import RuleFormState

_SHOWN_AGE = timedelta(minutes=1)
"""From which age on the form says how old the numbers are: the same conditions are not counted again for an hour."""
_FEWEST_DAYS = 14
"""The least number of days that the chart has room for."""


@dataclass(frozen=True)
class ReachDayView:
    """One day's row in the table behind the chart."""

    day: str
    holders: int
    verified: int


class ReachState(rx.State):
    """The count that was asked for last, and the days of the stored rule."""

    busy: bool = False
    percent: int = 0
    sentence: str = ""
    """The numbers in words; empty without any."""
    places: list[str] = []
    """For each chain, up to which block it was counted; then the age of numbers that were counted earlier."""
    note: str = ""
    """A caveat about the count: which numbers no second node confirms."""
    fault: str = ""
    of_rule: str = ""
    """The version of the rule that the numbers are about; they are hidden for any other version."""
    bars: list[BarView] = []
    days: list[ReachDayView] = []
    summary: str = ""
    _proposal: NewRule | None = None
    _turn: str = ""

    @signed_in
    async def count(self, actor: Actor):
        """Start to count the addresses that meet the rule as it is filled in now."""
        rule = await self.get_state(RuleFormState)
        page = await self.get_state(ServerPageState)
        self._proposal = NewRule(rule._draft(page.server_id))
        self._turn = new_turn()
        self.sentence, self.places, self.note, self.fault = "", [], "", ""
        self.of_rule, self.busy, self.percent = rule.conditions_key, True, 0
        return ReachState.watch

    @signed_in
    async def follow(self, actor: Actor):
        """Follow a running count again: its loop ended when the form was left, or the connection was lost for long."""
        return ReachState.watch if self.busy else None

    @background
    @signed_in
    async def watch(self, actor: Actor) -> None:
        """Begin the count and follow it until it is finished; a newer count replaces it."""
        async with self:
            turn, proposal = self._turn, self._proposal
        if proposal is None:
            return
        reach_id, found = 0, None
        loop = Watcher(self, actor, "reach", every=REACH_POLL_SECONDS, lasts=REACH_WATCHED_SECONDS, first=0.0)
        async for _turn in loop.looks():
            fault = ""
            try:
                if not reach_id:
                    await rate_limits.spend(rate_limits.PREVIEWS, actor.user_id)
                    async with transaction() as db:
                        reach_id = await reach.begin(db, gateways(), actor, proposal)
                async with transaction() as db:
                    found = await reach.get(db, gateways(), actor, reach_id)
            except UNREADABLE as refused:
                fault = sentence_of(refused)
            async with self:
                if self._turn != turn:
                    return
                self._show(found, fault)
                if not self.busy:
                    break

    def _show(self, found: ReachView | None, fault: str) -> None:
        self.fault, self.busy = fault, not fault
        if fault or found is None:
            return
        self.percent, self.busy = int(100 * found.progress), found.state == "counting"
        self.places = [
            _("{chain} up to block {block}").format(chain=chain_title(one.chain), block=number(one.block))
            for one in found.chains
            if one.block is not None
        ]
        if found.state == "failed":
            self.fault = found.reason or ""
        elif found.holders is not None:
            self.sentence, self.note = reach.in_words(found.holders, found.verified_here or 0), found.reason or ""
            if found.ended_at is not None and now() - found.ended_at >= _SHOWN_AGE:
                # Translators: {ago} is such as "3 minutes ago".
                self.places = [*self.places, _("Counted {ago}.").format(ago=ago(found.ended_at))]

    @signed_in
    async def load_days(self, actor: Actor):
        """Read the days of the stored rule, if the form edits one."""
        # Those of the rule that was opened before are hidden at once, and stay so after a failure.
        self.bars, self.days, self.summary = [], [], ""
        yield
        rule = await self.get_state(RuleFormState)
        page = await self.get_state(ServerPageState)
        found: Sequence[ReachOnDay] = ()
        if rule.rule_id:

            async def read(db: Any) -> Sequence[ReachOnDay]:
                await permissions.require_admin_to_read(db, gateways(), actor, page.server_id)
                return await reach_by_day.of_rule(db, page.server_id, rule.rule_id)

            try:
                found = await ask(read)
            except HoldfastError:
                found = ()
        self.bars, self.summary = _bars(found), _summary(found)
        self.days = [ReachDayView(short_day(one.day), one.holders, one.verified) for one in reversed(found)]


def _bars(found: Sequence[ReachOnDay]) -> list[BarView]:
    """Return each day's share of verified holders as a bar."""
    step = WIDTH / max(_FEWEST_DAYS, len(found))
    return [
        bar(
            place,
            step,
            height=round(HEIGHT * min(one.verified / max(one.holders, 1), 1)),
            label=f"{short_day(one.day)}: {number(one.verified)} / {number(one.holders)}",
        )
        for place, one in enumerate(found)
    ]


def _summary(found: Sequence[ReachOnDay]) -> str:
    if not found:
        return ""
    first, last = found[0], found[-1]
    if first is last:
        said = _("Verified here: {share} of the holders on {day}.")
        return said.format(share=_share(last), day=short_day(last.day))
    return _("Verified here: {share} of the holders on {day}, {before} on {first}.").format(
        share=_share(last), day=short_day(last.day), before=_share(first), first=short_day(first.day)
    )


def _share(one: ReachOnDay) -> str:
    return f"{100 * one.verified // one.holders if one.holders else 0}%"
