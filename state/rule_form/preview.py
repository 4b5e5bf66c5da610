"""The preview of a rule, read live for the form and for the dialogs of the Rules tab."""

from dataclasses import dataclass

import reflex as rx

from gateways import gateways
from models import transaction
from services.core.actors import Actor
from services.engine.previews import preview
from services.engine.previews.plan import plan
from services.engine.previews.preview import GAIN, KEEP, LOSE, UNKNOWN, Impact
from services.engine.previews.proposals import NewRule, NewTiers, Proposal
from services.runtime import rate_limits
from state.core.errors import UNREADABLE, sentence_of
from state.core.gate import background, signed_in
from state.core.timing import PREVIEW_REST_SECONDS
from state.core.watchers import Watcher, new_turn

SHOWN_PEOPLE = 60
"""Names shown; the numbers count everybody."""


@dataclass(frozen=True)
class PersonView:
    """A member and the result for them: `gain`, `keep`, `lose` or `unknown`."""

    key: str
    name: str
    role_name: str
    outcome: str


class RulePreviewState(rx.State):
    """The one preview on a page: the form's, or the open dialog's."""

    busy: bool = False
    known: bool = False
    """Whether the numbers belong to the current question."""
    gain: int = 0
    keep: int = 0
    lose: int = 0
    unknown: int = 0
    people: list[PersonView] = []
    more: int = 0
    unnamed: int = 0
    """Members who are counted but not listed."""
    looked: int = 0
    concerned: int = 0
    several_roles: bool = False
    fault: str = ""
    _proposal: Proposal | None = None
    _turn: str = ""

    def _ask(self, proposal: Proposal | None) -> None:
        """Set what to preview; `watch` reads it."""
        self._proposal = proposal
        self._turn = new_turn()
        self.busy, self.known, self.fault = proposal is not None, False, ""
        self._show(Impact())

    def _show(self, found: Impact) -> None:
        self.gain, self.keep = found.count(GAIN), found.count(KEEP)
        self.lose, self.unknown = found.count(LOSE), found.count(UNKNOWN)
        self.looked, self.concerned = found.looked, found.concerned
        self.several_roles = len({member.role_id for member in found.members}) > 1
        self.people = [
            PersonView(f"{one.discord_id}:{one.role_id}", one.name, one.role_name, one.outcome)
            for one in found.members[:SHOWN_PEOPLE]
        ]
        self.more = max(0, len(found.members) - SHOWN_PEOPLE)
        self.unnamed = sum(found.unnamed.values())

    @background
    @signed_in
    async def watch(self, actor: Actor) -> None:
        """Read the preview batch by batch; a newer question replaces it."""
        async with self:
            turn, proposal = self._turn, self._proposal
        if proposal is None:
            return
        watcher = Watcher(
            self, actor, "impact", every=PREVIEW_REST_SECONDS if isinstance(proposal, NewRule | NewTiers) else 0.0
        )
        try:
            async for _turn in watcher.looks():
                await rate_limits.spend(rate_limits.PREVIEWS, actor.user_id)
                async with transaction() as db:
                    planned = await plan(db, gateways(), actor, proposal)
                async for found in preview.impacts(gateways(), planned):
                    async with self:
                        if self._turn != turn:
                            return
                        self._show(found)
                async with self:
                    if self._turn == turn:
                        self.busy, self.known = False, True
        except UNREADABLE as refused:
            async with self:
                if self._turn == turn:
                    self.busy, self.known, self.fault = False, False, sentence_of(refused)
