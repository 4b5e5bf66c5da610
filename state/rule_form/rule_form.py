"""The form that adds or edits a verification rule."""

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import reflex as rx

from gateways import gateways
from locales import _
from models import transaction
from models.db.row_ids import row_id
from services.collections import collections
from services.core.actors import Actor
from services.core.errors import FieldRefused, HoldfastError, RuleNotFound, ServerNotFound
from services.engine.previews.proposals import NewRule, NewTiers, Proposal, RuleChange
from services.guilds import members_intent
from services.rules import limits, rules
from services.rules.draft import parsed
from services.rules.expression import Expression, requirements, to_document
from services.rules.limits import RoomView
from services.rules.rules import RuleDraft, RuleView
from services.rules.types.registry import rule_type
from services.rules.wording import Names
from services.servers import servers
from state.core.errors import UNREADABLE, sentence_of
from state.core.gate import signed_in, writes
from state.core.retry import ask
from state.core.session import SessionState
from state.core.toasts import refuse, say
from state.dashboard.server_page import ServerPageState
from state.rule_form.chain_options import CHAIN_OPTIONS, ChainOptionView, chain_options
from state.rule_form.condition_draft import COUNTING, LIMITED, OF_COLLECTIONS, ConditionDraft
from state.rule_form.condition_fields import CONTRACT_INPUT, TOKEN_INPUT
from state.rule_form.condition_groups import from_tree
from state.rule_form.other_changes import OtherChanges
from state.rule_form.preview import RulePreviewState
from state.rule_form.role_options import RoleOptions
from state.rule_form.rule_fault import NO_FAULT, OWN_FIELDS, RefusedField, RuleFault, condition_fault
from state.rule_form.tiers import TierList, drafts, tier_fault
from state.rule_form.try_call import ViewCallTrial

_log = logging.getLogger(__name__)

RULE_PARAMETER = "ruleId"
"""The parameter of the address that names the stored rule."""
_OUTCOME = frozenset({"ruleName", "roleId", "takesOver", "delegated", "removal", "state"})
"""The fields of a change that are no conditions."""


