"""Import of rules: preview which entries of a document become rules and why others do not, then create the rules.

Nothing is guessed: an entry without an exact counterpart, or whose role is not found, is skipped with a sentence.
"""

import asyncio
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast
from weakref import WeakValueDictionary

from sqlmodel import col, select

from gateways import Gateways
from gateways.transport import fair_turns
from gateways.transport.plain_text import one_line, plain
from locales import N_, _, listed, number
from models import Rule
from models.db.database import release
from models.db.session import AsyncSession
from services.collections import collections
from services.core import audit
from services.core.actors import Actor
from services.core.errors import FieldRefused, ProviderUnavailable
from services.core.json_view import json_view
from services.guilds import permissions
from services.guilds.permissions import Rights
from services.rules import contract_check, limits, rules
from services.rules.documents import collabland, entry, guild_xyz, json_documents, own_format
from services.rules.documents.entry import ParsedEntry, ParsedRule, SkippedEntry, Unmapped
from services.rules.documents.json_documents import DocumentRefused, shown
from services.rules.draft import LONGEST_NAME, RuleDraft, check, with_lists, without_lists
from services.rules.expression import Expression, lists_in, parse, requirements, to_document
from services.rules.limits import LARGEST_RULE
from services.rules.rule_rows import new_row
from services.rules.types.declaration import ExpressionRefused
from services.rules.types.submitted_address_lists import GivenLists, ListReader
from services.rules.wording import Line, in_lines, in_words
from services.runtime.loop_steps import in_steps
from settings import settings

COLLABLAND, GUILD, HOLDFAST = "collabland", "guild", "holdfast"
READERS: Mapping[str, Callable[[object, str], list[ParsedEntry]]] = {
    COLLABLAND: collabland.read, GUILD: guild_xyz.read, HOLDFAST: own_format.read,
}  # fmt: skip
"""The source of a document → the function that reads it."""
READING_SECONDS = 20.0
"""Maximum time for reading contracts; the remaining ones are read when the rules are created."""
_LONGEST_ID = 20
_turns: WeakValueDictionary[int, asyncio.Semaphore] = WeakValueDictionary()
"""User id → the semaphore that lets only one of the user's imports read contracts at a time."""


@dataclass(frozen=True, slots=True)
class ImportOrder:
    """What to import: a document, its source, and in `only` the numbers of the chosen rules, or None for all of them.

    A document is a text, or a value that `json_documents.read` has returned.
    """

    source: str
    document: object
    only: Collection[int] | None = None


@json_view
class ImportedRule:
    """The rule that an entry becomes: its `payload`, its requirements in words, and notes about it.

    `number` is the rule's number in the document. `id` is set once the rule has been created.
    """

    number: int
    what: str
    name: str
    payload: dict[str, Any]
    role_id: str
    role_name: str
    role_color: str
    summary: str
    lines: tuple[Line, ...]
    notes: tuple[str, ...]
    id: int | None = None


