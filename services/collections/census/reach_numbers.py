"""How many addresses meet the conditions of a rule, in one statement, from finished counts and stored lists.

Every address that holds something of a collection in the rule, or is on a list in it, is judged separately: a member
with two wallets counts twice, and two wallets that meet a minimum only together do not count.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from gateways.chains.balance_sheet import NATIVE
from gateways.chains.catalogue import CHAINS
from locales import N_
from locales.stored_texts import storable
from models.db.session import AsyncSession
from services.collections.census import owned_tokens
from services.collections.census.count_by_transfers import UNREADABLE
from services.collections.census.owned_tokens import NEWEST, SETTLED
from services.collections.standards import ContractKey
from services.core.errors import FieldRefused
from services.rules.expression import Expression, Not, Requirement, lists_in, requirements
from services.rules.types import stored_address_lists, token_ids
from services.rules.types.address_list import AddressList
from services.rules.types.registry import COIN

NOT_COUNTED: Mapping[str, str] = {
    "trait": N_("A condition on traits cannot be counted on chain, because the chain does not know a token's traits."),
    "any_nft": N_("A condition on any NFT cannot be counted, because it is about every contract of the chain."),
    "call": N_("A view call cannot be counted, because a contract only answers for an address that is asked about."),
    "any_wallet": N_("Any verified wallet meets this condition, so there are no holders to count."),
}
_COUNTED = {"basic", "token_id", "address_list"}
"""The types of conditions that can be counted, besides coins."""
NATIVE_COIN = N_("The coin of a chain cannot be counted, because it moves without a record of who has it.")
SOLANA_COIN = N_("On Solana only collections can be counted, because a coin has no list of its owners.")
NO_COIN = N_("The contract does not record transfers as a coin does, so its holders cannot be counted.")
OTHER = N_("This condition cannot be counted.")
_PROVED = """
    SELECT w.address FROM wallet w JOIN "user" u ON u.id = w.user_id
    JOIN member m ON m.discord_id = u.discord_id AND m.server_id = :server
    LEFT JOIN member_choice c ON c.user_id = u.id AND c.server_id = m.server_id
    WHERE m.left_at IS NULL AND NOT m.bot AND COALESCE(c.use_wallets, true)
