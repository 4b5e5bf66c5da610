"""The kinds of events in the audit log, each declared once: its sentence, filter, icon and undo."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from locales import N_, _
from services.core.event_kinds import sentences
from services.core.event_kinds.facts import EventFacts
from settings import settings

Kind = Literal[
    "role.given", "role.taken", "role.lost", "role.reasons", "role.taken_over", "role.deleted", "role.protected",
    "role.left_alone", "role.followed_again",
    "rule.created", "rule.changed", "rule.previewed", "rule.paused", "rule.resumed", "rule.deleted",
    "rule.imported", "rule.exported", "rule.migrated", "rule.migration_ended",
    "rule.role_replaced",
    "breaker.tripped", "breaker.approved", "breaker.dismissed", "breaker.ended",
    "batch.undone",
    "member.left", "member.protected", "member.chose", "member.forgotten",
    "recheck.asked",
    "bot.joined", "bot.left", "server.added", "server.exported", "channel.repaired", "log_channel.chosen",
    "panel.changed", "move.begun", "move.changed", "move.approved", "move.undone",
    "member.chose_payout", "member.handed_over", "server.payouts_downloaded",
    "token.created", "token.revoked", "webhook.set", "webhook.deleted",
    "user.signed_in", "user.connected", "wallet.proved", "wallet.removed", "wallet.moved",
    "wallet.handed_over", "writer.stopped",
]  # fmt: skip
"""A family and an event, joined by a dot; the type checker refuses any other value."""
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
    """Whether a batch of these events can be undone; `services/servers/undo.py` has the function that does so."""


EVENT_KINDS: Mapping[Kind, EventKind] = {
    "role.given": EventKind(sentences.given, EventGroup.ROLES, "circle-plus", "good"),
    "role.taken": EventKind(sentences.taken, EventGroup.ROLES, "circle-minus", "bad", undoable=True),
    "role.lost": EventKind(
        lambda facts: _("Somebody else took {role} from {member}.").format(role=facts.role, member=facts.member),
        EventGroup.ROLES, "circle-slash", "warning", undoable=True
    ),
    "role.reasons": EventKind(sentences.reasons, EventGroup.ROLES),
    "role.taken_over": EventKind(
        lambda facts: _("{role} of {member} was given by hand and now follows the rules.").format(
            role=facts.role, member=facts.member
        ),
        EventGroup.ROLES
    ),
    "role.left_alone": EventKind(sentences.left_alone, EventGroup.ROLES, "hand", "warning"),
    "role.followed_again": EventKind(sentences.followed_again, EventGroup.ROLES),
    "role.deleted": EventKind(sentences.role_deleted, EventGroup.ROLES),
    "role.protected": EventKind(sentences.role_protected, EventGroup.ROLES, "shield"),
    "rule.created": EventKind(sentences.rule_created, EventGroup.RULES),
    "rule.changed": EventKind(
        lambda facts: _("{who} changed the rule {rule}: {changes}.").format(
            who=facts.who, rule=facts.rule, changes=facts.changes
        ),
        EventGroup.RULES, undoable=True
    ),
    "rule.previewed": EventKind(sentences.previewed, EventGroup.RULES, "eye"),
    "rule.paused": EventKind(
        lambda facts: _("The rule {rule} was paused: {reason}").format(
            rule=facts.rule, reason=facts.pause
        ),
        EventGroup.RULES, "circle-pause", "warning", undoable=True
    ),
    "rule.resumed": EventKind(
        lambda facts: _("The rule {rule} resumed: the cause of its pause is fixed.").format(rule=facts.rule),
        EventGroup.RULES
    ),
    "rule.deleted": EventKind(sentences.rule_deleted, EventGroup.RULES, "trash-2", undoable=True),
    "rule.imported": EventKind(sentences.imported, EventGroup.RULES, "upload"),
    "rule.exported": EventKind(sentences.exported, EventGroup.RULES, "download"),
    "rule.migrated": EventKind(sentences.migrated, EventGroup.RULES, "replace", undoable=True),
    "rule.migration_ended": EventKind(sentences.migration_ended, EventGroup.RULES, "replace", undoable=True),
    "rule.role_replaced": EventKind(sentences.role_replaced, EventGroup.RULES, "replace", undoable=True),
    "breaker.tripped": EventKind(sentences.breaker_tripped, EventGroup.BREAKER, "shield-alert", "warning"),
    "breaker.approved": EventKind(
        lambda facts: _("{who} approved the held-back removals of {role}.").format(who=facts.who, role=facts.role),
        EventGroup.BREAKER, "shield-check"
    ),
    "breaker.dismissed": EventKind(sentences.breaker_dismissed, EventGroup.BREAKER, "shield-x"),
    "breaker.ended": EventKind(
        lambda facts: _("Nobody would lose {role} any more, so no removal of it is held back.").format(role=facts.role),
        EventGroup.BREAKER, "shield"
    ),
    "batch.undone": EventKind(sentences.undone, EventGroup.UNDONE, "undo-2", "info"),
    "member.left": EventKind(sentences.left, EventGroup.MEMBERS),
    "member.protected": EventKind(sentences.member_protected, EventGroup.MEMBERS, "shield"),
    "member.chose": EventKind(sentences.chose, EventGroup.MEMBERS),
    "member.forgotten": EventKind(
        lambda facts: _("A member deleted their data. Their roles are taken first."),
        EventGroup.MEMBERS
    ),
    "member.handed_over": EventKind(sentences.handed_over, EventGroup.MEMBERS, "arrow-right-left"),
    "recheck.asked": EventKind(sentences.rechecked, EventGroup.RECHECKS, "refresh-cw"),
    "bot.joined": EventKind(
        lambda facts: _("{bot} joined the server.").format(bot=settings().bot_name),
        EventGroup.SERVER
    ),
    "bot.left": EventKind(sentences.bot_left, EventGroup.SERVER),
    "server.added": EventKind(
        lambda facts: _("{who} added the server by hand.").format(who=facts.who),
        EventGroup.SERVER
    ),
    "server.exported": EventKind(
        lambda facts: _("{who} downloaded the rules and the list of members.").format(who=facts.who),
        EventGroup.SERVER, "download"
    ),
    "member.chose_payout": EventKind(sentences.chose_payout, EventGroup.MEMBERS),
    "server.payouts_downloaded": EventKind(sentences.payouts_downloaded, EventGroup.SERVER, "download"),
    "token.created": EventKind(
        # Translators: {name} is what an admin called an API token, {scopes} are words such as "read, rules".
        lambda facts: _("{who} created the API token “{name}” ({scopes}).").format(
            who=facts.who, name=facts.data.get("name", ""), scopes=sentences.scopes(facts)
        ),
        EventGroup.SERVER, "key-round", "warning"
    ),
    "token.revoked": EventKind(
        lambda facts: _("{who} revoked the API token “{name}”.").format(
            who=facts.who, name=facts.data.get("name", "")
        ),
        EventGroup.SERVER, "key-round"
    ),
    "webhook.set": EventKind(
        # Translators: {host} is the name of a host, such as hooks.example.org.
        lambda facts: _("{who} set the webhook to {host}.").format(who=facts.who, host=facts.data.get("host", "")),
        EventGroup.SERVER, "webhook", "warning"
    ),
    "webhook.deleted": EventKind(
        lambda facts: _("{who} deleted the webhook.").format(who=facts.who),
        EventGroup.SERVER, "webhook"
    ),
    "channel.repaired": EventKind(sentences.channel, EventGroup.SERVER),
    "panel.changed": EventKind(
        lambda facts: _("{who} changed the panel's texts.").format(who=facts.who),
        EventGroup.SERVER
    ),
    "move.begun": EventKind(sentences.move_begun, EventGroup.SERVER, "truck"),
    "move.changed": EventKind(
        lambda facts: _("{who} changed the move: {roles}, until {time}.").format(
            who=facts.who, roles=sentences.moved(facts), time=sentences.move_end(facts)
        ),
        EventGroup.SERVER, "truck"
    ),
    "move.approved": EventKind(
        lambda facts: _("{who} approved the end of the move: rules decide about {roles} from now on.").format(
            who=facts.who, roles=sentences.moved(facts)
        ),
        EventGroup.SERVER, "truck", "warning"
    ),
    "move.undone": EventKind(sentences.move_undone, EventGroup.SERVER, "undo-2", "info"),
    "log_channel.chosen": EventKind(sentences.log_channel, EventGroup.SERVER),
    "user.signed_in": EventKind(lambda facts: _("{who} logged in.").format(who=facts.who)),
    "user.connected": EventKind(lambda facts: _("{who} connected their Discord account.").format(who=facts.who)),
    "wallet.proved": EventKind(lambda facts: _("{member} verified a wallet.").format(member=facts.member)),
    "wallet.removed": EventKind(lambda facts: _("{member} removed a wallet.").format(member=facts.member)),
    "wallet.moved": EventKind(
        lambda facts: _("Somebody else verified a wallet of {member}, who lost it.").format(member=facts.member)
    ),
    "wallet.handed_over": EventKind(
        lambda facts: _("{member} handed wallets over to another account of theirs.").format(member=facts.member)
    ),
    "writer.stopped": EventKind(lambda facts: _("Discord rejects the bot's token: no role can be given or taken.")),
}  # fmt: skip
"""Every kind, with the data that the log, its screen, its filter and its undo need. All are kept for `LOG_DAYS`."""


def filters() -> tuple[tuple[str, str], ...]:
    """Return the families of each group's kinds, separated by commas, with the group's name."""
    families = {group: dict[str, None]() for group in EventGroup}
    for kind, declared in EVENT_KINDS.items():
        if declared.group is not None:
            families[declared.group][kind.partition(".")[0]] = None
    return tuple((",".join(found), group.value) for group, found in families.items())
