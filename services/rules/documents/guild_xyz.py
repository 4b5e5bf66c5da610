"""Read a guild of guild.xyz as its public API returns it: roles, their requirements, and the Discord roles they give.

The public sources are the npm packages @guildxyz/types and @guildxyz/sdk and the source of its web application, see
docs/facts.md#guild-rules. A role is mapped whole or not at all: without one of its requirements it would mean
something else.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from locales import N_, _, number, sentences
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
from services.rules.types.address_list_text import MOST_ADDRESSES
from services.rules.types.token_ids import MOST_ENTRIES
from services.rules.types.view_call import WALLET

CHAIN_IDS: Mapping[str, int] = {
    "ETHEREUM": 1, "OPTIMISM": 10, "CRONOS": 25, "ROOTSTOCK": 30, "LUKSO": 42, "XDC": 50, "BSC": 56, "ONTOLOGY": 58,
    "GNOSIS": 100, "POLYGON": 137, "SONIC": 146, "SHIMMER": 148, "MANTA": 169, "MINT": 185, "X1": 196, "OP_BNB": 204,
    "FANTOM": 250, "BOBA": 288, "FILECOIN": 314, "ZKSYNC_ERA": 324, "CRONOS_ZKEVM": 388, "PGN": 424, "FORM": 478,
    "WORLD_CHAIN": 480, "METIS": 1088, "POLYGON_ZKEVM": 1101, "CORE_DAO": 1116, "LISK": 1135, "MOONBEAM": 1284,
    "MOONRIVER": 1285, "SEI": 1329, "SONEIUM": 1868, "RONIN": 2020, "EXOSAMA": 2109, "KAVA": 2222,
    "ASTAR_ZKEVM": 3776, "MANTLE": 5000, "ZETACHAIN": 7000, "CYBER": 7560, "KLAYTN": 8217, "BASE_MAINNET": 8453,
    "IOTA": 8822, "EVMOS": 9001, "OASIS_SAPPHIRE": 23294, "MODE": 34443, "ARBITRUM": 42161, "NOVA": 42170,
    "CELO": 42220, "AVALANCHE": 43114, "BOBA_AVAX": 43288, "SOPHON": 50104, "INK": 57073, "LINEA": 59144,
    "BLAST_MAINNET": 81457, "TAIKO": 167000, "SCROLL": 534352, "ZERO": 543210, "ZORA": 7777777,
    "NEON_EVM": 245022934, "HARMONY": 1666600000, "PALM": 11297108109,
}  # fmt: skip
"""Guild's name of a requirement's chain → its chain id; without test networks."""
_DISCORD = 1
_ROLE = frozenset(
    {
        "id", "name", "description", "imageUrl", "logic", "anyOfNum", "requirements", "rolePlatforms", "members",
        "memberCount", "position", "visibility", "visibilityRoleId", "hideFromEyes", "groupId", "guildId", "createdAt",
        "updatedAt", "lastSyncedAt",
    }
)  # fmt: skip
_REQUIREMENT = frozenset(
    {
        "id", "type", "chain", "address", "data", "name", "symbol", "decimals", "roleId", "isNegated", "visibility",
        "visibilityRoleId", "createdAt", "updatedAt", "value", "balancyDecimals",
    }
)  # fmt: skip
_AMOUNTS = frozenset({"minAmount", "maxAmount", "amount"})
_TOKENS = _AMOUNTS | {"id", "ids", "attribute", "attributes"}
_DATA = {
    "COIN": _TOKENS, "ERC20": _TOKENS, "ERC721": _TOKENS, "ERC1155": _TOKENS,
    "ALLOWLIST": frozenset({"addresses", "hideAllowlist", "fileId"}),
    "CONTRACT": frozenset({"id", "params", "resultIndex", "resultMatch", "expected"}),
}  # fmt: skip
"""Type of a requirement → the fields of its data that are read."""
_LOOKS = frozenset({"customName", "customImage"})
_REWARD = frozenset(
    {
        "id", "roleId", "guildPlatform", "guildPlatformId", "platformRoleId", "platformRoleData", "visibility",
        "visibilityRoleId", "index", "isNew", "claimedCount", "createdAt", "updatedAt",
    }
)  # fmt: skip
_ELSEWHERE = {
    "FREE": N_(
        "It asks for nothing. A rule of the type Any verified wallet comes closest; create it if you want that."
    ),
    "ALLOWLIST_EMAIL": N_("It asks for an email address, which no rule here does."),
    "CAPTCHA": N_("It asks for a captcha, which no rule here does."),
    "NOUNS": N_("It asks for parts of a Noun in a form of its own. Create a rule of the type Trait."),
    "POAP": N_("It asks for a POAP, which no rule here does."),
    "UNLOCK": N_("It asks for a membership of Unlock. Create a rule of the type View call from its template."),
}
_CALLS = {"=": "=", ">=": ">=", "<=": "<=", ">": ">=", "<": "<="}


def read(document: object, discord_id: str) -> list[ParsedEntry]:
    """Return the rules of a guild: one for each Discord role that one of its roles gives.

    Raises DocumentRefused for any other kind of document, or one with more than MOST_RULES rules.
    """
    guild = node_of(document)
    roles = list_of(document if is_list(document) else guild.get("roles"))
    if "requirements" in guild and not roles:
        roles = [guild]
    if not roles or not any("requirements" in node_of(one) for one in roles):
        raise DocumentRefused(
            _(
                "This is not a guild's document with its roles and their requirements. The public address of a guild's "
                "page in Guild's API gives out both."
            )
        )
    entry.check_number(len(roles), N_("The document has {found} roles; an import takes at most {most}."))
    platforms = {
        text_of(node_of(one).get("id")): node_of(one)
        for one in list_of(guild.get("guildPlatforms"))[: entry.MOST_PARTS]
    }
    found = [one for place, role in enumerate(roles, 1) for one in _entries(place, role, platforms)]
    entry.check_number(
        len(found), N_("The roles of the document give {found} Discord roles; an import takes at most {most}.")
    )
    return found


def _entries(place: int, given: object, platforms: Mapping[str, Mapping[str, Any]]) -> list[ParsedEntry]:
    """Return a rule for each Discord role that a role of the guild gives, or why there is none."""
    role = node_of(given)
    what = entry.label(entry.ROLE, place, role.get("name"))
    try:
        expression, notes = _expression(role)
        name = text_of(role.get("name"))
        notes = (*notes, *entry.left_out(unknown_fields(role, _ROLE)))
        return [
            ParsedRule(what, name, expression, role_id, (name,) if name else (), (*notes, *of_reward))
            for role_id, of_reward in _discord_roles(role, platforms).items()
        ]
    except Unmapped as fault:
        return [SkippedEntry(what, str(fault))]


def _discord_roles(
    role: Mapping[str, Any], platforms: Mapping[str, Mapping[str, Any]]
) -> Mapping[str, tuple[str, ...]]:
    """Return the ids of the Discord roles that a role gives, each with the notes about it.

    An id is an empty text if only the role's name identifies the Discord role.
    """
    rewards = [node_of(one) for one in list_of(role.get("rolePlatforms"))[: entry.MOST_PARTS]]
    if not rewards:
        return {"": ()}
    ids = dict[str, tuple[str, ...]]()
    for one in rewards:
        platform = node_of(one.get("guildPlatform")) or platforms.get(text_of(one.get("guildPlatformId")), {})
        role_id = text_of(one.get("platformRoleId"))
        if _is_discord(platform) or (not platform and role_id.isdigit()):
            ids[role_id] = (*ids.get(role_id, ()), *entry.left_out(unknown_fields(one, _REWARD)))
    if not ids:
        raise Unmapped(_("It gives no Discord role."))
    return ids


def _is_discord(platform: Mapping[str, Any]) -> bool:
    return platform.get("platformId") == _DISCORD or text_of(platform.get("platformName")).upper() == "DISCORD"


def _expression(role: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the condition of a role and the notes about it."""
    requirements = list_of(role.get("requirements"))
    if not requirements:
        raise Unmapped(_("It has no requirements."))
    if len(requirements) > MAX_LEAVES:
        raise Unmapped(
            _("It has {count} requirements; a rule here has at most {most}.").format(
                count=len(requirements), most=MAX_LEAVES
            )
        )
    parts: list[dict[str, Any]] = []
    notes: list[str] = []
    for place, given in enumerate(requirements, 1):
        one = node_of(given)
        try:
            part, is_negated = _requirement(one, notes), entry.truth(one.get("isNegated"), "isNegated")
        except Unmapped as fault:
            if len(requirements) == 1:
                raise
            raise Unmapped(
                sentences(
                    _("Requirement {number} ({type}): {reason}").format(
                        number=place, type=shown(one.get("type")), reason=fault
                    ),
                    _("Without it the rule would mean something else."),
                )
            ) from None
        parts.append({"not": part} if is_negated else part)
        known = _LOOKS | _DATA.get(_type(one), frozenset())
        notes += entry.left_out([*unknown_fields(one, _REQUIREMENT), *unknown_fields(node_of(one.get("data")), known)])
    return _joined(role, parts), tuple(dict.fromkeys(notes))


