"""The state of the fields of one condition in the rule form, with what is looked up: collections, traits, choices."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import reflex as rx

from gateways import gateways
from locales import _
from models import transaction
from services.collections import collections
from services.collections.coins import is_native
from services.core.actors import Actor
from services.core.addresses import shorten
from services.core.chain_names import chain_title, form_order
from services.core.errors import CollectionElsewhere, FieldRefused, HoldfastError, ProviderUnavailable, TooMany
from services.rules import draft as rule_draft
from services.rules.expression import MAX_LEAVES, MOST_TRAITS
from services.rules.types import token_ids
from services.rules.types.registry import DETAIL_FIELDS
from services.runtime import rate_limits
from services.runtime.database_faults import UNANSWERED
from state.core.errors import UNREADABLE
from state.core.gate import signed_in
from state.core.toasts import refuse, say
from state.rule_form.condition_draft import (
    COMPARISONS,
    COUNTING,
    DEFAULT_CHAIN,
    DEFAULT_TYPE,
    EXACTLY,
    LIMITED,
    OF_COINS,
    OF_COLLECTIONS,
    WITH_TRAITS,
    ConditionDraft,
    TraitView,
    as_typed,
    with_chosen,
)

CONTRACT_INPUT, TOKEN_INPUT = "contractAddress", "tokenEntry"
"""Names of the inputs that handlers fill or clear."""
LONGEST, LONGEST_DETAIL, MOST_OFFERS = 500, 5_000, 6
MOST_UNREAD = 2 * MAX_LEAVES
"""Failed lookups that a form remembers; more than it can show, and somebody may type other addresses all day."""
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
PENDING, FAILED, NONE = "pending", "failed", "none"


@dataclass(frozen=True)
class OfferView:
    """A collection offered in place of the one entered."""

    chain: str
    contract: str
    label: str


def _offer(found: collections.CollectionView) -> OfferView:
    where = _("{address} on {chain}").format(
        address=shorten(found.contract_address), chain=chain_title(found.blockchain)
    )
    return OfferView(found.blockchain, found.contract_address, f"{found.name} ({where})")


class ConditionFields(rx.State, mixin=True):
    """The fields of the open condition. A form that uses them implements `_changed`."""

    type: str = DEFAULT_TYPE
    chain: str = DEFAULT_CHAIN
    contract: str = ""
    given: str = ""
    """The text that `contract` was found for. The page replaces it with the address unless more was typed since."""
    collection: str = ""
    min_tokens: str = "1"
    max_tokens: str = ""
    details: dict[str, str] = dict.fromkeys(DETAIL_FIELDS, "")
    """The texts typed into the fields that only one type has, by field name."""
    more_traits: list[TraitView] = []
    trait_type: str = ""
    trait_compare: str = EXACTLY
    trait_value: str = ""
    token_ids: list[str] = []
    looking: bool = False
    trait_types: list[str] = []
    types_state: str = NONE
    """Loading state of the trait types: `none`, `pending` or `failed`; the same for the values."""
    trait_values: list[str] = []
    values_state: str = NONE
    token_fault: str = ""
    offers: list[OfferView] = []
    """Collections to choose from if the one entered cannot be used."""
    open: int = 1
    """The number of the open condition."""
    token_entry: str = ""
    """The entry of token ids that was added or refused last. The page empties the field of it, or puts it back."""
    token_entries: int = 0
    """How many entries were added or refused."""
    _left: str = ""
    """The entry of token ids that was added when it lost the focus; the press that took the focus sends it again."""
    _unread: dict[tuple[str, str], str] = {}
    """Why the last lookup of a collection failed, by chain and address."""

    @rx.var
    def chain_name(self) -> str:
        """Return the chosen chain as people write it."""
        return chain_title(self.chain)

    @rx.var
    def contract_fault(self) -> str:
        """Return why the entered collection could not be read, until it is read or another one is entered."""
        return "" if self.collection or self.looking else self._unread.get((self.chain, self.contract), "")

    @rx.var
    def type_choices(self) -> list[str]:
        """Return the trait types to choose from, with the chosen one even if it is no longer listed."""
        return with_chosen(self.trait_types, self.trait_type)

    @rx.var
    def value_choices(self) -> list[str]:
        """Return the values to choose from, with the chosen one."""
        return with_chosen(self.trait_values, self.trait_value)

    @rx.var
    def numeric(self) -> bool:
        """Return whether all listed values are numbers, so that at least and at most make sense."""
        return bool(self.trait_values) and all(_NUMBER.fullmatch(value) for value in self.trait_values)

    def _changed(self) -> None:
        """React to changed fields."""
        raise TypeError("a form says what depends on its fields")

    def _at(self, number: int, **chosen: str) -> bool:
        """Open the condition of an event; return whether it is there and `chosen`, values by field, would change it."""
        raise TypeError("a form has a list of conditions")

    def _filled_in(self) -> ConditionDraft:
        return ConditionDraft(
            self.type, self.chain, self.contract, self.collection, self.min_tokens, self.trait_type,
            self.trait_compare, self.trait_value, tuple(self.token_ids), self.max_tokens,
            tuple((one.kind, one.value) for one in self.more_traits), tuple(self.details.items()),
        )  # fmt: skip

    def _fill_in(self, draft: ConditionDraft) -> None:
        self.type, self.chain, self.min_tokens = draft.type, draft.chain, draft.min_tokens
        self.max_tokens, self.details = draft.max_tokens, dict.fromkeys(DETAIL_FIELDS, "") | dict(draft.details)
        self.more_traits = [TraitView(kind, value) for kind, value in draft.more_traits]
        self.contract = self.given = draft.contract
        self.collection, self.offers = draft.collection, []
        self.trait_type, self.trait_compare, self.trait_value = draft.trait_type, draft.trait_compare, draft.trait_value
        self.token_ids, self.token_fault, self.looking = list(draft.token_ids), "", False
        self._forget_traits()

    def _forget_traits(self) -> None:
        self.trait_types, self.types_state = [], NONE
        self.trait_values, self.values_state = [], NONE

    @signed_in
    async def choose_type(self, actor: Actor, number: int, value: str):
        """Choose another type of condition."""
        if value in rule_draft.TYPES and self._at(number, type=value):
            self.type = value
            # Not every type shows these fields, and a hidden value could neither be seen nor corrected.
            if value not in COUNTING:
                self.min_tokens = "1"
            if value not in LIMITED:
                self.max_tokens = ""
            self._changed()
            async for outcome in self._read_traits(actor):
                yield outcome

    @signed_in
    async def choose_chain(self, actor: Actor, number: int, value: str):
        """Choose another chain and look up the entered address there."""
        if value not in form_order() or not self._at(number, chain=value):
            return
        self.chain = value
        self._forget()
        if self.type in OF_COLLECTIONS and self._is_whole(self.contract):
            async for outcome in self._look_up(actor):
                yield outcome

    @signed_in
    async def enter_contract(self, actor: Actor, number: int, value: str):
        """Store the typed or pasted text; look it up once it is an address or a URL."""
        if number == self.open:
            async for outcome in self._take(actor, value):
                yield outcome

    @signed_in
    async def refresh_collection(self, actor: Actor, number: int):
        """Look the collection up again."""
        if not self._at(number):
            return
        if not self.contract:
            await refuse(self, _("No input"), _("Enter a contract address or collection URL first"))
            return
        async for outcome in self._look_up(actor, no_older_than=timedelta(0)):
            yield outcome

    @signed_in
    async def take_offer(self, actor: Actor, number: int, chain: str, contract: str):
        """Use a collection that was offered."""
        if not self._at(number) or not any((one.chain, one.contract) == (chain, contract) for one in self.offers):
            return
        self.chain = chain
        self.contract = self.given = contract
        self._forget()
        yield rx.set_value(CONTRACT_INPUT, contract)
        async for outcome in self._look_up(actor):
            yield outcome

    async def _take(self, actor: Actor, value: str):
        given = value.strip()[:LONGEST]
        if given in {self.contract, self.given}:
            if given != self.contract:
                yield rx.set_value(CONTRACT_INPUT, self.contract)
            return
        self.contract = self.given = given
        self._forget()
        if self.type in OF_COLLECTIONS and self._is_whole(given):
            async for outcome in self._look_up(actor):
                yield outcome

    def _is_whole(self, given: str) -> bool:
        """Return whether the typed text names a contract or, if the condition asks for a coin, the chain's own coin."""
        return collections.is_whole(given) or (self.type in OF_COINS and is_native(given))

    def _forget(self, *, keep_typed: bool = False) -> None:
        """Clear the known collection, because the fields now name another or it cannot be read."""
        self.collection = ""
        if not keep_typed:
            self.trait_type, self.trait_value, self.trait_compare = "", "", EXACTLY
            self.more_traits = []
        self.offers = []
        self._forget_traits()
        self._changed()

    async def _look_up(self, actor: Actor, no_older_than: timedelta = collections.FRESH_FOR):
        """Look up the collection and take over its address, chain and name, or show why there is none."""
        place = self.chain, self.contract
        try:
            await rate_limits.spend(rate_limits.LOOKUPS, actor.user_id)
        except TooMany as fault:
            self._note_unread(place, fault.message)
            raise
        self.looking = True
        self._unread.pop(place, None)
        yield
        try:
            with collections.asked_by(actor):
                async with transaction() as db:
                    if self.type in OF_COINS:
                        found = await collections.coin(db, gateways(), self.contract, self.chain)
                    else:
                        found = await collections.parse(
                            db, gateways(), self.contract, self.chain, no_older_than=no_older_than
                        )
        except ProviderUnavailable:
            self._forget(keep_typed=True)
            self._note_unread(place, _("Failed to fetch collection data. Please try again."))
            await refuse(self, _("Connection error"), self._unread[place])
        except HoldfastError as fault:
            self._forget()
            if isinstance(fault, CollectionElsewhere | FieldRefused):
                self.offers = [_offer(one) for one in fault.offers[:MOST_OFFERS]]
            self._note_unread(place, fault.message or _("Please check the URL or contract address"))
            await refuse(self, _("Collection not found"), self._unread[place])
        except UNANSWERED:
            self._note_unread(place, _("Failed to fetch collection data. Please try again."))
            raise
        else:
            self.contract, self.chain, self.collection = found.contract_address, found.blockchain, found.name
            self.offers = []
            self._changed()
            await say(self, _("Collection found"), _("Successfully loaded: {name}").format(name=found.name))
        finally:
            self.looking = False
        async for outcome in self._read_traits(actor):
            yield outcome

    def _note_unread(self, place: tuple[str, str], why: str) -> None:
        """Note why a collection could not be read, and forget the oldest of too many."""
        self._unread.pop(place, None)
        self._unread[place] = why
        for oldest in list(self._unread)[:-MOST_UNREAD]:
            del self._unread[oldest]

    async def _read_traits(self, actor: Actor):
        """Read the trait types. If that fails the person types them, and no message is shown.

        Each read counts as a lookup: it asks OpenSea, or a node and twenty tokens' metadata.
        """
        self._forget_traits()
        if self.type not in WITH_TRAITS or not self.collection:
            return
        self.types_state = PENDING
        yield
        try:
            await rate_limits.spend(rate_limits.LOOKUPS, actor.user_id)
            with collections.asked_by(actor):
                async with transaction() as db:
                    self.trait_types = await collections.trait_types(db, gateways(), self.contract, self.chain)
        except UNREADABLE:
            self.trait_types = []
        self.types_state = NONE if self.trait_types else FAILED
        async for outcome in self._read_values(actor):
            yield outcome

    async def _read_values(self, actor: Actor):
        self.trait_values, self.values_state = [], NONE
        if not self.trait_type or self.trait_type not in self.trait_types:
            return
        self.values_state = PENDING
        yield
        try:
            await rate_limits.spend(rate_limits.LOOKUPS, actor.user_id)
            with collections.asked_by(actor):
                async with transaction() as db:
                    self.trait_values = await collections.trait_values(
                        db, gateways(), self.contract, self.chain, self.trait_type
                    )
        except UNREADABLE:
            self.values_state = FAILED
        else:
            self.values_state = NONE

    @signed_in
    async def choose_trait_type(self, actor: Actor, number: int, value: str):
        """Choose or type another trait type, and read its values."""
        kind, late = value[:LONGEST], number != self.open
        if not self._at(number, trait_type=kind):
            return
        former, self.trait_type = self.trait_type, kind
        self._changed()
        if late:
            # The types tell whether the value was chosen from a list; those of another condition were listed until now.
            async for outcome in self._read_traits(actor):
                yield outcome
        if former in self.trait_types if late else self.trait_types:
            self.trait_value, self.trait_compare = "", EXACTLY
            self._changed()
        if not late:
            async for outcome in self._read_values(actor):
                yield outcome

    @signed_in
    async def choose_compare(self, actor: Actor, number: int, value: str) -> None:
        """Choose how the value is compared: exactly, as a bound, or as a range."""
        if value in COMPARISONS and self._at(number, trait_compare=value):
            self.trait_compare = value
            self._changed()

    @signed_in
    async def enter_trait_value(self, actor: Actor, number: int, value: str) -> None:
        """Choose or type the trait's value."""
        if self._at(number):
            self.trait_value = value[:LONGEST]
            self._changed()

    @signed_in
    async def enter_min_tokens(self, actor: Actor, number: int, value: float | None) -> None:
        """Set the minimum number of tokens; `value` is None for an emptied field."""
        if self._at(number):
            self.min_tokens = as_typed(value)
            self._changed()

    @signed_in
    async def enter_max_tokens(self, actor: Actor, number: int, value: float | None) -> None:
        """Set the maximum number of tokens; without one there is no limit."""
        if self._at(number):
            self.max_tokens = as_typed(value)
            self._changed()

    @signed_in
    async def add_trait(self, actor: Actor, number: int):
        """Keep the trait in the fields, so that another one of the same token can be entered."""
        if not self._at(number):
            return
        draft = self._filled_in()
        kind, value = draft.trait_type.strip(), draft.wanted
        one = TraitView(kind, value)
        if not kind or not value or one in self.more_traits:
            await refuse(self, _("No trait"), _("Choose a trait's type and value that are not in the list yet."))
        elif len(self.more_traits) >= MOST_TRAITS - 1:
            said = _("A condition names at most {count} traits of one token.").format(count=MOST_TRAITS)
            await refuse(self, _("Too many traits"), said)
        else:
            self.more_traits = [*self.more_traits, one]
            self.trait_type, self.trait_value, self.trait_compare = "", "", EXACTLY
            self.trait_values, self.values_state = [], NONE
            self._changed()

    @signed_in
    async def remove_trait(self, actor: Actor, number: int, kind: str, value: str) -> None:
        """Remove a trait from the list."""
        if self._at(number):
            self.more_traits = [one for one in self.more_traits if (one.kind, one.value) != (kind, value)]
            self._changed()

    @signed_in
    async def enter_detail(self, actor: Actor, number: int, name: str, value: str) -> None:
        """Fill in a field that only the chosen type has."""
        if name in DETAIL_FIELDS and self._at(number):
            self.details = {**self.details, name: value[:LONGEST_DETAIL]}
            self._changed()

    @signed_in
    async def add_tokens(self, actor: Actor, number: int, form: dict[str, str]):
        """Add an id, a range or a list from the entry; an invalid entry is put back into the field."""
        if self._at(number):
            self._take_entry(form)

    @signed_in
    async def leave_tokens(self, actor: Actor, number: int, value: str) -> None:
        """Add what is in the entry when it loses the focus: another condition may be opened next, and hide it."""
        if number == self.open and self._take_entry({TOKEN_INPUT: value}):
            self._left = value

    def _take_entry(self, form: Mapping[str, Any]) -> bool:
        """Add what was typed into the entry of token ids, also when a rule is saved before it was added.

        Return whether it was added, now or just before.
        """
        entry, self.token_fault = form.get(TOKEN_INPUT), ""
        left, self._left = self._left, ""
        if not isinstance(entry, str) or not entry.strip(" ,"):
            return False
        self.token_entry, self.token_entries = entry, self.token_entries + 1
        if entry == left:
            return True
        try:
            self.token_ids = list(token_ids.added(self.token_ids, entry, self.chain))
        except FieldRefused as fault:
            self.token_fault = fault.message
            return False
        self._changed()
        return True

    @signed_in
    async def remove_token(self, actor: Actor, number: int, entry: str) -> None:
        """Remove an id or a range from the list."""
        if self._at(number):
            self.token_ids = [one for one in self.token_ids if one != entry]
            self.token_fault = ""
            self._changed()
