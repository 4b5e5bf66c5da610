"""Check that the contracts that a rule names are collections or coins on their chains."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gateways import Gateways
from gateways.transport.errors import ProviderError
from locales import _
from models import Rule
from models.db.database import release
from models.db.session import AsyncSession
from services.collections import coins, standards
from services.collections.standards import ContractKey
from services.core.addresses import shorten
from services.core.chain_names import chain_title
from services.core.errors import FieldRefused, ProviderUnavailable, unavailable
from services.rules.expression import ANY_CONTRACT, AtLeast, Expression, Not, parse, requirements, to_document
from services.rules.types.coin import CoinAmount

Decimals = Mapping[ContractKey, int]
"""Chain and contract of a rule's coin → its number of decimals."""


@dataclass(frozen=True, slots=True)
class RuleContracts:
    """The standards of a rule's contracts: `known` were stored; `found` were read just now, with names in `named`.

    `refused` says why no rule can use a contract. `decimals` are those of coins, which are read each time.
    """

    known: dict[ContractKey, str]
    found: dict[ContractKey, str]
    named: dict[ContractKey, str]
    refused: dict[ContractKey, str]
    decimals: dict[ContractKey, int] = field(default_factory=dict[ContractKey, int])


async def check(db: AsyncSession, outside: Gateways, tree: Expression) -> Decimals:
    """Check that every contract of a rule exists with a readable standard; store it with its name.

    A contract whose functions are called only has to exist. Contracts with a stored standard are not read again. The
    decimals of coins are read each time and returned; `completed` puts them into the tree. Call it before any write.
    Raises FieldRefused, ProviderUnavailable.
    """
    facts = await read(db, outside, tree)
    if facts.refused:
        raise FieldRefused("contractAddress", next(iter(facts.refused.values())))
    completed(tree, facts.decimals)
    await remember(db, facts)
    return facts.decimals


async def remember(db: AsyncSession, facts: RuleContracts) -> None:
    """Store the standards and the names of contracts that have been read."""
    await standards.remember(db, facts.found, facts.named)
    await coins.remember_names(db, {place: name for place, name in facts.named.items() if place not in facts.found})


async def complete_for_preview(db: AsyncSession, outside: Gateways, rule: Rule) -> None:
    """Write the facts of a rule's contracts into it, unless they cannot be read just now. Raises FieldRefused.

    While a node is down, a preview that says "unknown" for everybody is more useful than an error.
    """
    with contextlib.suppress(ProviderUnavailable):
        tree = parse(rule.expression)
        rule.expression = to_document(completed(tree, await check(db, outside, tree)))


async def read(db: AsyncSession, outside: Gateways, tree: Expression) -> RuleContracts:
    """Read the standards of a rule's contracts without storing anything. Raises ProviderUnavailable."""
    leaves = [leaf for leaf in requirements(tree) if leaf.contract != ANY_CONTRACT and not leaf.kind.chainless]
    collections = {(leaf.chain, leaf.contract) for leaf in leaves if leaf.kind.source not in {"calls", "coins"}}
    places = dict.fromkeys((leaf.chain, leaf.contract) for leaf in leaves if leaf.kind.source != "coins")
    facts = RuleContracts(await standards.known(db, places), {}, {}, {})
    await release(db)
    for place in places:
        if place not in facts.known:
            await _read_contract(outside, place, facts, is_collection=place in collections)
    for place in dict.fromkeys((leaf.chain, leaf.contract) for leaf in leaves if leaf.kind.source == "coins"):
        await _read_coin(outside, place, facts)
    for leaf in leaves:
        place = leaf.chain, leaf.contract
        if leaf.kind.source == "tokens" and (facts.found.get(place) or facts.known.get(place)) == standards.UNNAMED:
            facts.refused[place] = _only_counts(leaf.chain, leaf.contract)
    return facts


async def _read_contract(outside: Gateways, place: ContractKey, facts: RuleContracts, *, is_collection: bool) -> None:
    try:
        standard = await outside.chains.contract_standard(*place)
    except ProviderError as fault:
        raise unavailable(fault) from fault
    if standard == "none" or is_collection:
        if reason := refusal(*place, standard):
            facts.refused[place] = reason
            return
        facts.found[place] = str(standard)
    # Only the rule's wording uses the name; without one it shows the address.
    with contextlib.suppress(ProviderError):
        facts.named[place] = await outside.chains.contract_name(*place) or ""


async def _read_coin(outside: Gateways, place: ContractKey, facts: RuleContracts) -> None:
    try:
        coin = await outside.chains.coin(*place)
    except ProviderError as fault:
        raise unavailable(fault) from fault
    if coin is None or coin.decimals is None:
        facts.refused[place] = coins.refusal(*place, coin) or ""
        return
    facts.decimals[place], facts.named[place] = coin.decimals, coin.title


def completed(tree: Expression, decimals: Decimals) -> Expression:
    """Return the tree with the decimals of its coins. Raises FieldRefused for an amount that is finer than its coin."""
    if isinstance(tree, Not):
        return Not(completed(tree.branch, decimals))
    if isinstance(tree, AtLeast):
        return AtLeast(tree.n, tuple(completed(branch, decimals) for branch in tree.of))
    known = decimals.get((tree.chain, tree.contract))
    if known is None or not isinstance(tree.details, CoinAmount):
        return tree
    return replace(tree, details=replace(tree.details, decimals=known).checked(tree.chain, tree.contract))


def _only_counts(chain: str, contract: str) -> str:
    return _(
        "The contract {address} on {chain} is older than the standards for NFTs: it says how many tokens a wallet has, "
        "and not which ones in a way that we can read. Choose a number of tokens (Basic)."
    ).format(address=shorten(contract), chain=chain_title(chain))


def refusal(chain: str, contract: str, standard: str | None) -> str | None:
    """Return why no rule can use a contract of this standard, as a sentence, or None."""
    where = {"address": shorten(contract), "chain": chain_title(chain)}
    if standard == "none":
        return _(
            "There is no contract at {address} on {chain}. Is it a wallet's address, or is the collection on another "
            "chain?"
        ).format(**where)
    if standard is None:
        return _("The contract {address} on {chain} does not say that it is an NFT collection.").format(**where)
    return None
