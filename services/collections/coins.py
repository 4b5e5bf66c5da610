"""Coins that rules name: their names and decimals as their contracts state them, and why a coin cannot be used."""

from collections.abc import Mapping

from sqlmodel import col

from gateways import Gateways
from gateways.chains.balance_sheet import NATIVE
from gateways.chains.catalogue import CHAINS
from gateways.chains.coin_facts import MOST_DECIMALS, CoinFacts
from locales import _
from models import Collection, now
from models.db.row import upsert
from models.db.session import AsyncSession
from services.collections.standards import ContractKey
from services.core.addresses import shorten
from services.core.chain_names import chain_title
from services.core.errors import CollectionNotFound, CollectionView


def refusal(chain: str, contract: str, facts: CoinFacts | None) -> str | None:
    """Return why no rule can count a coin, as a sentence, or None."""
    where = {"address": shorten(contract), "chain": chain_title(chain)}
    if facts is None:
        return _(
            "There is no contract at {address} on {chain}. Is it a wallet's address, or is the coin on another chain?"
        ).format(**where)
    if facts.stated is None and CHAINS[chain].family != "evm":
        return _("{address} on {chain} is not a coin: it is not a mint of one of the two token programs.").format(
            **where
        )
    if facts.stated is None:
        return _(
            "The contract {address} on {chain} does not say how many decimals its amounts have, so a rule cannot count "
            "them."
        ).format(**where)
    if facts.decimals is None:
        stated = str(facts.stated) if facts.stated < 10**6 else _("a million or more")
        return _(
            "The contract {address} on {chain} claims to have {stated} decimals. A rule can count at most {most}."
        ).format(**where, stated=stated, most=MOST_DECIMALS)
    return None


async def look_up(db: AsyncSession, outside: Gateways, chain: str, contract: str) -> CollectionView:
    """Return the coin at an address, or the chain's own coin, under the name that it states, and store that name.

    Raises CollectionNotFound, and ProviderError if its chain does not answer.
    """
    facts = await outside.chains.coin(chain, contract)
    if (reason := refusal(chain, contract, facts)) or facts is None:
        raise CollectionNotFound(reason or "")
    await remember_names(db, {(chain, contract): facts.title})
    return CollectionView(facts.title or shorten(contract), contract, chain)


def is_native(text: str) -> bool:
    """Return whether a text means the chain's own coin."""
    return text.strip().lower() == NATIVE


async def remember_names(db: AsyncSession, named: Mapping[ContractKey, str]) -> None:
    """Store names of coins and other contracts. Rows of collections (with a standard or a source) keep their names."""
    rows = [
        {"chain": chain, "contract": contract, "name": name, "source": "", "updated_at": now()}
        for (chain, contract), name in sorted(named.items())
        if name
    ]
    if rows:
        unnamed = col(Collection.standard).is_(None) & (col(Collection.source) == "")
        await db.execute(upsert(Collection, rows, ("chain", "contract"), ("name",), unnamed))