def _joined(role: Mapping[str, Any], parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    given = role.get("logic")
    match text_of(given).upper() if is_given(given) else "AND":
        case "AND" | "OR" if len(parts) == 1:
            return parts[0]
        case "AND":
            return {"all": list(parts)}
        case "OR":
            return {"any": list(parts)}
        case "NOR":
            return {"not": {"any": list(parts)}}
        case "NAND":
            return {"not": {"all": list(parts)}}
        case "ANY_OF":
            least = entry.count(role.get("anyOfNum"), entry.REQUIREMENTS)
            if least is None or not 1 <= least <= len(parts):
                raise Unmapped(
                    _("It asks for {least} of its {count} requirements.").format(
                        least=shown(role.get("anyOfNum")), count=len(parts)
                    )
                )
            return {"atLeast": {"n": least, "of": list(parts)}}
        case _:
            raise Unmapped(
                _("It joins its requirements by {logic}, whose meaning is not known.").format(
                    logic=shown(role.get("logic"))
                )
            )


def _requirement(given: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    kind, data = _type(given), node_of(given.get("data"))
    if reason := _ELSEWHERE.get(kind):
        raise Unmapped(_(reason))
    if is_given(given.get("data")) and not is_node(given["data"]):
        raise entry.unreadable("data")
    if is_given(given.get("value")):
        # The first version of the API had the amount here.
        if kind not in {"COIN", "ERC20"} or _minimum(data) is not None:
            raise Unmapped(_("It has a value in the form of Guild's first API, which says too little."))
        data = {**data, "amount": given["value"]}
    if kind == "ALLOWLIST":
        return _allowlist(data)
    if kind not in {"COIN", "ERC20", "ERC721", "ERC1155", "CONTRACT"}:
        raise entry.no_such_type(given.get("type"))
    chain = entry.chain_by_name(given.get("chain"), CHAIN_IDS)
    if kind == "COIN":
        return _coin(data, chain, "native", notes)
    address = text_of(given.get("address"))
    if not address:
        raise Unmapped(_("It names no contract."))
    if kind == "ERC20":
        return _coin(data, chain, address, notes)
    return _call(data, chain, address, notes) if kind == "CONTRACT" else _tokens(data, chain, address, notes)


def _type(requirement: Mapping[str, Any]) -> str:
    return text_of(requirement.get("type")).upper()


def _coin(data: Mapping[str, Any], chain: str, contract: str, notes: list[str]) -> dict[str, Any]:
    if _token_ids(data) or _traits(data):
        raise entry.coin_with_tokens()
    least, most = entry.coins(_minimum(data), entry.MINIMUM), entry.coins(_maximum(data), entry.MAXIMUM)
    leaf: dict[str, Any] = {"type": "token", "chain": chain, "contract": contract}
    if most is None and least in {None, "0"}:
        # Guild shows this as "any amount".
        return {"not": leaf | {"max": "0"}}
    if most is not None:
        notes.append(_(_INCLUSIVE))
    return leaf | ({} if least is None else {"min": least}) | ({} if most is None else {"max": most})


_INCLUSIVE = N_("The maximum itself still counts here; Guild shows a range without saying so.")


def _minimum(data: Mapping[str, Any]) -> Any:
    """Return the least amount, which older documents call `amount`. Raises Unmapped if the two fields differ."""
    found = [data[name] for name in ("minAmount", "amount") if data.get(name) not in (None, "")]
    if len(found) == 2 and found[0] != found[1]:
        raise Unmapped(_("It says two things: its amount and its minimum differ."))
    return found[0] if found else None


def _maximum(data: Mapping[str, Any]) -> Any:
    given = data.get("maxAmount") or None
    # Guild shows a maximum of 0 as no maximum.
    return None if entry.coins(given, entry.MAXIMUM) == "0" else given


def _tokens(data: Mapping[str, Any], chain: str, contract: str, notes: list[str]) -> dict[str, Any]:
    least, most = entry.count(_minimum(data), entry.MINIMUM), entry.count(_maximum(data), entry.MAXIMUM)
    ids, traits = _token_ids(data), _traits(data)
    if most is not None:
        notes.append(_(_INCLUSIVE))
    if most is None or ids or traits:
        # Guild shows one token both for no minimum and for a minimum of 0.
        least = least or 1
    if ids and traits:
        raise Unmapped(_("It asks for token IDs and attributes at once; a rule here asks for one of both."))
    if ids:
        return entry.of_single_tokens(chain, contract, ids, least or 0, most)
    if traits:
        return entry.of_traits(chain, contract, traits, least or 0, most)
    return entry.of_tokens(chain, contract, least or 0, most)


def _token_ids(data: Mapping[str, Any]) -> list[str]:
    one, several = data.get("id"), data.get("ids")
    if is_given(several) and not is_list(several):
        raise Unmapped(_("Its token IDs cannot be read."))
    given = [*([one] if is_given(one) or one == 0 else []), *list_of(several)]
    if len(given) > MOST_ENTRIES:
        raise Unmapped(
            _("It names {count} token IDs; a rule here names at most {most}.").format(
                count=number(len(given)), most=MOST_ENTRIES
            )
        )
    ids = [text_of(item) for item in given]
    if not all(one.isascii() and one.isdigit() for one in ids):
        raise Unmapped(_("Its token IDs cannot be read."))
    return list(dict.fromkeys(ids))


def _traits(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    one, several = data.get("attribute"), data.get("attributes")
    given = [*([one] if is_given(one) else []), *list_of(several)]
    if (is_given(several) and not is_list(several)) or not all(map(is_node, given)):
        raise Unmapped(_("Its traits cannot be read."))
    if len(given) > 1:
        raise Unmapped(_("It names several attributes, and Guild does not say whether one token needs all of them."))
    return [_trait(node_of(one)) for one in given]


def _trait(given: Mapping[str, Any]) -> tuple[str, str]:
    kind, value = given.get("trait_type"), given.get("value")
    interval = node_of(given.get("interval"))
    if is_given(given.get("interval")) and not interval:
        raise Unmapped(_("Its traits cannot be read."))
    least = _bound(interval.get("min"), given.get("minValue"), "minValue")
    most = _bound(interval.get("max"), given.get("maxValue"), "maxValue")
    if strange := unknown_fields(given, {"trait_type", "value", "interval", "minValue", "maxValue"}):
        raise Unmapped(
            _("One of its attributes has the field {field}, whose meaning is not known.").format(
                field=shown(strange[0])
            )
        )
    if least is None and most is None:
        if not is_given(value) and value != 0:
            raise Unmapped(_("It accepts any value of an attribute; a rule here names the value."))
        return entry.exact_trait(kind, value)
    if is_given(value) or not isinstance(kind, str) or not kind.strip():
        raise Unmapped(_("One of its attributes has a value and a range, or no type."))
    if least is None or most is None:
        return kind, f"<={most}" if least is None else f">={least}"
    return kind, f"{least}..{most}"


def _bound(of_interval: Any, alone: Any, name: str) -> str | None:
    """Return an end of a range, which an attribute has in its interval or alone in the field of this name."""
    one, other = entry.coins(of_interval, entry.ATTRIBUTE), entry.coins(alone, entry.ATTRIBUTE)
    if one is not None and other is not None and one != other:
        raise entry.contradiction("interval", name)
    return other if one is None else one


def _allowlist(data: Mapping[str, Any]) -> dict[str, Any]:
    given = list_of(data.get("addresses"))
    if not given:
        raise Unmapped(
            _("Its list of addresses is hidden or empty in the document. Add the addresses to a rule by hand.")
        )
    if is_given(data.get("fileId")):
        raise Unmapped(_("Its list of addresses goes on in a file that the document does not have."))
    if len(given) > MOST_ADDRESSES:
        raise Unmapped(
            _("Its list has {count} addresses; a list here has at most {most}.").format(
                count=number(len(given)), most=number(MOST_ADDRESSES)
            )
        )
    return {"type": "address_list", "addresses": list(_distinct(given))}


def _distinct(given: Iterable[object]) -> dict[str, None]:
    """Return addresses without repetitions, in their order. Whether they are addresses is checked later, in steps."""
    found: dict[str, str] = {}
    for one in given:
        text = text_of(one)
        found.setdefault(text.lower() if text[:2].lower() == "0x" else text, text)
    return dict.fromkeys(found.values())


def _call(data: Mapping[str, Any], chain: str, contract: str, notes: list[str]) -> dict[str, Any]:
    """Return the condition on what a contract's function answers; `id` is like `balanceOf(address)(uint256)`."""
    name, inner, rest = text_of(data.get("id")).partition("(")
    inputs, between, outputs = rest.partition(")(")
    if not (name.strip() and inner and between and outputs.endswith(")")) or "(" in inputs or "(" in outputs:
        raise Unmapped(_("Its function, {function}, cannot be read.").format(function=shown(data.get("id"))))
    compare, value = text_of(data.get("resultMatch")) or "=", text_of(data.get("expected"))
    if compare not in _CALLS:
        raise Unmapped(_("It compares by {sign}, which no rule here does.").format(sign=shown(compare)))
    if compare in {">", "<"}:
        if not (value.isascii() and value.removeprefix("-").isdigit() and len(value) <= 78):
            raise Unmapped(_("It compares with {value}, which is not a whole number.").format(value=shown(value)))
        value = str(int(value) + (1 if compare == ">" else -1))
    params = list_of(data.get("params"))
    if len(params) > MAX_LEAVES:
        raise Unmapped(
            _("It passes {count} parameters; a rule here passes at most {most}.").format(
                count=number(len(params)), most=MAX_LEAVES
            )
        )
    index = entry.count(data.get("resultIndex"), entry.ANSWER_PART)
    answers = outputs.removesuffix(")").count(",") + 1
    notes.append(_("A number adds up over all wallets of a member here."))
    return {
        "type": "call", "chain": chain, "contract": contract,
        "function": f"{name.strip()}({inputs}) view returns ({outputs.removesuffix(')')})",
        "args": [_argument(one) for one in params],
        "compare": _CALLS[compare], "value": value,
    } | ({"path": str(index or 0)} if answers > 1 or index else {})  # fmt: skip


def _argument(given: object) -> str:
    value = node_of(given).get("value") if is_node(given) else given
    text = str(value).lower() if isinstance(value, bool) else text_of(value)
    return WALLET if text == "USER_ADDRESS" else text