@json_view
class ImportView:
    """The rules that a document becomes in a server; `warning` is empty, or says that there is no room for them all."""

    rules: tuple[ImportedRule, ...]
    skipped: tuple[SkippedEntry, ...]
    warning: str
    applied: bool


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An entry whose role was found and whose terms are valid: its draft, and its row, which is in no session."""

    source: ParsedRule
    draft: RuleDraft
    row: Rule
    tree: Expression
    notes: tuple[str, ...]


async def preview(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, order: ImportOrder) -> ImportView:
    """Return the rules that a document would become, without storing any.

    Raises ServerNotFound unless the actor runs the server, Conflict (the bot is not in), DocumentRefused,
    ProviderUnavailable (Discord).
    """
    candidates, skipped = await _read(db, outside, actor, server_id, order)
    return await _view(db, server_id, candidates, skipped)


async def apply(db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, order: ImportOrder) -> ImportView:
    """Create the rules of a document in shadow: all that `preview` returns, or the chosen ones. An error creates none.

    Raises as `preview` does, and Conflict for more rules than the server can have, ProviderUnavailable.
    """
    candidates, skipped = await _read(db, outside, actor, server_id, order)
    if order.only is not None:
        candidates = [one for one in candidates if one.source.number in order.only]
    seen = await _view(db, server_id, candidates, skipped)
    if not candidates:
        return replace(seen, warning="", applied=True)
    drafts = [replace(one.draft, rule_name=view.name) for one, view in zip(candidates, seen.rules, strict=True)]
    made = await rules.create_all(db, outside, actor, drafts)
    data = {"source": order.source, "rules": len(made), "skipped": len(skipped)}
    await audit.record(db, audit.line("rule.imported", server_id=server_id, actor=actor.discord_id, data=data))
    with_ids = tuple(replace(view, id=rule.id) for view, rule in zip(seen.rules, made, strict=True))
    return ImportView(with_ids, seen.skipped, "", applied=True)


async def _read(
    db: AsyncSession, outside: Gateways, actor: Actor, server_id: int, order: ImportOrder
) -> tuple[list[_Candidate], list[SkippedEntry]]:
    found = await permissions.require_admin(db, outside, actor, server_id)
    found.guild_with_bot()
    reader = READERS.get(order.source)
    if reader is None:
        raise FieldRefused("source", _("The source is one of {sources}.").format(sources=", ".join(READERS)))
    given = await json_documents.read(order.document) if isinstance(order.document, str) else order.document
    entries = entry.numbered(reader(given, found.server.discord_id))
    _check_addresses(entries)
    lists = ListReader()
    candidates: list[_Candidate] = []
    skipped: list[SkippedEntry] = []
    async for one in in_steps(entries):
        if isinstance(one, SkippedEntry):
            skipped.append(one)
            continue
        try:
            candidates.append(await _candidate(one, found, actor, lists))
        except (Unmapped, ExpressionRefused) as fault:
            skipped.append(SkippedEntry(one.what, str(fault)))
        except FieldRefused as fault:
            skipped.append(SkippedEntry(one.what, fault.message))
    candidates = await _without_repetitions(db, server_id, candidates, skipped)
    await release(db)
    turn = _turns.setdefault(actor.user_id, asyncio.Semaphore(1))
    async with turn:
        with fair_turns.on_behalf_of(f"server:{server_id}"):
            return await _with_contracts(db, outside, candidates, skipped), skipped


def _check_addresses(entries: Iterable[ParsedEntry]) -> None:
    """Raise DocumentRefused if the entries name more addresses than a server can list: reading each takes time."""
    lists, most = GivenLists(), settings().addresses_per_server
    for one in entries:
        if isinstance(one, ParsedRule):
            lists.take_out(one.expression)
    if lists.addresses > most:
        raise DocumentRefused(
            _("The lists of this document have {count} addresses, and a server can list at most {most}.").format(
                count=number(lists.addresses), most=number(most)
            )
        )


async def _candidate(one: ParsedRule, found: Rights, actor: Actor, reader: ListReader) -> _Candidate:
    """Return an entry as a draft and a row. Raises Unmapped, FieldRefused, ExpressionRefused."""
    role_id, notes = _role(one, found)
    draft = RuleDraft(
        rule_name=_named(one) or one.what, contract_address="", blockchain="",
        verification_type="basic", role_id=role_id, server_id=found.server.id or 0, role_color=one.role_color,
        expression=one.expression, removal_mode=one.removal_mode, removal_hours=one.removal_hours, shadow=True,
        takes_over=one.takes_over, delegated=one.delegated,
    )  # fmt: skip
    lists = GivenLists(reader)
    bare = without_lists(draft, lists)
    if len(json.dumps(bare.expression, default=str)) > LARGEST_RULE:
        raise Unmapped(_("It is larger than a rule can be ({size} KiB).").format(size=LARGEST_RULE // 1024))
    check(bare)
    await lists.read()
    row = new_row(with_lists(bare, lists), found, actor.discord_id)
    return _Candidate(one, draft, row, parse(row.expression), (*notes, *one.notes))


def _named(one: ParsedRule) -> str:
    """Return the name that a document gives a rule, on one line, or an empty text."""
    # Cut first: a name can be as long as the document.
    return one_line(one.name[: 4 * LONGEST_NAME])[:LONGEST_NAME].strip()


def _role(one: ParsedRule, found: Rights) -> tuple[str, tuple[str, ...]]:
    """Return the id of the role that an entry names, with a note if only the name was found. Raises Unmapped."""
    guild_now = found.guild_with_bot()[0]
    if one.role_id and any(role.id == one.role_id for role in guild_now.roles):
        return one.role_id, ()
    for name in one.role_names:
        same = [role.id for role in guild_now.roles if role.name == name and role.id != guild_now.id]
        if len(same) > 1:
            raise Unmapped(
                _("This server has {count} roles called {name}. Rename all but one of them.").format(
                    count=len(same), name=shown(name)
                )
            )
        if same:
            return same[0], (_("Its role was found by the name {name}.").format(name=shown(name)),)
    wanted = [*dict.fromkeys(shown(name) for name in one.role_names)]
    if one.role_id and one.role_id not in one.role_names:
        wanted.append(_("the ID {id}").format(id=one.role_id[:_LONGEST_ID]))
    if not wanted:
        raise Unmapped(_("It names no role."))
    # Translators: {names} are names of roles in quotation marks, or "the ID 123".
    raise Unmapped(
        _("This server has no role with {names}. Create the role and import again.").format(names=listed(wanted, "or"))
    )


async def _without_repetitions(
    db: AsyncSession, server_id: int, candidates: Sequence[_Candidate], skipped: list[SkippedEntry]
) -> list[_Candidate]:
    """Return the candidates that repeat neither an existing rule nor an earlier candidate."""
    stored = await db.exec(select(Rule).where(Rule.server_id == server_id, col(Rule.deleted_at).is_(None)))
    told = _("The server has this rule already: {name}.")
    known = {_key(rule): told.format(name=shown(rule.name, 60)) for rule in stored.all()}
    found: list[_Candidate] = []
    for one in candidates:
        if (reason := known.get(_key(one.row))) is not None:
            skipped.append(SkippedEntry(one.source.what, reason))
        else:
            known[_key(one.row)] = _("It says the same as {entry}.").format(entry=one.source.what)
            found.append(one)
    return found


def _key(rule: Rule) -> str:
    """Return a key that is the same for rules that give the same role to the same people."""
    return json.dumps([rule.role_id, rule.delegated, _without_facts(rule.expression)], sort_keys=True)


def _without_facts(document: Any) -> Any:
    """Return an expression's document without the decimals of coins, which are read when a rule is saved."""
    if isinstance(document, list):
        return [_without_facts(one) for one in cast("list[Any]", document)]
    if not isinstance(document, Mapping):
        return document
    node = cast("Mapping[str, Any]", document)
    return {name: _without_facts(value) for name, value in node.items() if name != "decimals"}


