"""What happened, in a sentence that people read: the one place that turns a line of the log into words."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from services.core.addresses import shorten
from services.core.audit import EventView
from services.core.chain_names import chain_title
from services.rules.expression import parse
from services.rules.wording import Names, in_words
from settings import settings

FORGOTTEN = "forgotten-"
"""How the pseudonym begins that stands for somebody who asked to be forgotten."""


@dataclass(frozen=True, slots=True)
class KnownNames:
    """The names behind the ids of some lines: people, roles and rules by id, collections by chain and contract."""

    people: Mapping[str, str] = field(default_factory=dict[str, str])
    roles: Mapping[str, str] = field(default_factory=dict[str, str])
    rules: Mapping[int, str] = field(default_factory=dict[int, str])
    collections: Names = field(default_factory=dict[tuple[str, str], str])

    def person(self, discord_id: str | None) -> str:
        """A name for whoever has this id; ours for what happened by itself."""
        if discord_id is None:
            return settings().product_name
        if discord_id.startswith(FORGOTTEN):
            return "a forgotten member"
        return self.people.get(discord_id) or f"somebody (ID {discord_id})"


@dataclass(frozen=True, slots=True)
class Told:
    """One line with everything that its sentence is made of."""

    event: EventView
    known: KnownNames

    @property
    def who(self) -> str:
        """Who did it."""
        return self.known.person(self.event.actor)

    @property
    def member(self) -> str:
        """The member concerned."""
        return self.known.person(self.event.subject)

    @property
    def role(self) -> str:
        """The role concerned."""
        for document in (self.event.data, self.doc("rule"), self.doc("after")):
            if isinstance(name := document.get("roleName"), str) and name:
                return name
        return self.known.roles.get(self.event.role_id or "") or "a role"

    @property
    def rule(self) -> str:
        """The rule concerned, in quotation marks."""
        name = self.doc("rule").get("name") or self.doc("after").get("name")
        return f"“{name or self.known.rules.get(self.event.rule_id or 0) or 'a rule'}”"

    @property
    def by_rules(self) -> str:
        """The rules that a role hangs on, as ` by “A” and “B”`, or nothing."""
        ids = cast("list[int]", self.event.data.get("ruleIds") or [])
        names = [f"“{self.known.rules[one]}”" for one in ids if one in self.known.rules]
        return f" by {' and '.join(names)}" if names else ""

    def doc(self, name: str) -> dict[str, Any]:
        """A document within the line's data; empty if it has none."""
        value = self.event.data.get(name)
        return cast("dict[str, Any]", value) if isinstance(value, dict) else {}

    def count(self, name: str) -> int:
        """A number within the line's data."""
        value = self.event.data.get(name)
        return value if isinstance(value, int) else 0

    def members(self, name: str) -> str:
        """A number of members, in words."""
        return members(self.count(name))


def members(count: int) -> str:
    """So many members."""
    return {0: "nobody", 1: "1 member"}.get(count, f"{count} members")


def sentence(event: EventView, known: KnownNames) -> str:
    """What happened; a kind without words of its own is told by its name."""
    told = Told(event, known)
    words = SENTENCES.get(event.kind)
    text = words(told) if words else f"{event.kind.replace('.', ' ').replace('_', ' ')}."
    named = [known.people[one] for one in (event.actor, event.subject) if one is not None and one in known.people]
    # A name at the beginning is somebody's own: it stays as they write it.
    return text if text.startswith(tuple(named)) else text[:1].upper() + text[1:]


