"""Read Collab.Land's token gating rules (TGRs): the JSON of its API and of its list of communities.

The public sources are the pages *Configuring TGRs*, *Account* and *Create a TGR* of its developer documentation, see
docs/facts.md#collabland-rules. One rule is `{type, chainId, contractAddress, tokenId?, minToken?, maxToken?, roleId,
roleName?}`. Amounts are texts; those of coins are in whole coins. A role is given if one of its rules holds.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from locales import N_, _, number
from services.rules.documents import entry
from services.rules.documents.entry import ParsedEntry, ParsedRule, SkippedEntry, Unmapped
from services.rules.documents.json_documents import (
    DocumentRefused,
    is_given,
    is_list,
    is_node,
    list_of,
    node_of,
    shown,
    text_of,
    unknown_fields,
)
from services.rules.expression import MAX_LEAVES
from services.rules.types.token_ids import MOST_ENTRIES

_SOLANA = 8_000_000_000_101
"""The number that stands for Solana in a rule's `chainId`."""
_LISTS = ("rules", "tpcs", "tgrs")
_TRAIT_TYPES = ("trait_type", "traitType", "trait", "type", "key")
_TRAIT_LISTS = ("attributes", "traits", "conditions")
_JOINTS = ("condition", "operator", "logic")
"""Names of the fields for a trait's type, for a list of traits, and for how traits are joined."""
_COIN, _NFT = "ERC20", frozenset({"ERC721", "ERC1155"})
_KNOWN = frozenset(
    {
        "type", "chainId", "contractAddress", "address", "tokenId", "tokenIds", "minToken", "minAmount", "maxToken",
        "maxAmount", "roleId", "roleName", "name", "description", "attributes", "metadata", "condition", "operator",
        "logic", "requiresMetadata", "query", "variables", "eventId", "scheme", "asset",
        # These fields describe a rule without changing what it asks for.
        "id", "sk", "pk", "classifier", "classifierGroup", "version", "tokenSymbol", "collectionName", "roleColor",
        "timestamp", "createdAt", "updatedAt", "network", "platform",
    }
)  # fmt: skip
_ELSEWHERE = {
    "OPENSEA": N_("It names a collection by its OpenSea page. Create the rule with that page's address instead."),
    "POAP": N_("It asks for a POAP, which no rule here does."),
    "STAKING": N_("It asks for staked tokens in a form that is not documented. Create a rule of the type View call."),
    "GNOSIS": N_("It asks for a share in a Safe, which no rule here does."),
    "SOLANANFT": N_(
        "It names Solana tokens by their creator or edition; a rule here names a collection. "
        "Create the rule with the collection's address."
    ),
}


def read(document: object, discord_id: str) -> list[ParsedEntry]:
    """Return the rules of a document; if it has several communities, those of the one with this Discord id.

    Raises DocumentRefused for any other kind of document, or one with more than MOST_RULES rules.
    """
    found, skipped = _rules_in(document, discord_id)
    entry.check_number(len(found), entry.TOO_MANY_RULES)
    return [*skipped, *(_entry(place, one) for place, one in enumerate(found, 1))]


def _rules_in(document: object, discord_id: str) -> tuple[Sequence[Any], list[ParsedEntry]]:
    if is_list(document):
        return list_of(document), []
    node = node_of(document)
    for name in _LISTS:
        if is_list(node.get(name)):
            return list_of(node[name]), []
    communities = [node_of(one) for one in list_of(node.get("items"))[: entry.MOST_PARTS]]
    if not communities:
        if "type" in node and "chainId" in node:
            return [node], []
        raise DocumentRefused(
            _("This is not a document of Collab.Land's rules. It has a list called rules or tpcs, or it is that list.")
        )
    mine = [one for one in communities if text_of(one.get("communityId")) == discord_id]
    if not mine and len(communities) > 1:
        raise DocumentRefused(
            _(
                "The document has {count} communities, and none of them is this server. Paste the rules of one of them."
            ).format(count=len(communities))
        )
    skipped: list[ParsedEntry] = [
        SkippedEntry(entry.label(entry.COMMUNITY, place, one.get("name")), _("It is another server."))
        for place, one in enumerate(communities[: entry.MOST_RULES], 1)
        if mine and one is not mine[0]
    ]
    return list_of((mine or communities)[0].get("tpcs")), skipped


