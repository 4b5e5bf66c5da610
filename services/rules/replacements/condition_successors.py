"""The successor on a new contract of each condition on the old one, as the new contract and its traits allow."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from gateways import Gateways
from gateways.chains.catalogue import CHAINS
from gateways.transport.errors import ProviderError
from locales import _
from models.db.session import AsyncSession
from services.collections import collections
from services.collections.lookup import address_on
from services.collections.trait_match import folded
from services.core.addresses import AddressRefused
from services.core.errors import CollectionNotFound, FieldRefused, unavailable
from services.rules import contract_check
from services.rules.draft import chain_refusal
from services.rules.expression import Requirement
from services.rules.types.coin import CoinAmount
from services.rules.types.view_call import ViewCall

Successors = Mapping[Requirement, Requirement | str]
"""Condition → the same condition on the new contract, or why there is none."""


@dataclass(frozen=True, slots=True)
class MigrationOrder:
    """An order to migrate from one contract to another; `same_ids` says that tokens have the same ids on both.

    With `both`, both contracts count `until` a date, or until an admin ends the migration. An empty `new_chain` means
    the same chain.
    """

    chain: str
    contract: str
    new_contract: str
    new_chain: str = ""
    same_ids: bool = False
    both: bool = False
    until: datetime | None = None

    @property
    def old(self) -> tuple[str, str]:
        """The old chain and contract."""
        return self.chain, self.contract

    @property
    def new(self) -> tuple[str, str]:
        """The new chain and contract."""
        return self.new_chain, self.new_contract


def checked(order: MigrationOrder) -> MigrationOrder:
    """Return the order with its addresses in the form of their chains. Raises FieldRefused."""
    new_chain = order.new_chain or order.chain
    for field, chain in (("chain", order.chain), ("newChain", new_chain)):
        if reason := chain_refusal(chain):
            raise FieldRefused(field, reason)
    contract = _address("contract", order.chain, order.contract)
    new = _address("newContract", new_chain, order.new_contract)
    if (order.chain, contract) == (new_chain, new):
        raise FieldRefused("newContract", _("The new contract is the same as the old one."))
    return replace(order, contract=contract, new_chain=new_chain, new_contract=new)


def _address(field: str, chain: str, given: str) -> str:
    if not given.strip():
        raise FieldRefused(field, _("Enter the contract's address."))
    try:
        return address_on(chain, given)
    except AddressRefused as fault:
        raise FieldRefused(field, str(fault)) from None


async def read(db: AsyncSession, outside: Gateways, leaves: Iterable[Requirement], order: MigrationOrder) -> Successors:
    """Return the successor of each condition. Raises ProviderUnavailable if the contract could not be read."""
    found = dict[Requirement, Requirement | str]()
    for leaf in leaves:
        found[leaf] = await _successor(db, outside, leaf, order)
    return found


async def _successor(
    db: AsyncSession, outside: Gateways, leaf: Requirement, order: MigrationOrder
) -> Requirement | str:
    details = replace(leaf.details, decimals=None) if isinstance(leaf.details, CoinAmount) else leaf.details
    new = replace(leaf, chain=order.new_chain, contract=order.new_contract, details=details)
    if leaf.kind.names_ids and (reason := _other_ids(order)):
        return reason
    try:
        if new.details is not None:
            new = replace(new, details=new.details.checked(new.chain, new.contract))
        facts = await contract_check.read(db, outside, new)
        if facts.refused:
            return next(iter(facts.refused.values()))
        tree = contract_check.completed(new, facts.decimals)
    except FieldRefused as fault:
        return fault.message
    await contract_check.remember(db, facts)
    assert isinstance(tree, Requirement)  # a leaf stays one
    if leaf.kind.names_trait and (reason := await _other_traits(db, outside, tree)):
        return reason
    if isinstance(tree.details, ViewCall) and (reason := await _no_answer(outside, tree, tree.details)):
        return reason
    return tree


def _other_ids(order: MigrationOrder) -> str | None:
    if not all(CHAINS[chain].family == "evm" for chain in (order.chain, order.new_chain)):
        return _("It names certain tokens. On Solana a token has one address, so none of them is on another contract.")
    if not order.same_ids:
        return _("It names certain token IDs. Say that the IDs stay the same, or change it by hand.")
    return None


async def _other_traits(db: AsyncSession, outside: Gateways, leaf: Requirement) -> str | None:
    """Return why the condition's traits cannot be required on its contract, or None."""
    for kind, wanted in leaf.traits:
        try:
            values = await collections.trait_values(db, outside, leaf.contract, leaf.chain, kind)
        except (CollectionNotFound, FieldRefused) as fault:
            told = _("The new contract has no known trait {trait}. {reason}")
            return told.format(trait=kind[:60], reason=fault.message)
        compares = wanted.strip()[:1] in "<>≤≥" or ".." in wanted
        if values and not compares and folded(wanted) not in {folded(value) for value in values}:
            told = _("No token of the new contract is known with {trait}: {value}.")
            return told.format(trait=kind[:60], value=wanted[:60])
    return None


async def _no_answer(outside: Gateways, leaf: Requirement, call: ViewCall) -> str | None:
    """Return why the new contract does not answer the function for an address that holds nothing, or None."""
    try:
        sheet = await outside.chains.view(leaf.chain, call.question(leaf.contract), [leaf.contract])
    except ProviderError as fault:
        raise unavailable(fault) from fault
    if leaf.contract in sheet.values:
        return None
    return _("The new contract does not answer the function of this condition. Try it in the rule form.")
