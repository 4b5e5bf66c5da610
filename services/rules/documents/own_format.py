"""Our own document of a server's rules: its version, and how it is read. `rules.schema.json` describes it.

Each rule names its role by id and by name, so that another server's role of the same name is found. Fields that only
describe the server where the document was written, such as ids and the number of holders, are left out.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from locales import _
from services.rules.documents import entry
from services.rules.documents.entry import ParsedEntry, ParsedRule, SkippedEntry, Unmapped
from services.rules.documents.json_documents import (
    DocumentRefused,
    is_given,
    list_of,
    node_of,
    shown,
    text_of,
    unknown_fields,
)
from services.rules.types.address_list import ADDRESSES, NAME

FORMAT: Final = "holdfast-rules"
VERSION: Final = 1
_RULE = frozenset(
    {"ruleName", "roleId", "roleName", "roleColor", "expression", "removal", "state", "takesOver", "delegated"}
)
_OF_ONE_SERVER = frozenset(
    {
        "id", "serverId", "contractAddress", "blockchain", "verificationType", "minTokens", "maxTokens", "traitType",
        "traitValue", "tokenIds", "shadow", "pauseReason", "holders", "summary", "singleSources", "addressLists",
        "createdAt",
    }
)  # fmt: skip
"""Further fields of a rule in the complete export of a server; `read` accepts and ignores them."""
_DEEPEST = 16


def written(rules: Iterable[Mapping[str, Any]], lists: Mapping[str, list[str]]) -> dict[str, Any]:
    """Return the document of these rules, with the addresses of their lists by digest."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "rules": list(rules),
        "addressLists": [
            {"list": digest, "count": len(addresses), ADDRESSES: addresses}
            for digest, addresses in sorted(lists.items())
        ],
    }


def read(document: object, _discord_id: str) -> list[ParsedEntry]:
    """Return the rules of a document. Raises DocumentRefused for any other kind or version, or too many rules."""
    node = node_of(document)
    if node.get("format") != FORMAT or not isinstance(node.get("rules"), list):
        raise DocumentRefused(
            _("This is not an export of rules: it has no format {format} and no list of rules.").format(
                format=shown(FORMAT)
            )
        )
    if node.get("version") != VERSION:
        raise DocumentRefused(
            _("The document has version {version}, and this installation reads version {known}.").format(
                version=shown(node.get("version")), known=VERSION
            )
        )
    rules = list_of(node["rules"])
    entry.check_number(len(rules), entry.TOO_MANY_RULES)
    lists = {
        text_of(one.get("list")): one[ADDRESSES]
        for one in map(node_of, list_of(node.get("addressLists"))[: entry.MOST_PARTS])
        if isinstance(one.get(ADDRESSES), list)
    }
    return [_entry(number, one, lists) for number, one in enumerate(rules, 1)]


def _entry(number: int, given: object, lists: Mapping[str, Any]) -> ParsedEntry:
    rule = node_of(given)
    what = entry.label(entry.RULE, number, rule.get("ruleName"))
    try:
        if not isinstance(rule.get("expression"), dict):
            raise Unmapped(_("It has no expression."))
        removal, color = node_of(rule.get("removal")), rule.get("roleColor")
        mode, hours = _removal(rule.get("removal"))
        return ParsedRule(
            what=what,
            name=text_of(rule.get("ruleName")),
            expression=_with_addresses(rule["expression"], lists),
            role_id=text_of(rule.get("roleId")),
            role_names=(name,) if (name := text_of(rule.get("roleName"))) else (),
            notes=entry.left_out(
                [*unknown_fields(rule, _RULE | _OF_ONE_SERVER), *unknown_fields(removal, {"mode", "hours"})]
            ),
            removal_mode=mode,
            removal_hours=hours,
            role_color=color if isinstance(color, str) else None,
            takes_over=entry.truth(rule.get("takesOver"), "takesOver"),
            delegated=entry.truth(rule.get("delegated"), "delegated"),
        )
    except Unmapped as fault:
        return SkippedEntry(what, str(fault))


def _removal(given: object) -> tuple[str, Any]:
    """Return the mode of a rule's removal and its hours: None if they are missing, which the rule's check refuses.

    A rule without a removal takes its role at once. Raises Unmapped for any other shape.
    """
    if not is_given(given):
        return "now", 0
    removal = node_of(given)
    mode = removal.get("mode")
    if not isinstance(mode, str) or not mode.strip():
        # Without the mode nobody knows whether the role is taken at once.
        raise entry.unreadable("removal")
    hours = removal.get("hours")
    return mode.strip(), 0 if hours is None and mode.strip() == "now" else hours


def _with_addresses(document: Any, lists: Mapping[str, Any], depth: int = 0) -> Any:
    """Return an expression with the addresses of each list in place of its digest. Raises Unmapped."""
    if depth > _DEEPEST:
        return document
    if isinstance(document, list):
        return [_with_addresses(one, lists, depth + 1) for one in cast("list[Any]", document)]
    if not isinstance(document, dict):
        return document
    node = cast("dict[str, Any]", document)
    if node.get("type") == NAME and ADDRESSES not in node:
        addresses = lists.get(text_of(node.get("list")))
        if addresses is None:
            raise Unmapped(_("The document does not have the addresses of its list."))
        return {"type": NAME, ADDRESSES: addresses}
    return {name: _with_addresses(value, lists, depth + 1) for name, value in node.items()}