def readings_of(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The readings within the data of a line, or within a grant's evidence."""
    return cast("list[dict[str, Any]]", data.get("readings") or [])


def why_not(readings: Sequence[Mapping[str, Any]], names: Names) -> str:
    """Why a role went: the first reading that said no, in words; empty without one."""
    one = next((reading for reading in readings if reading.get("answer") == "no"), None)
    if one is None:
        return ""
    place = str(one.get("chain", "")), str(one.get("contract", ""))
    chain = chain_title(place[0])
    if one.get("reason"):
        return f"{one['reason']} ({chain})"
    name = f"{names.get(place) or shorten(place[1])} on {chain}"
    match one.get("type"):
        case "any_nft":
            return f"holds no NFT on {chain}"
        case "token_id":
            return f"holds none of the tokens asked for of {name}"
        case _:
            return f"holds {one.get('held') or 0}, needs {one.get('needed')} of {name}"


def _given(told: Told) -> str:
    if told.event.data.get("gift"):
        return f"{told.member} got {told.role} back, because an admin undid its removal."
    return f"{told.member} got {told.role}{told.by_rules}."


def _taken(told: Told) -> str:
    reason = why_not(readings_of(told.event.data), told.known.collections)
    return f"{told.member} lost {told.role}: {reason or 'no rule entitles them to it any more'}."


def _chose(told: Told) -> str:
    uses = "lets their wallets count here" if told.event.data.get("useWallets") else "lets no wallet count here"
    shares = "shares their" if told.event.data.get("shareWallets") else "does not share their"
    return f"{told.member} {uses} and {shares} shortened addresses with admins."


def _created(told: Told) -> str:
    asks = asked(told.doc("rule"), told.known.collections)
    return f"{told.who} made the rule {told.rule} for {told.role}{f': {_lowered(asks)}' if asks else ''}."


def _previewed(told: Told) -> str:
    asks = asked(told.doc("rule"), told.known.collections)
    if told.event.data.get("deletes"):
        return f"{told.who} looked at whom the end of the rule {told.rule} would concern."
    return f"{told.who} looked at whom the rule {told.rule} would concern{f': {_lowered(asks)}' if asks else ''}."


def _changed(told: Told) -> str:
    said = changes(told.doc("before"), told.doc("after"), told.known.collections)
    return f"{told.who} changed the rule {told.rule}: {said}."


def asked(document: Mapping[str, Any], names: Names) -> str:
    """What a rule's document asks for, in words."""
    expression = document.get("expression")
    return in_words(parse(expression), names) if expression else ""


_STATES = {"paused": "it rests now", "shadow": "it only watches now"}


def changes(before: Mapping[str, Any], after: Mapping[str, Any], names: Names) -> str:
    """What is different between two documents of a rule, in words."""
    found: list[str] = []
    if before.get("state") != after.get("state"):
        found.append(_STATES.get(str(after.get("state")), "it is active now"))
    if before.get("name") != after.get("name"):
        found.append(f"its name was “{before.get('name')}”")
    if before.get("expression") != after.get("expression"):
        found.append(f"it asks for {_lowered(asked(after, names))} instead of {_lowered(asked(before, names))}")
    if before.get("roleId") != after.get("roleId"):
        found.append(f"it gives {after.get('roleName')} instead of {before.get('roleName')}")
    elif before.get("roleColor") != after.get("roleColor"):
        found.append(f"its colour is {after.get('roleColor')} instead of {before.get('roleColor')}")
    if before.get("removal") != after.get("removal"):
        found.append(f"roles go {_removal(after)} instead of {_removal(before)}")
    if before.get("takesOver") != after.get("takesOver"):
        over = "takes over the role from" if after.get("takesOver") else "no longer takes over the role from"
        found.append(f"it {over} those who had it already")
    if bool(before.get("delegated")) != bool(after.get("delegated")):
        counts = "counts what vaults delegated" if after.get("delegated") else "no longer counts what vaults delegated"
        found.append(f"it {counts} to members' wallets")
    return "; ".join(found) or "nothing that counts"


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


def _removal(document: Mapping[str, Any]) -> str:
    removal = cast("Mapping[str, Any]", document.get("removal") or {})
    hours = removal.get("hours") or 0
    return f"after {hours} hours of grace" if removal.get("mode") == "grace" and hours else "at once"


def _rechecked(told: Told) -> str:
    if told.event.subject and told.event.subject == told.event.actor:
        return f"{told.who} asked to be checked again."
    if told.event.subject:
        return f"{told.who} had {told.member} checked again."
    return f"{told.who} had everybody checked again ({told.members('members')})."


def _left(told: Told) -> str:
    count = told.count("roles")
    return f"{told.member} left the server, and with them {'1 role' if count == 1 else f'{count} roles'} of ours."


def _channel(told: Told) -> str:
    done = ", ".join(cast("list[str]", told.event.data.get("done") or [])).rstrip(".")
    return f"{told.who} put the verification channel in order{f': {_lowered(done)}' if done else ''}."


def _undone(told: Told) -> str:
    match told.event.data.get("of"):
        case "rule.deleted":
            return f"{told.who} brought the rule {told.rule} back."
        case "rule.changed":
            return f"{told.who} undid a change of the rule {told.rule}."
        case "rule.paused":
            return f"{told.who} let the rules for {told.role} go on."
        case "role.lost":
            return f"{told.who} gave {told.role} back to {told.members('members')} from whom somebody had taken it."
        case _:
            return f"{told.who} undid a removal of {told.role}: {told.members('members')} get it back."


SENTENCES: Mapping[str, Callable[[Told], str]] = {
    "role.given": _given,
    "role.taken": _taken,
    "role.lost": lambda told: f"somebody took {told.role} from {told.member}; it was not us.",
    "role.reasons": lambda told: f"{told.member} now has {told.role}{told.by_rules or ' by no rule'}.",
    "role.taken_over": lambda told: f"{told.role} of {told.member} was given by hand and now follows the rules.",
    "role.deleted": lambda told: f"{told.role} was deleted in Discord; {told.members('holders')} had it from us.",
    "role.protected": lambda told: (
        f"{told.who} protected {told.role}: it is taken from nobody."
        if told.event.data.get("protected")
        else f"{told.who} no longer protects {told.role}."
    ),
    "rule.created": _created,
    "rule.changed": _changed,
    "rule.previewed": _previewed,
    "rule.paused": lambda told: f"the rule {told.rule} was paused: {told.event.data.get('reason', '')}",
    "rule.resumed": lambda told: f"the rule {told.rule} goes on: what had paused it is mended.",
    "rule.deleted": lambda told: (
        f"{told.who} deleted the rule {told.rule}; {told.members('holders')} had {told.role} by it."
    ),
    "batch.undone": _undone,
    "member.left": _left,
    "member.protected": lambda told: (
        f"{told.who} protected {told.member}: nothing is taken from them."
        if told.event.data.get("protected")
        else f"{told.who} no longer protects {told.member}."
    ),
    "member.chose": _chose,
    "member.forgotten": lambda told: "a member asked to be forgotten; roles first, then their data.",
    "breaker.tripped": lambda told: (
        f"removals of {told.role} are held back: {told.count('wouldLose')} of "
        f"{told.count('holders')} holders would lose it within a day."
    ),
    "breaker.approved": lambda told: f"{told.who} let the held-back removals of {told.role} go on.",
    "breaker.dismissed": lambda told: (
        f"{told.who} dismissed the held-back removals of {told.role}; {told.members('members')} keep it."
    ),
    "recheck.asked": _rechecked,
    "server.exported": lambda told: f"{told.who} downloaded the rules and the list of members.",
    "bot.joined": lambda told: f"{settings().bot_name} came to the server.",
    "bot.left": lambda told: (
        f"{settings().bot_name} left the server; removals left undone: {told.count('removalsLeftUndone')}."
    ),
    "server.added": lambda told: f"{told.who} added the server by hand.",
    "channel.repaired": _channel,
    "log_channel.chosen": lambda told: (
        f"{told.who} chose #{told.event.data['name']} for alerts."
        if told.event.data.get("name")
        else f"{told.who} turned alerts off."
    ),
    "wallet.proved": lambda told: f"{told.member} proved a wallet.",
    "wallet.removed": lambda told: f"{told.member} removed a wallet.",
    "wallet.moved": lambda told: f"a wallet of {told.member} was proved by somebody else and moved there.",
    "writer.stopped": lambda told: "Discord rejects the bot's token: no role can be given or taken.",
}
"""Per kind of event its sentence."""