def _entry(place: int, given: object) -> ParsedEntry:
    rule = node_of(given)
    what = entry.label(entry.RULE, place, rule.get("name") or rule.get("description"))
    try:
        if not rule:
            raise Unmapped(_("It is not an object."))
        return ParsedRule(
            what=what,
            name=text_of(rule.get("name")) or text_of(rule.get("description")),
            expression=_expression(rule),
            role_id=text_of(rule.get("roleId")),
            role_names=tuple(name for key in ("roleName", "roleId") if (name := text_of(rule.get(key)))),
            notes=entry.left_out(unknown_fields(rule, _KNOWN)),
        )
    except Unmapped as fault:
        return SkippedEntry(what, str(fault))


def _expression(rule: Mapping[str, Any]) -> dict[str, Any]:
    kind = text_of(rule.get("type")).upper().replace("-", "").replace("_", "")
    if is_given(rule.get("scheme")) or is_given(rule.get("asset")):
        kind = kind or "GNOSIS"
    if reason := _ELSEWHERE.get("POAP" if is_given(rule.get("eventId")) else kind):
        raise Unmapped(_(reason))
    if is_given(rule.get("query")) or is_given(rule.get("variables")):
        raise Unmapped(_("It has a query over the tokens' metadata, whose form is not documented."))
    if kind == _COIN:
        return _coin(rule, entry.chain_by_id(rule.get("chainId")), _contract(rule))
    if kind == "SOLANAFT":
        if text_of(rule.get("chainId")) != str(_SOLANA):
            raise Unmapped(_("Its chain, {chain}, is not Solana.").format(chain=shown(rule.get("chainId"))))
        return _coin(rule, "solana", _contract(rule))
    if kind in _NFT:
        return _tokens(rule, kind, entry.chain_by_id(rule.get("chainId")), _contract(rule))
    raise entry.no_such_type(rule.get("type"))


def _coin(rule: Mapping[str, Any], chain: str, contract: str) -> dict[str, Any]:
    if is_given(_one_of(rule, "tokenId", "tokenIds")) or _conditions(rule):
        raise entry.coin_with_tokens()
    _check_others(rule)
    least = entry.coins(_one_of(rule, "minToken", "minAmount"), entry.MINIMUM)
    most = entry.coins(_one_of(rule, "maxToken", "maxAmount"), entry.MAXIMUM)
    least = "1" if least is None else least
    if least == "0" and most is None:
        raise Unmapped(_("It asks for at least 0 coins, which everybody has."))
    leaf = {"type": "token", "chain": chain, "contract": contract, "min": least}
    return leaf if most is None else leaf | {"max": most}


def _tokens(rule: Mapping[str, Any], kind: str, chain: str, contract: str) -> dict[str, Any]:
    least = entry.count(_one_of(rule, "minToken", "minAmount"), entry.MINIMUM)
    most = entry.count(_one_of(rule, "maxToken", "maxAmount"), entry.MAXIMUM)
    least = 1 if least is None else least
    ids, traits = _token_ids(rule), _conditions(rule)
    if ids and traits:
        raise Unmapped(_("It asks for token IDs and traits at once; a rule here asks for one of both."))
    if traits:
        return _with_traits(rule, traits, chain, contract, least, most)
    _check_others(rule)
    if ids:
        return entry.of_single_tokens(chain, contract, ids, least, most)
    if kind == "ERC1155":
        raise Unmapped(_("It names no token ID, which Collab.Land needs for ERC-1155."))
    return entry.of_tokens(chain, contract, least, most)


def _check_others(rule: Mapping[str, Any]) -> None:
    """Raise Unmapped if a rule without traits has a condition on them, or joins its conditions in an unknown way."""
    if entry.truth(rule.get("requiresMetadata"), "requiresMetadata"):
        raise Unmapped(_("It has a condition on the tokens' metadata, and the document does not say which."))
    _joint(rule)


