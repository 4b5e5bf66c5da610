"""A line of the audit log for its reader: the names and reasons in the sentences of `services/core/event_kinds`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from gateways.transport.plain_text import one_line
from locales import N_, _, listed, ngettext, pieces
from locales.stored_texts import said
from services.core.addresses import shorten
from services.core.audit import BY_TOKEN, EventView
from services.core.chain_names import chain_title
from services.core.event_kinds import EVENT_KINDS, EventKind
from services.guilds.role_safety import UNKNOWN_ROLE, translated
from services.rules.expression import parse_stored
from services.rules.types.registry import rule_type
from services.rules.wording import Names, in_words
from settings import settings

FORGOTTEN = "forgotten-"
"""Prefix of the pseudonym of somebody who asked to be forgotten."""


@dataclass(frozen=True, slots=True)
class KnownNames:
    """Names for the ids in lines: people, roles and rules by id, collections by chain and contract."""

    people: Mapping[str, str] = field(default_factory=dict[str, str])
    roles: Mapping[str, str] = field(default_factory=dict[str, str])
    rules: Mapping[int, str] = field(default_factory=dict[int, str])
    collections: Names = field(default_factory=dict[tuple[str, str], str])

    def person(self, discord_id: str | None) -> str:
        """Return a name for this id; Holdfast's own name for events without a person."""
        if discord_id is None:
            return settings().product_name
        if discord_id.startswith(FORGOTTEN):
            return _("a member who deleted their data")
        # Translators: somebody whose name is not known.
        return self.people.get(discord_id) or _("somebody (ID {id})").format(id=discord_id)


@dataclass(frozen=True, slots=True)
class NamedEvent:
    """An event with names instead of ids: the facts of its sentence."""

    event: EventView
    known: KnownNames

    @property
    def data(self) -> Mapping[str, Any]:
        """The recorded data."""
        return self.event.data

    @property
    def who(self) -> str:
        """The actor's name."""
        return actor_name(self.event, self.known)

    @property
    def member(self) -> str:
        """The member concerned."""
        return self.known.person(self.event.subject)

    @property
    def is_about_a_member(self) -> bool:
        """Whether it concerns a member."""
        return bool(self.event.subject)

    @property
    def is_by_the_member(self) -> bool:
        """Whether the member concerned did it."""
        return self.is_about_a_member and self.event.subject == self.event.actor

    @property
    def role(self) -> str:
        """The role concerned."""
        for document in (self.event.data, self.doc("rule"), self.doc("after")):
            if isinstance(name := document.get("roleName"), str) and (legible := one_line(name)):
                return legible
        return self.known.roles.get(self.event.role_id or "") or _(UNKNOWN_ROLE)

    @property
    def rule(self) -> str:
        """The rule concerned, in quotation marks."""
        name = self.doc("rule").get("name") or self.doc("after").get("name")
        return _quoted(str(name or self.known.rules.get(self.event.rule_id or 0) or _("a rule")))

    @property
    def rules(self) -> str:
        """The rules that grant the role, as `“A” and “B”`, or empty."""
        ids = cast("list[int]", self.event.data.get("ruleIds") or [])
        names = [_quoted(self.known.rules[one]) for one in ids if one in self.known.rules]
        return listed(names) if names else ""

    @property
    def asks(self) -> str:
        """What the rule asks for, or empty."""
        return _lowered(asked(self.doc("rule"), self.known.collections))

    @property
    def changes(self) -> str:
        """The changes to the rule."""
        return changes(self.doc("before"), self.doc("after"), self.known.collections)

    @property
    def pause(self) -> str:
        """Why the rule was paused: a sentence."""
        return translated(str(self.event.data.get("reason", "")), self.role)

    @property
    def reason(self) -> str:
        """Why no rule entitles the member to the role, or empty."""
        return why_not(readings_of(self.event.data), self.known.collections)

    def doc(self, name: str) -> dict[str, Any]:
        """Return a document in the line's data; empty if there is none."""
        value = self.event.data.get(name)
        return cast("dict[str, Any]", value) if isinstance(value, dict) else {}

    def contract(self, name: str) -> str:
        """Return a contract in the line's data with its chain, as `Mellow Cats on Base`."""
        found = self.doc(name)
        known, chain = found.get("name") or shorten(str(found.get("contract", ""))), str(found.get("chain", ""))
        return _("{collection} on {chain}").format(collection=known, chain=chain_title(chain))

    def count(self, name: str) -> int:
        """Return a number in the line's data."""
        value = self.event.data.get(name)
        return value if isinstance(value, int) else 0

    def told(self, text: str, **more: object) -> str:
        """Return a text with its places filled in: with the facts of these names, or with `more`."""
        return text.format(**{name: more[name] if name in more else getattr(self, name) for name in pieces(text)[1::2]})


def actor_name(event: EventView, known: KnownNames) -> str:
    """Return the actor's name; a program is named by its API token and the person who made the token."""
    person, token = known.person(event.actor), event.data.get(BY_TOKEN)
    if not isinstance(token, str) or not token:
        return person
    # Translators: {name} is what an admin called an API token, {who} is that admin.
    return _("the token “{name}” of {who}").format(name=token, who=person)


