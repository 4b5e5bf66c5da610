"""The kinds of events in the audit log, each declared once: its sentence, filter, icon and undo."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, Protocol, cast

from locales import N_
from settings import settings

Kind = Literal[
    "role.given", "role.taken", "role.lost", "role.reasons", "role.taken_over", "role.deleted", "role.protected",
    "role.left_alone", "role.followed_again",
    "rule.created", "rule.changed", "rule.previewed", "rule.paused", "rule.resumed", "rule.deleted",
    "rule.imported", "rule.exported",
    "breaker.tripped", "breaker.approved", "breaker.dismissed",
    "batch.undone",
    "member.left", "member.protected", "member.chose", "member.forgotten",
    "recheck.asked",
    "bot.joined", "bot.left", "server.added", "server.exported", "channel.repaired", "log_channel.chosen",
    "panel.changed", "move.begun", "move.changed", "move.approved", "move.undone",
    "member.chose_payout", "server.payouts_downloaded",
    "user.signed_in", "user.connected", "wallet.proved", "wallet.removed", "wallet.moved", "writer.stopped",
]  # fmt: skip
"""A family and an event; the type checker refuses any other."""
Tone = Literal["good", "bad", "warning", "info", "quiet"]


class EventGroup(StrEnum):
    """The filters of the Activity screen, in this order. A family of kinds belongs to one group."""

    ROLES = N_("Roles given and taken")
    RULES = N_("Rules")
    BREAKER = N_("Held-back removals")
    UNDONE = N_("Undone")
    MEMBERS = N_("Members")
    RECHECKS = N_("Re-checks")
    SERVER = N_("Bot and server")


class EventFacts(Protocol):
    """One event with names instead of ids, for its sentence."""

    @property
    def data(self) -> Mapping[str, Any]:
        """The recorded data."""
        ...

    @property
    def who(self) -> str:
        """The actor's name."""
        ...

    @property
    def member(self) -> str:
        """The member concerned."""
        ...

    @property
    def is_about_a_member(self) -> bool:
        """Whether it concerns a member."""
        ...

    @property
    def is_by_the_member(self) -> bool:
        """Whether the member concerned did it."""
        ...

    @property
    def role(self) -> str:
        """The role concerned."""
        ...

    @property
    def rule(self) -> str:
        """The rule concerned, in quotation marks."""
        ...

    @property
    def by_rules(self) -> str:
        """The rules that grant the role, as ` by “A” and “B”`, or empty."""
        ...

    @property
    def asks(self) -> str:
        """What the rule asks for, or empty."""
        ...

    @property
    def changes(self) -> str:
        """The changes to the rule."""
        ...

    @property
    def reason(self) -> str:
        """Why no rule entitles the member to the role, or empty."""
        ...

    def count(self, name: str) -> int:
        """Return a number in the data."""
        ...

    def members(self, name: str) -> str:
        """Return a number of members in the data, in words."""
        ...


@dataclass(frozen=True, slots=True)
class EventKind:
    """How the product shows a kind of event."""

    sentence: Callable[[EventFacts], str]
    group: EventGroup | None = None
    """The filter that includes it; None for a kind without a server, which no screen shows."""
    icon: str = "circle-dot"
    """An icon name of lucide.dev."""
    tone: Tone = "quiet"
    undoable: bool = False
    """Whether a batch of it can be undone; `services/servers/undo.py` has the function for it."""


def _given(facts: EventFacts) -> str:
    if facts.data.get("gift"):
        return f"{facts.member} got {facts.role} back, because an admin undid its removal."
    return f"{facts.member} got {facts.role}{facts.by_rules}."


def _previewed(facts: EventFacts) -> str:
    if facts.data.get("deletes"):
        return f"{facts.who} previewed deleting the rule {facts.rule}."
    return f"{facts.who} previewed the rule {facts.rule}{_after_colon(facts.asks)}."


def _chose(facts: EventFacts) -> str:
    uses = "lets their wallets count here" if facts.data.get("useWallets") else "lets no wallet count here"
    shares = "shares their" if facts.data.get("shareWallets") else "does not share their"
    return f"{facts.member} {uses} and {shares} shortened addresses with admins."


def _rechecked(facts: EventFacts) -> str:
    if facts.is_by_the_member:
        return f"{facts.who} asked to be checked again."
    if facts.is_about_a_member:
        return f"{facts.who} had {facts.member} checked again."
    return f"{facts.who} had everybody checked again ({facts.members('members')})."


def _left(facts: EventFacts) -> str:
    count = facts.count("roles")
    had = f" They had {'1 role' if count == 1 else f'{count} roles'} from {settings().product_name}." if count else ""
    return f"{facts.member} left the server.{had}"


def _channel(facts: EventFacts) -> str:
    done = ", ".join(cast("list[str]", facts.data.get("done") or [])).rstrip(".")
    return f"{facts.who} repaired the verification channel{_after_colon(done[:1].lower() + done[1:])}."