def _with_traits(
    rule: Mapping[str, Any], traits: Sequence[tuple[str, str]], chain: str, contract: str, least: int, most: int | None
) -> dict[str, Any]:
    joint = _joint(rule)
    if joint == "AND" or len(traits) == 1:
        return entry.of_traits(chain, contract, traits, least, most)
    if (least, most) != (1, None):
        raise Unmapped(_("It counts the tokens that have any of several traits; a rule here cannot add those up."))
    return {"any": [entry.of_traits(chain, contract, [one], 1, None) for one in traits]}


def _contract(rule: Mapping[str, Any]) -> str:
    contract = text_of(_one_of(rule, "contractAddress", "address"))
    if not contract:
        raise Unmapped(_("It names no contract."))
    return contract


def _token_ids(rule: Mapping[str, Any]) -> list[str]:
    given = _one_of(rule, "tokenId", "tokenIds")
    entries = len(list_of(given)) if is_list(given) else text_of(given).count(",")
    if entries > MOST_ENTRIES:
        raise Unmapped(
            _("It names {count} token IDs and ranges; a rule here names at most {most}.").format(
                count=number(entries), most=MOST_ENTRIES
            )
        )
    ids = [text_of(one) for one in list_of(given)] if is_list(given) else text_of(given).split(",")
    found = [one.strip() for one in ids if one.strip()]
    if is_given(given) and (not found or not all(ids)):
        raise Unmapped(_("Its token IDs cannot be read."))
    return found


def _conditions(rule: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the traits of a rule: a list of types and values, or an object that has the list."""
    given = _one_of(rule, "attributes", "metadata")
    if not is_given(given):
        return []
    if is_node(given):
        node = node_of(given)
        lists = [node[name] for name in _TRAIT_LISTS if is_given(node.get(name))]
        if len(lists) == 1:
            _check_fields(node, {*_TRAIT_LISTS, *_JOINTS})
        given = lists[0] if len(lists) == 1 else None
    if not is_list(given) or not given:
        raise Unmapped(_("Its traits cannot be read."))
    if len(list_of(given)) > MAX_LEAVES:
        raise Unmapped(
            _("It names {count} traits; a rule here has at most {most} conditions.").format(
                count=number(len(list_of(given))), most=MAX_LEAVES
            )
        )
    return [_trait(one) for one in list_of(given)]


def _trait(given: object) -> tuple[str, str]:
    node = node_of(given)
    _check_fields(node, {*_TRAIT_TYPES, "value", "display_type"})
    return entry.exact_trait(_one_of(node, *_TRAIT_TYPES), node.get("value"))


def _check_fields(node: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raise Unmapped for an unknown field of traits, such as one that negates them."""
    if strange := unknown_fields(node, known):
        raise Unmapped(
            _("One of its traits has the field {field}, whose meaning is not known.").format(field=shown(strange[0]))
        )


def _joint(rule: Mapping[str, Any]) -> str:
    """Return how a rule joins several traits: AND unless it says otherwise. Raises Unmapped."""
    inner = node_of(_one_of(rule, "attributes", "metadata"))
    given = [node[name] for node in (rule, inner) for name in _JOINTS if name in node]
    words = {text_of(one).upper() for one in given if is_given(one)} or {"AND"}
    if len(words) > 1 or not words <= {"AND", "OR"}:
        raise Unmapped(_("It joins its traits in a way that is not documented."))
    return min(words)


def _one_of(rule: Mapping[str, Any], *names: str) -> Any:
    """Return the value of a field that has several names. Raises Unmapped if they contradict each other.

    An empty list or object beside a value, such as `attributes` beside `metadata`, says nothing.
    """
    found = [name for name in names if rule.get(name) not in (None, "", [], {})]
    for name in found[1:]:
        if rule[name] != rule[found[0]]:
            raise entry.contradiction(found[0], name)
    return rule[found[0]] if found else None