def _quoted(name: str) -> str:
    # Translators: the quotation marks around a name.
    return _("“{name}”").format(name=name)


def sentence(event: EventView, known: KnownNames) -> str:
    """Return the sentence of an event; a kind that is no longer declared appears by its name."""
    facts = NamedEvent(event, known)
    declared = cast("Mapping[str, EventKind]", EVENT_KINDS).get(event.kind)
    text = declared.told(facts) if declared else f"{event.kind.replace('.', ' ').replace('_', ' ')}."
    named = [known.people[one] for one in (event.actor, event.subject) if one is not None and one in known.people]
    # A name at the beginning keeps its own capitals.
    return text if text.startswith(tuple(named)) else text[:1].upper() + text[1:]


def readings_of(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the readings in the data of a line, or in a grant's evidence."""
    return cast("list[dict[str, Any]]", data.get("readings") or [])


def why_not(readings: Sequence[Mapping[str, Any]], names: Names) -> str:
    """Return the first reading by which a rule does not hold, in words; empty without one."""
    causes = (each for each in readings if each.get("answer") == ("yes" if each.get("excluded") else "no"))
    # A rule holds for nobody without a wallet, even if all its conditions must not hold.
    without = (each for each in readings if each.get("answer") == "no" and each.get("reason"))
    one = next(causes, None) or next(without, None)
    if one is None:
        return ""
    if one.get("answer") == "yes":
        return _("meets a condition that must not be met")
    place = str(one.get("chain", "")), str(one.get("contract", ""))
    chain, kind = chain_title(place[0]), rule_type(one.get("type"))
    if one.get("reason"):
        reason = said(str(one["reason"]))
        # Translators: {chain} is the chain that the reason is about.
        return _("{reason} ({chain})").format(reason=reason, chain=chain) if chain else reason
    if kind.chainless:
        return _("has no wallet on the list") if kind.source == "lists" else _("has no such wallet")
    # Translators: {collection} on {chain}: where something is held, such as "Mellow Cats on Base".
    name = _("{collection} on {chain}").format(collection=names.get(place) or shorten(place[1]), chain=chain)
    held, needed, most = one.get("held") or 0, one.get("needed"), one.get("most")
    held = _("about {amount}").format(amount=held) if one.get("rounded") else held
    if kind.source == "anything":
        text = _("holds no NFT on {chain}") if most is None else _("holds an NFT on {chain}, where none is allowed")
        return text.format(chain=chain)
    if kind.source == "calls":
        return _("the answer of {name} is not what the rule asks for").format(name=name)
    if kind.names_ids and not kind.counts and most is None:
        return _("holds none of the tokens asked for of {name}").format(name=name)
    if most is not None:
        text = _("holds {held}, may hold {needed} to {most} of {name}")
        return text.format(held=held, needed=needed, most=most, name=name)
    return _("holds {held}, needs {needed} of {name}").format(held=held, needed=needed, name=name)


def asked(document: Mapping[str, Any], names: Names) -> str:
    """Return what a rule's document asks for, in words."""
    expression = document.get("expression")
    return in_words(parse_stored(expression), names) if expression else ""


_STATES = {"paused": N_("it is paused now"), "shadow": N_("it is in shadow now")}


def changes(before: Mapping[str, Any], after: Mapping[str, Any], names: Names) -> str:
    """Return the differences between two documents of a rule, in words."""
    found: list[str] = []
    if before.get("state") != after.get("state"):
        found.append(_(_STATES.get(str(after.get("state")), N_("it is active now"))))
    if before.get("name") != after.get("name"):
        found.append(_("its name was “{name}”").format(name=before.get("name")))
    if before.get("expression") != after.get("expression"):
        asks = _lowered(asked(after, names)), _lowered(asked(before, names))
        found.append(_("it asks for {new} instead of {old}").format(new=asks[0], old=asks[1]))
    if before.get("roleId") != after.get("roleId"):
        text = _("it gives {new} instead of {old}")
        found.append(text.format(new=after.get("roleName"), old=before.get("roleName")))
    elif before.get("roleColor") != after.get("roleColor"):
        text = _("its colour is {new} instead of {old}")
        found.append(text.format(new=after.get("roleColor"), old=before.get("roleColor")))
    if before.get("removal") != after.get("removal"):
        # Translators: {new} and {old} are such as "at once" or "after 24 hours of grace".
        text = _("roles are taken {new} instead of {old}")
        found.append(text.format(new=_removal(after), old=_removal(before)))
    if before.get("takesOver") != after.get("takesOver"):
        found.append(
            _("it takes over the role from those who had it already")
            if after.get("takesOver")
            else _("it no longer takes over the role from those who had it already")
        )
    if bool(before.get("delegated")) != bool(after.get("delegated")):
        found.append(
            _("it counts what vaults delegated to members' wallets")
            if after.get("delegated")
            else _("it no longer counts what vaults delegated to members' wallets")
        )
    return "; ".join(found) or _("nothing that matters")


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


def _removal(document: Mapping[str, Any]) -> str:
    removal = cast("Mapping[str, Any]", document.get("removal") or {})
    hours = removal.get("hours") or 0
    if removal.get("mode") == "grace" and hours:
        return ngettext("after {count} hour of grace", "after {count} hours of grace", hours).format(count=hours)
    return _("at once")
