"""Trying an address on the rule of the form."""

import reflex as rx

from gateways import gateways
from locales import _
from models import transaction
from services.core.actors import Actor
from services.engine.previews import try_address
from services.engine.previews.proposals import NewRule
from services.runtime import rate_limits
from state.core.errors import UNREADABLE, sentence_of
from state.core.evidence import RequirementLineView, line_of
from state.core.gate import background, signed_in
from state.core.watchers import Watcher, new_turn
from state.dashboard.server_page import ServerPageState
from state.rule_form.rule_form import RuleFormState

ADDRESS_INPUT = "triedAddress"
LONGEST = 500


class TrialState(rx.State):
    """The address that was tried last, and the rule's answer for it."""

    busy: bool = False
    tried: str = ""
    """The address that the answer is about, with its name if it was given by one."""
    outcome: str = ""
    """`yes`, `no` or `unknown`; empty without an answer."""
    lines: list[RequirementLineView] = []
    fault: str = ""
    of_rule: str = ""
    """The version of the rule that the answer is about; it is hidden for any other version."""
    _given: str = ""
    _proposal: NewRule | None = None
    _turn: str = ""

    @signed_in
    async def try_address(self, actor: Actor, form: dict[str, str | bool | None]):
        """Read what the rule, as it is filled in now, says about the entered address."""
        rule = await self.get_state(RuleFormState)
        page = await self.get_state(ServerPageState)
        given = form.get(ADDRESS_INPUT)
        self._given = given.strip()[:LONGEST] if isinstance(given, str) else ""
        self._proposal = NewRule(rule._draft(page.server_id))
        self._turn = new_turn()
        self.tried, self.outcome, self.lines, self.fault = "", "", [], ""
        self.of_rule, self.busy = rule.conditions_key, False
        if not self._given:
            self.fault = _("Enter an address first.")
            return None
        self.busy = True
        return TrialState.watch

    @signed_in
    async def follow(self, actor: Actor):
        """Read an answer again that never came: the form was left at once, or the process that read it is gone."""
        return TrialState.watch if self.busy else None

    @background
    @signed_in
    async def watch(self, actor: Actor) -> None:
        """Read the answer; a newer address replaces it."""
        async with self:
            turn, proposal, given = self._turn, self._proposal, self._given
        if proposal is None:
            return
        try:
            async for _turn in Watcher(self, actor, "trial").looks():
                await rate_limits.spend(rate_limits.PREVIEWS, actor.user_id)
                async with transaction() as db:
                    planned = await try_address.plan(db, gateways(), actor, proposal, given)
                found = await try_address.run(gateways(), planned)
                async with self:
                    if self._turn != turn:
                        return
                    self.busy = False
                    self.tried = f"{found.name} ({found.address})" if found.name else found.address
                    self.outcome = found.outcome
                    self.lines = [line_of(one) for one in found.requirements]
        except UNREADABLE as refused:
            async with self:
                if self._turn == turn:
                    self.busy, self.fault = False, sentence_of(refused)