async def _with_contracts(
    db: AsyncSession, outside: Gateways, candidates: Sequence[_Candidate], skipped: list[SkippedEntry]
) -> list[_Candidate]:
    """Return the candidates whose contracts a rule can use, with a note if a contract could not be read just now."""
    until = asyncio.get_running_loop().time() + READING_SECONDS
    silent = set[str]()
    found: list[_Candidate] = []
    for one in candidates:
        chains = {leaf.chain for leaf in requirements(one.tree) if leaf.chain}
        if chains & silent or asyncio.get_running_loop().time() > until:
            found.append(replace(one, notes=(*one.notes, _(_UNREAD))))
            continue
        try:
            facts = await contract_check.read(db, outside, one.tree)
            if facts.refused:
                skipped.append(SkippedEntry(one.source.what, next(iter(facts.refused.values()))))
                continue
            tree = contract_check.completed(one.tree, facts.decimals)
            await contract_check.remember(db, facts)
            found.append(replace(one, tree=tree))
        except ProviderUnavailable:
            silent |= chains
            found.append(replace(one, notes=(*one.notes, _(_UNREAD))))
        except FieldRefused as fault:
            skipped.append(SkippedEntry(one.source.what, fault.message))
    return found


_UNREAD = N_("Its contract could not be read just now. It is checked again when the rule is made.")


async def _view(
    db: AsyncSession, server_id: int, candidates: Sequence[_Candidate], skipped: Sequence[SkippedEntry]
) -> ImportView:
    leaves = [leaf for one in candidates for leaf in requirements(one.tree)]
    names = await collections.names(db, [(leaf.chain, leaf.contract) for leaf in leaves])
    views: list[ImportedRule] = []
    for one in candidates:
        summary = in_words(one.tree, names)
        name = _named(one.source) or plain(summary, LONGEST_NAME)
        row = one.row
        payload = {
            "serverId": server_id, "ruleName": name, "roleId": row.role_id, "roleColor": row.role_color,
            "expression": to_document(one.tree), "removal": {"mode": row.removal_mode, "hours": row.removal_hours},
            "shadow": True, "takesOver": row.takes_over, "delegated": row.delegated,
        }  # fmt: skip
        views.append(
            ImportedRule(
                one.source.number, one.source.what, name, payload, row.role_id, row.role_name, row.role_color,
                summary, in_lines(one.tree, names), (*one.notes, *_list_notes(one.tree)),
            )
        )  # fmt: skip
    return ImportView(tuple(views), tuple(skipped), await _room(db, server_id, len(views), len(leaves)), applied=False)


def _list_notes(tree: Expression) -> tuple[str, ...]:
    if not lists_in(tree):
        return ()
    return (_("Its addresses are stored when the rule is made; until then the payload only counts them."),)


async def _room(db: AsyncSession, server_id: int, more: int, conditions: int) -> str:
    """Return a sentence if the server has no room for so many rules or conditions; otherwise an empty text."""
    room = await limits.room(db, server_id)
    left = max(0, room.most_rules - room.rules)
    if more > left:
        return _("This server has room for {left} more of its {most} rules. Choose at most {left}.").format(
            left=left, most=room.most_rules
        )
    left = max(0, room.most_conditions - room.conditions)
    if conditions > left:
        return _(
            "These rules have {conditions} conditions, and this server has room for {left} more. Choose fewer rules."
        ).format(conditions=conditions, left=left)
    return ""
