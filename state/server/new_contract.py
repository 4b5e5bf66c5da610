"""A collection that migrated: the form, what each rule becomes, the dialog before it, and running migrations."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

import reflex as rx

from gateways import gateways
from locales import _, day_and_time, ngettext
from models import transaction
from services.core.actors import Actor
from services.core.addresses import shorten
from services.core.chain_names import chain_title
from services.core.errors import HoldfastError
from services.engine.previews.proposals import MigrationEnd, NewContract
from services.rules.replacements import contract_migrations, running_migrations
from services.rules.replacements.condition_successors import MigrationOrder
from services.rules.replacements.contract_migrations import LeftRule, MigratedRule
from services.rules.replacements.running_migrations import ContractInUse, RunningMigration
from services.runtime import rate_limits
from state.core.dialog import Dialog
from state.core.entered_dates import end_of_day
from state.core.form_fault import FormFault
from state.core.gate import public, signed_in, writes
from state.core.toasts import say
from state.dashboard.server_page import ServerPageState, ServerTab, after_change
from state.rule_form.preview import RulePreviewState
from state.server.rules import RulesState

APPLY, END = "apply", "end"
"""The actions that the dialog asks about."""
LONGEST_ADDRESS = 200


@dataclass(frozen=True)
class OldContractView:
    """A contract to choose as the old one; `key` is its chain and its address."""

    key: str
    label: str


@dataclass(frozen=True)
class RunningMigrationView:
    """A migration in which both contracts count: its title, and until when, as sentences."""

    id: int
    title: str
    text: str


class MigrationState(FormFault, Dialog, ServerTab, rx.State):
    """The card of the Rules tab about a collection that has another contract now."""

    contracts: list[OldContractView] = []
    running: list[RunningMigrationView] = []
    old: str = ""
    new_chain: str = ""
    """The chain of the new contract; empty for the chain of the old one."""
    new: str = ""
    same_ids: bool = False
    both: bool = True
    until: str = ""
    """The last day on which both count, as `YYYY-MM-DD` in UTC; empty for no date."""
    first_day: str = ""
    looking: bool = False

    rules: list[MigratedRule] = []
    left: list[LeftRule] = []
    looked: bool = False
    """Whether the two lists are about the form as it is filled in."""

    asked_title: str = ""
    asked_id: int = 0
    working: bool = False
    _tab: ClassVar[str] = "rules"

    @rx.var
    def changing(self) -> int:
        """Return how many rules the migration changes."""
        return len(self.rules)

    async def _read(self, actor: Actor, page: ServerPageState) -> None:
        self.asked = ""

        async def read(db: Any) -> tuple[tuple[ContractInUse, ...], tuple[RunningMigration, ...], datetime]:
            used = await running_migrations.in_use(db, gateways(), actor, page.server_id)
            found = await running_migrations.running(db, gateways(), actor, page.server_id)
            return used, found, await db.now()

        if (found := await self._tried(page, read)) is None:
            return
        self.contracts = [OldContractView(f"{one.chain}:{one.contract}", _label(one)) for one in found[0]]
        self.running = [_running(one) for one in found[1]]
        if self.shown_for != page.server_id:
            self.old, self.new_chain, self.same_ids, self.both = "", "", False, True
            self.new = self.until = ""
        if self.old not in {one.key for one in self.contracts}:
            self.old = self.contracts[0].key if self.contracts else ""
            self._changed()
        self.first_day = f"{found[2].astimezone(UTC):%Y-%m-%d}"
        self.shown_for = page.server_id

    def _changed(self) -> None:
        self.looked, self.rules, self.left, self.asked = False, [], [], ""
        self._clear_fault()

    @public
    def set_old(self, key: str) -> None:
        """Choose the contract that was replaced."""
        self.old = key[:LONGEST_ADDRESS]
        self._changed()

    @public
    def set_new_chain(self, chain: str) -> None:
        """Choose the new contract's chain; empty for the same one."""
        self.new_chain = chain[:40]
        self._changed()

    @public
    def set_new(self, address: str) -> None:
        """Set the new contract's address."""
        self.new = address[:LONGEST_ADDRESS]
        self._changed()

    @public
    def set_same_ids(self, same: bool) -> None:
        """Say whether each token has the same ID there."""
        self.same_ids = same
        self._changed()

    @public
    def set_both(self, both: bool) -> None:
        """Let both contracts count for now, or only the new one."""
        self.both = both
        self._changed()

    @public
    def set_until(self, value: str) -> None:
        """Set the last day on which both count; empty for none."""
        self.until = value[:10]
        self._changed()

    @signed_in
    async def look(self, actor: Actor):
        """Show what each rule becomes; changes nothing."""
        self.looking = True
        self._changed()
        yield
        try:
            page = await self._page()
            await rate_limits.spend(rate_limits.PREVIEWS, actor.user_id)
            async with transaction() as db:
                found = await contract_migrations.preview(db, gateways(), actor, page.server_id, self._order())
        except HoldfastError as fault:
            await self._show_fault(_("Could not look at the rules"), fault)
        else:
            self.looked = True
            self.rules, self.left = list(found.rules), list(found.left)
        finally:
            self.looking = False

    def _order(self) -> MigrationOrder:
        """Return the order that the form describes. Raises FieldRefused for a text that is not a date."""
        chain, _colon, contract = self.old.partition(":")
        return MigrationOrder(
            chain=chain, contract=contract, new_contract=self.new, new_chain=self.new_chain, same_ids=self.same_ids,
            both=self.both, until=end_of_day(self.until, "until") if self.both else None,
        )  # fmt: skip

    @signed_in
    async def ask_apply(self, actor: Actor):
        """Open the dialog that shows what the migration would do to members."""
        if not self.looked or not self.rules:
            return
        self.asked, self.asked_id = APPLY, 0
        count = len(self.rules)
        title = ngettext("Replace the contract in {count} rule?", "Replace the contract in {count} rules?", count)
        self.asked_title = title.format(count=count)
        page, impact = await self._page(), await self.get_state(RulePreviewState)
        impact._ask(NewContract(page.server_id, self._order()))
        yield RulePreviewState.watch

    @signed_in
    async def ask_end(self, actor: Actor, migration_id: int):
        """Open the dialog that shows what the end of a migration would do to members."""
        one = next((one for one in self.running if one.id == migration_id), None)
        if one is None:
            return
        self.asked, self.asked_id, self.asked_title = END, one.id, one.title
        page, impact = await self._page(), await self.get_state(RulePreviewState)
        impact._ask(MigrationEnd(page.server_id, one.id))
        yield RulePreviewState.watch

    @writes
    async def confirm(self, actor: Actor):
        """Carry out what the dialog asks about."""
        what, self.asked = self.asked, ""
        if what not in {APPLY, END}:
            return
        self.working = True
        yield
        try:
            page = await self._page()
            async with transaction() as db:
                if what == APPLY:
                    done = await contract_migrations.apply(db, gateways(), actor, page.server_id, self._order())
                else:
                    done = await contract_migrations.end(db, gateways(), actor, page.server_id, self.asked_id)
            if what == APPLY:
                self.new = self.until = ""
            self._changed()
            await after_change(self._read(actor, page))
            count = len(done.rules)
            title = ngettext("{count} rule changed", "{count} rules changed", count).format(count=count)
            await say(self, title, _("Members are being checked now. Activity has the way back."))
        finally:
            self.working = False
        yield RulesState.load


def _label(one: ContractInUse) -> str:
    told = ngettext("{name} on {chain}, {count} rule", "{name} on {chain}, {count} rules", one.rules)
    return told.format(name=one.name, chain=chain_title(one.chain), count=one.rules)


def _running(one: RunningMigration) -> RunningMigrationView:
    names = [
        _("{collection} on {chain}").format(collection=name if name != address else shorten(address), chain=chain)
        for name, address, chain in (
            (one.name, one.contract, chain_title(one.chain)),
            (one.new_name, one.new_contract, chain_title(one.new_chain)),
        )
    ]
    # Translators: a contract, and the one that replaces it.
    title = _("{old} → {new}").format(old=names[0], new=names[1])
    count = len(one.rules)
    if one.until is None:
        told = ngettext(
            "Both count in {count} rule until you end this.", "Both count in {count} rules until you end this.", count
        )
        return RunningMigrationView(one.id, title, told.format(count=count))
    told = ngettext("Both count in {count} rule until {time}.", "Both count in {count} rules until {time}.", count)
    return RunningMigrationView(one.id, title, told.format(count=count, time=day_and_time(one.until)))