class RuleFormState(ViewCallTrial, RoleOptions, TierList, RefusedField, OtherChanges, rx.State):
    """The fields of a new rule, or of the stored one that `rule_id` names."""

    rule_id: int = 0
    missing: bool = False
    unknown_server: bool = False
    load_fault: str = ""
    """Why the stored rule could not be read; otherwise empty."""
    visit: int = -1
    """The page load that the fields belong to; the fields of an earlier one are hidden and reset."""
    loaded: bool = False
    members_unheard: bool = False
    """Whether the bot receives no member events, so that a take-over reaches only people it knows."""
    rule_name: str = ""
    room: str = ""
    """How much of its limits the server has used."""
    full: str = ""
    """Why no rule can be added, shown before anything is entered; otherwise empty."""
    chains: list[ChainOptionView] = CHAIN_OPTIONS
    pending: bool = False
    saved: bool = False
    """Whether the rule is saved, so that a second press of the button saves nothing."""
    changed: bool = False
    """Whether anything differs from the form as it was opened, and would be lost with it."""
    asking: bool = False
    """Whether the dialog that asks before a change is saved is open."""
    turn: int = 0
    """Changes with the rule that is shown, so that the inputs are created again."""
    proposal_key: str = ""
    """Changes with each version of the rule that could be saved; empty while something is missing."""
    conditions_key: str = ""
    """Changes with the server and all that decides about a wallet: conditions, and whether delegated vaults count."""
    _kept: tuple[str, str] = ("", "")
    """A stored rule's conditions and name. The name is kept while the conditions are unchanged."""
    _shown: dict[str, Any] = {}
    """A stored rule's fields as they were read."""
    _server_id: int = 0
    _opened: str = ""
    """The form as it was opened: without the person's changes."""

    @signed_in
    async def load(self, actor: Actor):
        """Start with the defaults or the stored rule, then fetch the server's roles.

        The fields stay after a mere reconnect, and when the same person logs in again after the session ended here.
        """
        session, page = await self.get_state(SessionState), await self.get_state(ServerPageState)
        visit, number = session.visit, self.router.url.query_parameters.get(RULE_PARAMETER, "")
        page._read_address()
        asked = row_id(number) or 0, page.server_id
        left = session._left_in == self.visit and (self.rule_id, self._server_id) == asked
        impact = await self.get_state(RulePreviewState)
        if (left or self.visit == visit) and self.loaded and not self.saved:
            self.visit, self.pending, self.asking = visit, False, self.asking and not left
            if impact.busy:  # the process that read it may be gone
                yield RulePreviewState.watch
            return
        self._clear()
        impact._ask(None)
        self.rule_id, self._server_id = asked
        self.chains = chain_options()
        self.visit = visit
        yield
        try:
            await ask(lambda db: self._read(db, actor, page, number))
        except RuleNotFound:
            self.missing = True
        except ServerNotFound:
            self.unknown_server = True
        except UNREADABLE as fault:
            self._failed(fault)
        finally:
            self.roles_loaded, self.loaded = True, not self.load_fault
        self._changed()
        async for outcome in self._read_traits(actor):
            yield outcome

    async def _read(self, db: Any, actor: Actor, page: ServerPageState, number: str) -> None:
        """Read the server, its roles, and the stored rule unless `number` is empty."""
        server = await servers.get(db, gateways(), actor, page.server_id)
        page._name(server.id, server.name)
        page.bot_invited = server.bot_invited
        if number:
            rule = await rules.get(db, gateways(), actor, self.rule_id)
            tree = parsed(rule.expression)
            places = [(leaf.chain, leaf.contract) for leaf in requirements(tree)]
            self._show_rule(rule, tree, await collections.names(db, places), page.server_id)
        self._show_room(await limits.room(db, page.server_id))
        found = await servers.roles(db, gateways(), actor, server.id)
        self.members_unheard = not await members_intent.hears_members(db)
        self._offer(found)

    def _failed(self, fault: Exception) -> None:
        """Note what could not be read: the form is not shown without its rule, but it is shown without the roles."""
        message = sentence_of(fault)
        _log.info("rule form not loaded rule=%s reason=%s", self.rule_id, message)
        if self.rule_id and not self._kept[1]:
            self.load_fault = message
        else:
            self.roles_failed, self.roles_fault = True, message

    def _clear(self) -> None:
        self.rule_id, self.missing, self.loaded, self.asking = 0, False, False, False
        self.unknown_server, self.load_fault, self.room, self.full = False, "", "", ""
        self.rule_name, self._kept, self.pending = "", ("", ""), False
        self._clear_refusal()
        self._shown, self.saved = {}, False
        self.tiers, self._unread = [], {}
        self._clear_outcome()
        self._clear_trial()
        self._begin()
        self._sync()
        self._opened, self.changed, self.proposal_key = self._entered(), False, ""
        self.turn += 1

    def _show_rule(self, rule: RuleView, tree: Expression, names: Names, server_id: int) -> None:
        if rule.server_id != server_id:
            raise RuleNotFound
        self._resume(from_tree(tree), tree, names)
        self._sync()
        self._kept = self._signature(), rule.rule_name
        self._show_outcome(rule)
        self.rule_name = rule.rule_name
        self._shown, self._opened = self._fields(self._draft(server_id)), self._entered()
        self._note_known(rule)
        self.turn += 1

    def _show_room(self, room: RoomView) -> None:
        self.room = room.words
        self.full = "" if self.rule_id else room.refusal

    def _signature(self) -> str:
        return repr((self._slots, self._joins))

    def _entered(self) -> str:
        """Return what a person can change, without what only follows from it: the names, and the role's colour."""
        name = self.rule_name if self.rule_id else ""
        outcome = self.role_id, self.removal, self._hours(), self.shadow, self.takes_over, self.delegated
        return _digest((self._signature(), name, outcome, self.tiers))

    def _changed(self) -> None:
        """Update what depends on the fields: the name, the words, and whether the rule could be saved."""
        self._sync()
        signature, name = self._kept
        self.rule_name = name if self.too_deep or signature == self._signature() else self._composed_name()
        self._forget_other_trial()
        self._recheck()

    def _recheck(self) -> None:
        self._clear_refusal()
        self.changed = self._entered() != self._opened
        self.proposal_key = "" if self._first_fault().text else _digest((self._draft(0), self.tiers))
        self.conditions_key = _digest((self._server_id, self._signature(), self._stored, self.delegated))

    def _first_fault(self) -> RuleFault:
        """Return what is wrong with the rule; NO_FAULT if nothing is.

        The conditions come first, as on the screen: the rule's name follows from them and cannot be typed.
        """
        for slot in self._ordered():
            if slot.number == self.open and self.token_fault:
                return RuleFault(self.token_fault, slot.number, TOKEN_INPUT)
            # A URL is never a contract: why it could not be read helps more than what an address looks like.
            linked = self._unread.get((slot.draft.chain, slot.draft.contract)) if "/" in slot.draft.contract else ""
            only = OWN_FIELDS if self.too_deep else None
            if fault := condition_fault(slot.draft, self._drafted(slot.draft, None), linked or "", only):
                return replace(fault, number=slot.number)
        if not self.rule_name:
            # The name lacks that of a collection: why it could not be read helps more than that the name is missing.
            unread = ((self._unread.get((one.draft.chain, one.draft.contract)), one.number) for one in self._ordered())
            unnamed = (_("Rule name is required"), self.open)
            return RuleFault(*next(((said, number) for said, number in unread if said), unnamed), CONTRACT_INPUT)
        if not self.role_id:
            return RuleFault(_("Role is required"), self.open, "roleId")
        fault = tier_fault(self._draft(0), self.tiers) if self.has_tiers else NO_FAULT
        return replace(fault, number=self.open) if fault.text else fault

    @rx.var
    def tiered(self) -> bool:
        """Return whether further tiers can be added: for a new rule with one condition that counts."""
        return not self.rule_id and not self.composed and self.type in COUNTING and self.type in LIMITED

    @property
    def has_tiers(self) -> bool:
        """Whether saving makes several rules."""
        return self.tiered and bool(self.tiers)

    def _chosen_roles(self) -> list[str]:
        return [self.role_id, *(tier.role for tier in self.tiers)]

    def _first_most(self) -> str:
        return self.max_tokens

    @signed_in
    async def preview(self, actor: Actor):
        """Read which members the rule concerns as it is filled in now."""
        impact = await self.get_state(RulePreviewState)
        impact._ask(await self._proposal() if self.proposal_key else None)
        return RulePreviewState.watch

    async def _proposal(self) -> Proposal:
        page = await self.get_state(ServerPageState)
        draft = self._draft(page.server_id)
        if self.rule_id:
            return RuleChange(self.rule_id, self._changes(draft))
        new = self._new(draft)
        return NewRule(new[0]) if len(new) == 1 else NewTiers(tuple(new))

    def _new(self, draft: RuleDraft) -> list[RuleDraft]:
        """Return the new rules: one, or one for each tier."""
        return drafts(draft, self.tiers, replace(self._filled_in(), max_tokens="").name) if self.has_tiers else [draft]

    @signed_in
    async def refresh_name(self, actor: Actor) -> None:
        """Restore the automatic name."""
        if not self.contract and self.type in OF_COLLECTIONS and not self.too_deep:
            await refuse(self, _("No contract address"))
        if self._composed_name():
            self._kept = "", self.rule_name
        self._changed()

    def _draft(self, server_id: int) -> RuleDraft:
        tree = self._stored if self.too_deep else self._tree()
        composed = self.composed or self.too_deep or "expression" in self._shown  # the last: one condition is left
        return self._drafted(self._filled_in(), to_document(tree) if tree and composed else None, server_id)

    def _drafted(self, condition: ConditionDraft, expression: Any, server_id: int = 0) -> RuleDraft:
        leaf = condition.leaf
        trait_type, trait_value = leaf.traits[0] if leaf.traits else (None, None)
        return RuleDraft(
            rule_name=self.rule_name, contract_address=leaf.contract, blockchain=leaf.chain,
            verification_type=leaf.type, min_tokens=leaf.min_tokens, role_id=self.role_id,
            role_color=self.role_color, trait_type=trait_type, trait_value=trait_value,
            token_ids=leaf.token_ids, expression=expression, removal_mode=self.removal,
            removal_hours=self._hours(), shadow=self.shadow, takes_over=self.takes_over,
            delegated=self.delegated, server_id=server_id, max_tokens=leaf.max_tokens,
            more_traits=leaf.traits[1:], details=condition.sent,
        )  # fmt: skip

    def _changes(self, draft: RuleDraft) -> dict[str, Any]:
        """Return what was changed of a stored rule, so that nothing that others changed meanwhile is changed back."""
        fields, shown = self._fields(draft), self._shown
        changes = {
            name: value
            for name, value in fields.items()
            # A rule that was paused automatically resumes when it is saved.
            if name in _OUTCOME and (shown.get(name) != value or (name == "ruleName" and self.paused))
        }
        conditions = _conditions(fields)
        return changes if conditions == _conditions(shown) else changes | conditions

    def _fields(self, draft: RuleDraft) -> dict[str, Any]:
        """Return a stored rule as filled in: its conditions, and which role it gives to whom."""
        changes: dict[str, Any] = {
            "ruleName": draft.rule_name, "roleId": draft.role_id, "takesOver": draft.takes_over,
            "delegated": draft.delegated,
            "removal": {"mode": draft.removal_mode, "hours": draft.removal_hours},
        }  # fmt: skip
        if state := self._new_state():
            changes["state"] = state
        if draft.expression is not None:
            return changes | {"expression": draft.expression}
        return changes | {
            "contractAddress": draft.contract_address, "blockchain": draft.blockchain, "minTokens": draft.min_tokens,
            "verificationType": draft.verification_type,
            "traits": ((draft.trait_type, draft.trait_value), *draft.more_traits) if draft.trait_type else (),
            "tokenIds": list(draft.token_ids), "maxTokens": draft.max_tokens,
            # An emptied field is sent too, or the stored one would stay.
            **{one.name: None for one in rule_type(draft.verification_type).fields if one.kind != "upload"},
            **draft.details,
        }  # fmt: skip

    @writes
    async def save(self, actor: Actor, form: dict[str, str | bool | None]):
        """Create the rule and return to the server's configuration. A change that can cost a role is confirmed first.

        A form also sends its hidden fields, which are empty.
        """
        self.pending = True
        self._clear_refusal()
        yield
        try:
            if self.saved:
                async for outcome in self._write(actor):
                    yield outcome
                return
            # The person submitted before the pause after typing, so look up the collection now.
            typed = form.get(CONTRACT_INPUT)
            async for outcome in self._take(actor, typed if isinstance(typed, str) else self.contract):
                yield outcome
            self._take_entry(form)
            fault = self._first_fault()
            if fault.text:
                if fault.number != self.open and not self.too_deep:
                    self._show(fault.number)
                    self._sync()
                await self._refuse(fault.text, fault.field)
            elif undone := await self._undone(actor, self.rule_id, self._changes(self._draft(0))):
                await self._refuse(undone)
            elif self.rule_id or self.takes_over:
                impact = await self.get_state(RulePreviewState)
                impact._ask(await self._proposal())
                self.asking = True
                yield RulePreviewState.watch
            else:
                async for outcome in self._write(actor):
                    yield outcome
        finally:
            self.pending = False

    @signed_in
    async def think_again(self, actor: Actor, is_open: bool) -> None:
        """Close the dialog."""
        if not is_open:
            self.asking = False

    @writes
    async def confirm(self, actor: Actor):
        """Save the rule that the dialog is about."""
        self.asking, self.pending = False, True
        self._clear_refusal()
        yield
        try:
            # Somebody may have saved while the dialog was open.
            if not self.saved and (undone := await self._undone(actor, self.rule_id, self._changes(self._draft(0)))):
                await self._refuse(undone)
                return
            async for outcome in self._write(actor):
                yield outcome
        finally:
            self.pending = False

    async def _write(self, actor: Actor):
        page = await self.get_state(ServerPageState)
        if self.saved:
            yield rx.redirect(page.config_url)
            return
        draft = self._draft(page.server_id)
        if self.has_tiers and (wrong := tier_fault(draft, self.tiers)).text:
            # The dialog may have been confirmed after a tier was changed.
            await self._refuse(wrong.text, wrong.field)
            return
        try:
            async with transaction() as db:
                if self.rule_id:
                    await rules.change(db, gateways(), actor, self.rule_id, self._changes(draft))
                else:
                    await rules.create_all(db, gateways(), actor, self._new(draft))
        except HoldfastError as fault:
            field = fault.field if isinstance(fault, FieldRefused) else ""
            await self._refuse(fault.message, field if self._is_single(field) else "")
            if field == "roleId":
                # The options are those of the role when the form was opened.
                yield RuleFormState.load_roles
        else:
            self.saved = True
            count = len(self.tiers) + 1
            if self.rule_id:
                done = _("Verification rule saved successfully!")
            elif self.has_tiers:
                done = _("{count} verification rules created successfully!").format(count=count)
            else:
                done = _("Verification rule created successfully!")
            await say(self, _("Success"), done)
            yield rx.redirect(page.config_url)

    def _is_single(self, field: str) -> bool:
        """Return whether the form has one field of this name: several conditions and tiers have each their own."""
        return not self.has_tiers if field == "roleId" else field in OWN_FIELDS or len(self._slots) == 1

    async def _refuse(self, message: str, field: str = "") -> None:
        self.pending = False
        self._note_refusal(message, field)
        await refuse(self, _("Error"), message or _("Failed to create verification rule"))


def _conditions(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a change that are conditions: they are sent together or not at all."""
    return {name: value for name, value in fields.items() if name not in _OUTCOME}


def _digest(what: object) -> str:
    return hashlib.sha256(repr(what).encode()).hexdigest()[:16]
