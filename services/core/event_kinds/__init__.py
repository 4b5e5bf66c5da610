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

    sentence: str | Callable[[EventFacts], str]
    """A text whose places are names of facts, or a function if the sentence depends on the event's data."""
    group: EventGroup | None = None
    """The filter that includes it; None for a kind without a server, which no screen shows."""
    icon: str = "circle-dot"
    """An icon name of lucide.dev."""
    tone: Tone = "quiet"
    undoable: bool = False
    """Whether a batch of these events can be undone; `services/servers/undo.py` has the function that does so."""

    def told(self, facts: EventFacts) -> str:
        """Return the sentence about an event of this kind."""
        return facts.told(_(self.sentence)) if isinstance(self.sentence, str) else self.sentence(facts)


EVENT_KINDS: Mapping[Kind, EventKind] = {
    "role.given": EventKind(sentences.given, EventGroup.ROLES, "circle-plus", "good"),
    "role.taken": EventKind(sentences.taken, EventGroup.ROLES, "circle-minus", "bad", undoable=True),
    "role.lost": EventKind(
        N_("Somebody else took {role} from {member}."),
        EventGroup.ROLES, "circle-slash", "warning", undoable=True
    ),
    "role.reasons": EventKind(sentences.reasons, EventGroup.ROLES),
    "role.taken_over": EventKind(
        N_("{role} of {member} was given by hand and now follows the rules."),
        EventGroup.ROLES
    ),
    "role.left_alone": EventKind(sentences.left_alone, EventGroup.ROLES, "hand", "warning"),
    "role.followed_again": EventKind(sentences.followed_again, EventGroup.ROLES),
    "role.deleted": EventKind(sentences.role_deleted, EventGroup.ROLES),
    "role.protected": EventKind(sentences.role_protected, EventGroup.ROLES, "shield"),
    "rule.created": EventKind(sentences.rule_created, EventGroup.RULES),
    "rule.changed": EventKind(N_("{who} changed the rule {rule}: {changes}."), EventGroup.RULES, undoable=True),
    "rule.previewed": EventKind(sentences.previewed, EventGroup.RULES, "eye"),
    "rule.paused": EventKind(
        lambda facts: facts.told(_("The rule {rule} was paused: {reason}"), reason=facts.pause),
        EventGroup.RULES, "circle-pause", "warning", undoable=True
    ),
    "rule.resumed": EventKind(N_("The rule {rule} resumed: the cause of its pause is fixed."), EventGroup.RULES),
    "rule.deleted": EventKind(sentences.rule_deleted, EventGroup.RULES, "trash-2", undoable=True),
    "rule.imported": EventKind(sentences.imported, EventGroup.RULES, "upload"),
    "rule.exported": EventKind(sentences.exported, EventGroup.RULES, "download"),
    "rule.migrated": EventKind(sentences.migrated, EventGroup.RULES, "replace", undoable=True),
    "rule.migration_ended": EventKind(sentences.migration_ended, EventGroup.RULES, "replace", undoable=True),
    "rule.role_replaced": EventKind(sentences.role_replaced, EventGroup.RULES, "replace", undoable=True),
    "breaker.tripped": EventKind(sentences.breaker_tripped, EventGroup.BREAKER, "shield-alert", "warning"),
    "breaker.approved": EventKind(
        N_("{who} approved the held-back removals of {role}."),
        EventGroup.BREAKER, "shield-check"
    ),
    "breaker.dismissed": EventKind(sentences.breaker_dismissed, EventGroup.BREAKER, "shield-x"),
    "breaker.ended": EventKind(
        N_("Nobody would lose {role} any more, so no removal of it is held back."),
        EventGroup.BREAKER, "shield"
    ),
    "batch.undone": EventKind(sentences.undone, EventGroup.UNDONE, "undo-2", "info"),
    "member.left": EventKind(sentences.left, EventGroup.MEMBERS),
    "member.protected": EventKind(sentences.member_protected, EventGroup.MEMBERS, "shield"),
    "member.chose": EventKind(sentences.chose, EventGroup.MEMBERS),
    "member.forgotten": EventKind(N_("A member deleted their data. Their roles are taken first."), EventGroup.MEMBERS),
    "member.handed_over": EventKind(sentences.handed_over, EventGroup.MEMBERS, "arrow-right-left"),
    "recheck.asked": EventKind(sentences.rechecked, EventGroup.RECHECKS, "refresh-cw"),
    "bot.joined": EventKind(
        lambda facts: facts.told(_("{bot} joined the server."), bot=settings().bot_name),
        EventGroup.SERVER
    ),
    "bot.left": EventKind(sentences.bot_left, EventGroup.SERVER),
    "server.added": EventKind(N_("{who} added the server by hand."), EventGroup.SERVER),
    "server.exported": EventKind(
        N_("{who} downloaded the rules and the list of members."),
        EventGroup.SERVER, "download"
    ),
    "member.chose_payout": EventKind(sentences.chose_payout, EventGroup.MEMBERS),
    "server.payouts_downloaded": EventKind(sentences.payouts_downloaded, EventGroup.SERVER, "download"),
    "token.created": EventKind(
        lambda facts: facts.told(
            # Translators: {name} is what an admin called an API token, {scopes} are words such as "read, rules".
            _("{who} created the API token “{name}” ({scopes})."),
            name=facts.data.get("name", ""), scopes=sentences.scopes(facts),
        ),
        EventGroup.SERVER, "key-round", "warning"
    ),
    "token.revoked": EventKind(
        lambda facts: facts.told(_("{who} revoked the API token “{name}”."), name=facts.data.get("name", "")),
        EventGroup.SERVER, "key-round"
    ),
    "webhook.set": EventKind(
        # Translators: {host} is the name of a host, such as hooks.example.org.
        lambda facts: facts.told(_("{who} set the webhook to {host}."), host=facts.data.get("host", "")),
        EventGroup.SERVER, "webhook", "warning"
    ),
    "webhook.deleted": EventKind(N_("{who} deleted the webhook."), EventGroup.SERVER, "webhook"),
    "channel.repaired": EventKind(sentences.channel, EventGroup.SERVER),
    "panel.changed": EventKind(N_("{who} changed the panel's texts."), EventGroup.SERVER),
    "move.begun": EventKind(sentences.move_begun, EventGroup.SERVER, "truck"),
    "move.changed": EventKind(
        lambda facts: facts.told(
            _("{who} changed the move: {roles}, until {time}."),
            roles=sentences.moved(facts), time=sentences.move_end(facts),
        ),
        EventGroup.SERVER, "truck"
    ),
    "move.approved": EventKind(
        lambda facts: facts.told(
            _("{who} approved the end of the move: rules decide about {roles} from now on."),
            roles=sentences.moved(facts),
        ),
        EventGroup.SERVER, "truck", "warning"
    ),
    "move.undone": EventKind(sentences.move_undone, EventGroup.SERVER, "undo-2", "info"),
    "log_channel.chosen": EventKind(sentences.log_channel, EventGroup.SERVER),
    "user.signed_in": EventKind(N_("{who} logged in.")),
    "user.connected": EventKind(N_("{who} connected their Discord account.")),
    "wallet.proved": EventKind(N_("{member} verified a wallet.")),
    "wallet.removed": EventKind(N_("{member} removed a wallet.")),
    "wallet.moved": EventKind(N_("Somebody else verified a wallet of {member}, who lost it.")),
    "wallet.handed_over": EventKind(N_("{member} handed wallets over to another account of theirs.")),
    "writer.stopped": EventKind(N_("Discord rejects the bot's token: no role can be given or taken.")),
}  # fmt: skip
"""Every kind, with the data that the log, its screen, its filter and its undo need. All are kept for `LOG_DAYS`."""


def filters() -> tuple[tuple[str, str], ...]:
    """Return the families of each group's kinds, separated by commas, with the group's name."""
    families = {group: dict[str, None]() for group in EventGroup}
    for kind, declared in EVENT_KINDS.items():
        if declared.group is not None:
            families[declared.group][kind.partition(".")[0]] = None
    return tuple((",".join(found), group.value) for group, found in families.items())
