"""Conditions that only one source can answer, so that nothing independent can confirm a loss."""

from collections.abc import Iterator

from gateways.chains.catalogue import CHAINS
from gateways.chains.node_providers import independent
from locales import N_, _, listed, sentences
from services.core.json_view import json_view
from services.rules.expression import Expression, Requirement, requirements
from settings import settings

MOST_BY_ONE_SOURCE = 5
"""How many people may lose a role in 24 hours by the answers of a single source before an admin reviews it."""
_BOUND = N_("At most {most} members a day lose the role by it unless an admin approves more.")


@json_view
class SingleSource:
    """A part of a condition that only one source can answer: what that means, and which setting adds another source."""

    chain: str
    verification_type: str
    text: str
    remedy: str


def single_sources(tree: Expression) -> tuple[SingleSource, ...]:
    """Return the parts of a rule that depend on a single source in the present configuration, each once."""
    return tuple(dict.fromkeys(one for leaf in requirements(tree) for one in of_condition(leaf)))


def of_condition(leaf: Requirement) -> tuple[SingleSource, ...]:
    """Return the parts of one condition that depend on a single source."""
    if leaf.chain not in CHAINS:
        return ()
    return tuple(SingleSource(leaf.chain, leaf.type, text, remedy) for text, remedy in _reasons(leaf))


def one_node(chain: str) -> tuple[str, str] | None:
    """Return the meaning and the remedy of a chain with nodes of one provider; None if it has more, or none."""
    if independent(chain) != 1:
        return None
    title, variable = CHAINS[chain].title, f"RPC_{chain.upper()}"
    if len(settings().rpc[chain]) > 1:
        text = _(
            "All nodes of {chain} here belong to one provider, so they count as one, which confirms a loss by being "
            "asked again."
        )
    elif CHAINS[chain].family == "solana":
        text = _("{chain} has one node and index here, which confirms a loss by being asked again.")
    else:
        text = _("{chain} has one node here, which confirms a loss itself some blocks later.")
    remedy = _("The operator of the bot can add a second, independent node to {variable}.")
    return _with_bound(text.format(chain=title)), remedy.format(variable=variable)


def _with_bound(text: str) -> str:
    return sentences(text, _(_BOUND).format(most=MOST_BY_ONE_SOURCE))


def _reasons(leaf: Requirement) -> Iterator[tuple[str, str]]:
    chain, chosen = CHAINS[leaf.chain], settings()
    if (node := one_node(leaf.chain)) is not None:
        yield node
    if chain.family == "solana":
        return
    keys = {
        "OPENSEA_API_KEY": (chain.opensea, chosen.opensea_api_key),
        "ALCHEMY_API_KEY": (chain.alchemy, chosen.alchemy_api_key),
    }
    there = {name for name, (offered, key) in keys.items() if offered and key is not None}
    missing = [name for name, (offered, key) in keys.items() if offered and key is None]
    if leaf.kind.names_trait and not chain.opensea:
        text = _("Traits are read from the tokens' own metadata alone, because OpenSea does not have {chain}.")
        remedy = _("There is no second source of traits on this chain.")
        yield _with_bound(text.format(chain=chain.title)), remedy
    elif leaf.kind.names_trait and "OPENSEA_API_KEY" not in there:
        text = _("Traits are read from the tokens' own metadata alone, because OpenSea is not set up.")
        yield _with_bound(text), _("The operator of the bot can set {variables}.").format(variables="OPENSEA_API_KEY")
    if leaf.kind.source == "anything" and len(there) < len(keys):
        lists = _("Only one index of what wallets hold is set up.")
        if not there:
            lists = _("No index of what wallets hold is set up.")
        until = _(
            "Until there are two, members lose the role only where a node of {chain} lets us search the whole history "
            "of a wallet."
        ).format(chain=chain.title)
        remedy = _("No other index has this chain.")
        if missing:
            remedy = _("The operator of the bot can set {variables}.").format(variables=listed(missing))
        yield sentences(lists, until), remedy