def _undone(facts: EventFacts) -> str:
    match facts.data.get("of"):
        case "rule.deleted":
            return f"{facts.who} brought the rule {facts.rule} back."
        case "rule.changed":
            return f"{facts.who} undid a change of the rule {facts.rule}."
        case "rule.paused":
            return f"{facts.who} resumed the rules for {facts.role}."
        case "role.lost":
            return f"{facts.who} gave {facts.role} back to {facts.members('members')} who had lost it to somebody else."
        case _:
            return f"{facts.who} undid a removal of {facts.role}: {facts.members('members')} get it back."


def _left_alone(facts: EventFacts) -> str:
    until = facts.data.get("until")
    moment = f" until {datetime.fromisoformat(until):%-d %B, %H:%M} UTC" if isinstance(until, str) else ""
    return (
        f"{facts.role} of {facts.member} is neither given nor taken{moment}, because others reversed it twice within "
        "an hour."
    )


def _moved(facts: EventFacts) -> str:
    *first, last = cast("list[str]", facts.data.get("roles") or ["no role"])
    return f"{', '.join(first)} and {last}" if first else last


def _until(facts: EventFacts) -> str:
    until = facts.data.get("until")
    return f"{datetime.fromisoformat(until):%-d %B %Y, %H:%M} UTC" if isinstance(until, str) else "its date"


def _move_undone(facts: EventFacts) -> str:
    if facts.data.get("approved"):
        return f"{facts.who} undid the move of {_moved(facts)}: {facts.members('members')} get roles back."
    return f"{facts.who} called off the move of {_moved(facts)}: everybody keeps them."


def _followed_again(facts: EventFacts) -> str:
    if facts.data.get("early"):
        return f"{facts.who} let the rules decide about {facts.role} of {facts.member} again."
    return f"the rules decide about {facts.role} of {facts.member} again."


def _imported(facts: EventFacts) -> str:
    came_from = {"collabland": " from Collab.Land", "guild": " from Guild"}.get(str(facts.data.get("source")), "")
    skipped = facts.count("skipped")
    rest = f"; {'1 entry was' if skipped == 1 else f'{skipped} entries were'} skipped" if skipped else ""
    return f"{facts.who} imported {_rules(facts.count('rules'))}{came_from} in shadow{rest}."


def _rules(count: int) -> str:
    return "1 rule" if count == 1 else f"{count} rules"


def _after_colon(text: str) -> str:
    return f": {text}" if text else ""