"""
"""The wallets of present members of a server who let them count there."""
EVERYBODY = N_("Addresses that hold nothing meet these conditions as well, so there is no number of them.")


class ChainReach(NamedTuple):
    """The addresses that meet a condition on a chain."""

    chain: str
    holders: int


@dataclass(frozen=True, slots=True)
class ReachNumbers:
    """How many addresses meet a rule, and how many of those a present member of the server has proved."""

    holders: int
    verified: int
    chains: tuple[ChainReach, ...]


def places_of(tree: Expression) -> list[ContractKey]:
    """Return the collections to count for a rule, each once."""
    return list(dict.fromkeys((leaf.chain, leaf.contract) for leaf in requirements(tree) if leaf.chain))


async def unfitting_count(db: AsyncSession, tree: Expression, census_ids: Mapping[ContractKey, int]) -> str | None:
    """Return why a count cannot answer its condition, or None: it counted tokens for a coin, or a coin for tokens."""
    for leaf in requirements(tree):
        if leaf.chain:
            of_coin, of_tokens = await owned_tokens.kinds(db, census_ids[leaf.chain, leaf.contract])
            if leaf.type == COIN and of_tokens:
                return NO_COIN
            if leaf.type != COIN and of_coin:
                return UNREADABLE
    return None


async def has_lists(db: AsyncSession, tree: Expression, server_id: int) -> bool:
    """Return whether the lists of addresses in a rule are stored in the server."""
    try:
        await stored_address_lists.check(db, server_id, lists_in(tree))
    except FieldRefused:
        return False
    return True


def refusal(tree: Expression) -> str | None:
    """Return why the addresses that meet a rule cannot be counted, as `locales/stored_texts.py` stores it, or None."""
    for leaf in requirements(tree):
        if leaf.type == COIN:
            if leaf.contract == NATIVE or CHAINS[leaf.chain].family != "evm":
                return NATIVE_COIN if leaf.contract == NATIVE else SOLANA_COIN
        elif leaf.type not in _COUNTED:
            return storable(NOT_COUNTED.get(leaf.type, OTHER))
    return EVERYBODY if _holds_without(tree) else None


def _holds_without(tree: Expression) -> bool:
    """Return whether an address that holds nothing meets a rule."""
    if isinstance(tree, Requirement):
        return tree.least <= 0
    if isinstance(tree, Not):
        return not _holds_without(tree.branch)
    return sum(map(_holds_without, tree.of)) >= tree.n


async def count(
    db: AsyncSession, tree: Expression, server_id: int, census_ids: Mapping[ContractKey, int]
) -> ReachNumbers:
    """Return the numbers of a rule in a server from these finished counts."""
    leaves = list(dict.fromkeys(requirements(tree)))
    chains = list(dict.fromkeys(leaf.chain for leaf in leaves if leaf.chain))
    values: dict[str, object] = {"settled": SETTLED, "newest": NEWEST, "server": server_id, "chains": ",".join(chains)}
    sums, met, on_list = list[str](), list[str](), list[str]()
    for place, leaf in enumerate(leaves):
        values[f"least{place}"] = str(leaf.least)
        if isinstance(leaf.details, AddressList):
            values[f"digest{place}"] = leaf.details.list
            on_list.append(f"met{place}")
            sums.append(
                f"SELECT e.address AS owner, {place} AS leaf, 1 AS total FROM address_list l JOIN address_list_entry e "
                f"ON e.list_id = l.id WHERE l.server_id = :server AND l.digest = :digest{place}"
            )
        else:
            values[f"census{place}"] = census_ids[leaf.chain, leaf.contract]
            named = ""
            if leaf.kind.names_ids:
                values[f"ids{place}"] = _multirange(leaf)
                named = f"AND token <@ CAST(:ids{place} AS nummultirange)"
            sums.append(
                f"SELECT owner, {place} AS leaf, sum(amount) AS total FROM census_token "
                f"WHERE census_id = :census{place} AND part IN (:settled, :newest) {named} "
                "GROUP BY owner HAVING sum(amount) > 0"
            )
        total = f"COALESCE(sum(total) FILTER (WHERE leaf = {place}), 0)"
        most = f" AND {total} <= CAST(:most{place} AS numeric)" if leaf.most is not None else ""
        values |= {f"most{place}": str(leaf.most)} if leaf.most is not None else {}
        met.append(f"({total} >= CAST(:least{place} AS numeric){most})")
    columns = "".join(f", {one} AS met{place}" for place, one in enumerate(met))
    on_chains = "".join(
        ", count(*) FILTER (WHERE "
        + " OR ".join(f"met{place}" for place, leaf in enumerate(leaves) if leaf.chain == chain)
        + ")"
        for chain in chains
    )
    proved = f"owner IN ({_PROVED} AND (w.chain = '' OR w.chain = ANY(string_to_array(:chains, ','))))"
    if on_list:
        # A smart account's wallet is proved for one chain; a list does not say which.
        proved = f"({proved} OR (({' OR '.join(on_list)}) AND owner IN ({_PROVED})))"
    found = await db.execute(
        f"""
        WITH held AS ({" UNION ALL ".join(sums)}),
        judged AS MATERIALIZED (SELECT owner{columns} FROM held GROUP BY owner)
        SELECT count(*) FILTER (WHERE {_condition(tree, leaves)}),
            count(*) FILTER (WHERE {_condition(tree, leaves)} AND {proved})
            {on_chains}
        FROM judged
        """,
        values,
    )
    holders, verified, *each = (int(one) for one in found.one())
    return ReachNumbers(holders, verified, tuple(map(ChainReach, chains, each)))


def _condition(tree: Expression, leaves: list[Requirement]) -> str:
    """Return the tree over the columns `met0`, `met1` and so on, as SQL."""
    if isinstance(tree, Requirement):
        return f"met{leaves.index(tree)}"
    if isinstance(tree, Not):
        return f"(NOT {_condition(tree.branch, leaves)})"
    branches = [_condition(branch, leaves) for branch in tree.of]
    if tree.n in {1, len(branches)}:
        return f"({(' OR ' if tree.n == 1 else ' AND ').join(branches)})"
    return f"({' + '.join(f'CAST({branch} AS integer)' for branch in branches)} >= {tree.n})"


def _multirange(leaf: Requirement) -> str:
    """Return the tokens that a condition names, as PostgreSQL writes a set of ranges."""
    if leaf.chain == "solana":
        pairs = [(number, number) for number in map(owned_tokens.number_of, leaf.token_ids)]
    else:
        pairs = [found for entry in leaf.token_ids if (found := token_ids.bounds(entry)) is not None]
    return "{" + ",".join(f"[{first},{last}]" for first, last in pairs) + "}"
