"""Check that the contracts that a rule names are collections on their chains."""

import contextlib
from dataclasses import dataclass

from gateways import Gateways
from gateways.transport.errors import ProviderError
from models.db.database import release
from models.db.session import AsyncSession
from services.collections import standards
from services.collections.standards import Place
from services.core.addresses import shorten
from services.core.chain_names import chain_title
from services.core.errors import FieldRefused, unavailable
from services.rules.expression import ANY_CONTRACT, Expression, requirements


@dataclass(frozen=True, slots=True)
class RuleContracts:
    """The standards of the contracts of a rule; `found` were read just now, with the names in `named`.

    `refused` says why no rule can use a contract.
    """

    known: dict[Place, str]
    found: dict[Place, str]
    named: dict[Place, str]
    refused: dict[Place, str]


async def check(db: AsyncSession, outside: Gateways, tree: Expression) -> None:
    """Check that every contract of a rule exists with a readable standard; store it with its name.

    Of a contract of which only functions are called, nothing but its existence is checked.
    Contracts with a stored standard are not read again. Call it before any write. Raises FieldRefused,
    ProviderUnavailable.
    """
    facts = await read(db, outside, tree)
    if facts.refused:
        raise FieldRefused("contractAddress", next(iter(facts.refused.values())))
    await standards.remember(db, facts.found, facts.named)


async def read(db: AsyncSession, outside: Gateways, tree: Expression) -> RuleContracts:
    """Return what is known about the contracts of a rule, and store nothing. Raises ProviderUnavailable."""
    named_in = [leaf for leaf in requirements(tree) if leaf.contract != ANY_CONTRACT]
    collections = {(leaf.chain, leaf.contract) for leaf in named_in if leaf.kind.source != "calls"}
    places = dict.fromkeys((leaf.chain, leaf.contract) for leaf in named_in)
    known = await standards.known(db, places)
    await release(db)
    found: dict[Place, str] = {}
    named: dict[Place, str] = {}
    refused: dict[Place, str] = {}
    for chain, contract in places:
        if (chain, contract) in known:
            continue
        try:
            standard = await outside.chains.contract_standard(chain, contract)
        except ProviderError as fault:
            raise unavailable(fault) from fault
        if standard != "none" and (chain, contract) not in collections:
            continue
        if reason := refusal(chain, contract, standard):
            refused[chain, contract] = reason
            continue
        found[chain, contract] = str(standard)
        # Only the rule's wording uses the name; without one it shows the address.
        with contextlib.suppress(ProviderError):
            named[chain, contract] = await outside.chains.contract_name(chain, contract) or ""
    return RuleContracts(known, found, named, refused)


def refusal(chain: str, contract: str, standard: str | None) -> str | None:
    """Return why no rule can use a contract of this standard, as a sentence, or None."""
    where = f"{shorten(contract)} on {chain_title(chain)}"
    if standard == "none":
        return f"There is no contract at {where}. Is it a wallet's address, or is the collection on another chain?"
    if standard is None:
        return f"The contract {where} does not say that it is an NFT collection."
    return None