EVENT_KINDS: Mapping[Kind, EventKind] = {
    "role.given": EventKind(_given, EventGroup.ROLES, "circle-plus", "good"),
    "role.taken": EventKind(
        lambda facts: f"{facts.member} lost {facts.role}: {facts.reason or 'no rule entitles them to it any more'}.",
        EventGroup.ROLES, "circle-minus", "bad", undoable=True,
    ),
    "role.lost": EventKind(
        lambda facts: f"somebody else took {facts.role} from {facts.member}.",
        EventGroup.ROLES, "circle-slash", "warning", undoable=True,
    ),
    "role.reasons": EventKind(
        lambda facts: f"{facts.member} now has {facts.role}{facts.by_rules or ' by no rule'}.", EventGroup.ROLES
    ),
    "role.taken_over": EventKind(
        lambda facts: f"{facts.role} of {facts.member} was given by hand and now follows the rules.", EventGroup.ROLES
    ),
    "role.left_alone": EventKind(_left_alone, EventGroup.ROLES, "hand", "warning"),
    "role.followed_again": EventKind(_followed_again, EventGroup.ROLES),
    "role.deleted": EventKind(
        lambda facts: (
            f"{facts.role} was deleted in Discord; {facts.members('holders')} had it from {settings().product_name}."
        ),
        EventGroup.ROLES,
    ),
    "role.protected": EventKind(
        lambda facts: (
            f"{facts.who} protected {facts.role}: it is taken from nobody."
            if facts.data.get("protected")
            else f"{facts.who} no longer protects {facts.role}."
        ),
        EventGroup.ROLES, "shield",
    ),
    "rule.created": EventKind(
        lambda facts: f"{facts.who} created the rule {facts.rule} for {facts.role}{_after_colon(facts.asks)}.",
        EventGroup.RULES,
    ),
    "rule.changed": EventKind(
        lambda facts: f"{facts.who} changed the rule {facts.rule}: {facts.changes}.", EventGroup.RULES, undoable=True
    ),
    "rule.previewed": EventKind(_previewed, EventGroup.RULES, "eye"),
    "rule.paused": EventKind(
        lambda facts: f"the rule {facts.rule} was paused: {facts.data.get('reason', '')}",
        EventGroup.RULES, "circle-pause", "warning", undoable=True,
    ),
    "rule.resumed": EventKind(
        lambda facts: f"the rule {facts.rule} resumed: the cause of its pause is fixed.", EventGroup.RULES
    ),
    "rule.deleted": EventKind(
        lambda facts: f"{facts.who} deleted the rule {facts.rule}; {facts.members('holders')} had {facts.role} by it.",
        EventGroup.RULES, "trash-2", undoable=True,
    ),
    "rule.imported": EventKind(_imported, EventGroup.RULES, "upload"),
    "rule.exported": EventKind(
        lambda facts: f"{facts.who} downloaded {_rules(facts.count('rules'))} as a document.",
        EventGroup.RULES, "download",
    ),
    "breaker.tripped": EventKind(
        lambda facts: (
            f"removals of {facts.role} are held back: {facts.count('wouldLose')} of "
            f"{facts.count('holders')} holders would lose it within a day."
        ),
        EventGroup.BREAKER, "shield-alert", "warning",
    ),
    "breaker.approved": EventKind(
        lambda facts: f"{facts.who} approved the held-back removals of {facts.role}.",
        EventGroup.BREAKER, "shield-check",
    ),
    "breaker.dismissed": EventKind(
        lambda facts: (
            f"{facts.who} dismissed the held-back removals of {facts.role}; {facts.members('members')} keep it."
        ),
        EventGroup.BREAKER, "shield-x",
    ),
    "batch.undone": EventKind(_undone, EventGroup.UNDONE, "undo-2", "info"),
    "member.left": EventKind(_left, EventGroup.MEMBERS),
    "member.protected": EventKind(
        lambda facts: (
            f"{facts.who} protected {facts.member}: nothing is taken from them."
            if facts.data.get("protected")
            else f"{facts.who} no longer protects {facts.member}."
        ),
        EventGroup.MEMBERS, "shield",
    ),
    "member.chose": EventKind(_chose, EventGroup.MEMBERS),
    "member.forgotten": EventKind(
        lambda facts: "a member deleted their data. Their roles are taken first.", EventGroup.MEMBERS
    ),
    "recheck.asked": EventKind(_rechecked, EventGroup.RECHECKS, "refresh-cw"),
    "bot.joined": EventKind(lambda facts: f"{settings().bot_name} joined the server.", EventGroup.SERVER),
    "bot.left": EventKind(
        lambda facts: (
            f"{settings().bot_name} left the server; {facts.count('removalsLeftUndone')} removals were not finished."
        ),
        EventGroup.SERVER,
    ),
    "server.added": EventKind(lambda facts: f"{facts.who} added the server by hand.", EventGroup.SERVER),
    "server.exported": EventKind(
        lambda facts: f"{facts.who} downloaded the rules and the list of members.", EventGroup.SERVER, "download"
    ),
    "member.chose_payout": EventKind(
        lambda facts: (
            f"{facts.member} chose an address for payouts."
            if facts.data.get("chosen")
            else f"{facts.member} withdrew their address for payouts."
        ),
        EventGroup.MEMBERS,
    ),
    "server.payouts_downloaded": EventKind(
        lambda facts: f"{facts.who} downloaded the list of payout addresses ({facts.members('members')} chose one).",
        EventGroup.SERVER, "download",
    ),
    "channel.repaired": EventKind(_channel, EventGroup.SERVER),
    "panel.changed": EventKind(lambda facts: f"{facts.who} changed the panel's texts.", EventGroup.SERVER),
    "move.begun": EventKind(
        lambda facts: (
            f"{facts.who} began a move of {_moved(facts)}: until {_until(facts)} nobody loses them for lack of a "
            "wallet."
        ),
        EventGroup.SERVER, "truck",
    ),
    "move.changed": EventKind(
        lambda facts: f"{facts.who} changed the move: {_moved(facts)}, until {_until(facts)}.",
        EventGroup.SERVER, "truck",
    ),
    "move.approved": EventKind(
        lambda facts: f"{facts.who} approved the end of the move: rules decide about {_moved(facts)} from now on.",
        EventGroup.SERVER, "truck", "warning",
    ),
    "move.undone": EventKind(_move_undone, EventGroup.SERVER, "undo-2", "info"),
    "log_channel.chosen": EventKind(
        lambda facts: (
            f"{facts.who} chose #{facts.data['name']} for alerts."
            if facts.data.get("name")
            else f"{facts.who} turned alerts off."
        ),
        EventGroup.SERVER,
    ),
    "user.signed_in": EventKind(lambda facts: f"{facts.who} logged in."),
    "user.connected": EventKind(lambda facts: f"{facts.who} connected their Discord account."),
    "wallet.proved": EventKind(lambda facts: f"{facts.member} verified a wallet."),
    "wallet.removed": EventKind(lambda facts: f"{facts.member} removed a wallet."),
    "wallet.moved": EventKind(lambda facts: f"somebody else verified a wallet of {facts.member}, who lost it."),
    "writer.stopped": EventKind(lambda facts: "Discord rejects the bot's token: no role can be given or taken."),
}  # fmt: skip
"""Every kind with what the log, its screen, its filter and its undo need. All are kept for `LOG_DAYS`."""


def filters() -> tuple[tuple[str, str], ...]:
    """Return the families of each group's kinds, separated by commas, with the group's name."""
    families = {group: dict[str, None]() for group in EventGroup}
    for kind, declared in EVENT_KINDS.items():
        if declared.group is not None:
            families[declared.group][kind.partition(".")[0]] = None
    return tuple((",".join(found), group.value) for group, found in families.items())
