"""The sentences of the audit log that depend on an event's data, in the language of the reader."""

from datetime import datetime
from typing import cast

from locales import _, day_and_clock, day_and_minute, listed, ngettext, series
from locales.stored_texts import said
from services.core.event_kinds.facts import EventFacts
from settings import settings


def _counted(facts: EventFacts, number: str, none: str, some: str, **more: str) -> str:
    """Return the sentence for none, or the one for some, of what this number in the data counts."""
    count = facts.count(number)
    return facts.told(some if count else none, count=count, **more)


def given(facts: EventFacts) -> str:
    """Return the sentence about a role that was given."""
    if facts.data.get("gift"):
        return facts.told(_("{member} got {role} back, because an admin undid its removal."))
    if not facts.rules:
        return facts.told(_("{member} got {role}."))
    # Translators: {rules} is one rule or several, such as “Cats” and “Dogs”.
    return facts.told(_("{member} got {role} by {rules}."))


def reasons(facts: EventFacts) -> str:
    """Return the sentence about new reasons for a role."""
    if not facts.rules:
        return facts.told(_("{member} now has {role} by no rule."))
    return facts.told(_("{member} now has {role} by {rules}."))


def taken(facts: EventFacts) -> str:
    """Return the sentence about a role that was taken."""
    # Translators: {reason} is such as "holds 1, needs 2 of Mellow Cats on Base".
    text = _("{member} lost {role}: {reason}.")
    return facts.told(text, reason=facts.reason or _("no rule entitles them to it any more"))


def role_deleted(facts: EventFacts) -> str:
    """Return the sentence about a role that was deleted in Discord."""
    none = _("{role} was deleted in Discord; nobody had it from {product}.")
    some = ngettext(
        "{role} was deleted in Discord; {count} member had it from {product}.",
        "{role} was deleted in Discord; {count} members had it from {product}.",
        facts.count("holders"),
    )
    return _counted(facts, "holders", none, some, product=settings().product_name)


def role_protected(facts: EventFacts) -> str:
    """Return the sentence about a change of a role's protection."""
    if facts.data.get("protected"):
        return facts.told(_("{who} protected {role}: it is taken from nobody."))
    return facts.told(_("{who} no longer protects {role}."))


def member_protected(facts: EventFacts) -> str:
    """Return the sentence about a change of a member's protection."""
    if facts.data.get("protected"):
        return facts.told(_("{who} protected {member}: nothing is taken from them."))
    return facts.told(_("{who} no longer protects {member}."))


def rule_created(facts: EventFacts) -> str:
    """Return the sentence about a new rule."""
    if not facts.asks:
        return facts.told(_("{who} created the rule {rule} for {role}."))
    # Translators: {asks} is what the rule asks for, such as "at least 1 token of Mellow Cats on Base".
    return facts.told(_("{who} created the rule {rule} for {role}: {asks}."))


def rule_deleted(facts: EventFacts) -> str:
    """Return the sentence about a deleted rule."""
    some = ngettext(
        "{who} deleted the rule {rule}; {count} member had {role} by it.",
        "{who} deleted the rule {rule}; {count} members had {role} by it.",
        facts.count("holders"),
    )
    return _counted(facts, "holders", _("{who} deleted the rule {rule}; nobody had {role} by it."), some)


def previewed(facts: EventFacts) -> str:
    """Return the sentence about a preview of a rule."""
    if facts.data.get("deletes"):
        return facts.told(_("{who} previewed deleting the rule {rule}."))
    if not facts.asks:
        return facts.told(_("{who} previewed the rule {rule}."))
    return facts.told(_("{who} previewed the rule {rule}: {asks}."))


def breaker_tripped(facts: EventFacts) -> str:
    """Return the sentence about held-back removals."""
    # Translators: {count} of {holders}: the plural is about {holders}.
    text = ngettext(
        "Removals of {role} are held back: {count} of {holders} holder would lose it within a day.",
        "Removals of {role} are held back: {count} of {holders} holders would lose it within a day.",
        facts.count("holders"),
    )
    return facts.told(text, count=facts.count("wouldLose"), holders=facts.count("holders"))


def breaker_dismissed(facts: EventFacts) -> str:
    """Return the sentence about dismissed removals."""
    some = ngettext(
        "{who} dismissed the held-back removals of {role}; {count} member keeps it.",
        "{who} dismissed the held-back removals of {role}; {count} members keep it.",
        facts.count("members"),
    )
    return _counted(facts, "members", _("{who} dismissed the held-back removals of {role}; nobody keeps it."), some)


def chose(facts: EventFacts) -> str:
    """Return the sentence about a member's choice."""
    match bool(facts.data.get("useWallets")), bool(facts.data.get("shareWallets")):
        case True, True:
            text = _("{member} lets their wallets count here and shares their shortened addresses with admins.")
        case True, False:
            text = _("{member} lets their wallets count here and does not share their shortened addresses with admins.")
        case False, True:
            text = _("{member} lets no wallet count here and shares their shortened addresses with admins.")
        case _:
            text = _("{member} lets no wallet count here and does not share their shortened addresses with admins.")
    return facts.told(text)


def chose_payout(facts: EventFacts) -> str:
    """Return the sentence about a choice of a payout address."""
    if facts.data.get("chosen"):
        return facts.told(_("{member} chose an address for payouts."))
    return facts.told(_("{member} withdrew their address for payouts."))


def payouts_downloaded(facts: EventFacts) -> str:
    """Return the sentence about a download of payout addresses."""
    some = ngettext(
        "{who} downloaded the list of payout addresses ({count} member chose one).",
        "{who} downloaded the list of payout addresses ({count} members chose one).",
        facts.count("members"),
    )
    return _counted(facts, "members", _("{who} downloaded the list of payout addresses (nobody chose one)."), some)


def rechecked(facts: EventFacts) -> str:
    """Return the sentence about a request to check again."""
    if facts.is_by_the_member:
        return facts.told(_("{who} asked to be checked again."))
    if facts.is_about_a_member:
        return facts.told(_("{who} had {member} checked again."))
    some = ngettext(
        "{who} had everybody checked again ({count} member).",
        "{who} had everybody checked again ({count} members).",
        facts.count("members"),
    )
    return _counted(facts, "members", _("{who} had everybody checked again (nobody)."), some)


def left(facts: EventFacts) -> str:
    """Return the sentence about a member who left."""
    some = ngettext(
        "{member} left the server. They had {count} role from {product}.",
        "{member} left the server. They had {count} roles from {product}.",
        facts.count("roles"),
    )
    return _counted(facts, "roles", _("{member} left the server."), some, product=settings().product_name)


def bot_left(facts: EventFacts) -> str:
    """Return the sentence about the bot leaving the server."""
    bot = settings().bot_name
    some = ngettext(
        "{bot} left the server; {count} removal was not finished.",
        "{bot} left the server; {count} removals were not finished.",
        facts.count("removalsLeftUndone"),
    )
    return _counted(facts, "removalsLeftUndone", _("{member} left the server."), some, member=bot, bot=bot)


def channel(facts: EventFacts) -> str:
    """Return the sentence about what was created or repaired of the verification channel."""
    done = [said(one).rstrip(".。") for one in cast("list[str]", facts.data.get("done") or [])]
    if not done:
        return facts.told(_("{who} set up the verification channel."))
    # Translators: {done} is such as "created the channel #verify, posted the panel".
    text = _("{who} set up the verification channel: {done}.")
    return facts.told(text, done=series(one[:1].lower() + one[1:] for one in done))


def log_channel(facts: EventFacts) -> str:
    """Return the sentence about a choice of the log channel."""
    if facts.data.get("name"):
        return facts.told(_("{who} chose #{name} for alerts."), name=facts.data["name"])
    return facts.told(_("{who} turned alerts off."))


def undone(facts: EventFacts) -> str:
    """Return the sentence about an undo."""
    match facts.data.get("of"):
        case "rule.deleted":
            return facts.told(_("{who} brought the rule {rule} back."))
        case "rule.changed":
            return facts.told(_("{who} undid a change of the rule {rule}."))
        case "rule.paused":
            return facts.told(_("{who} resumed the rules for {role}."))
        case "rule.migrated":
            return facts.told(_("{who} undid the replacement of a contract in the rules."))
        case "rule.migration_ended":
            return facts.told(_("{who} undid the end of a migration: both contracts count again."))
        case "rule.role_replaced":
            return facts.told(_("{who} undid the replacement of a role with {role} in the rules."))
        case "role.lost":
            return _given_back(facts)
        case _:
            return _removal_undone(facts)


def _given_back(facts: EventFacts) -> str:
    some = ngettext(
        "{who} gave {role} back to {count} member who had lost it to somebody else.",
        "{who} gave {role} back to {count} members who had lost it to somebody else.",
        facts.count("members"),
    )
    return _counted(facts, "members", _("{who} gave {role} back to nobody who had lost it to somebody else."), some)


def _removal_undone(facts: EventFacts) -> str:
    some = ngettext(
        "{who} undid a removal of {role}: {count} member gets it back.",
        "{who} undid a removal of {role}: {count} members get it back.",
        facts.count("members"),
    )
    return _counted(facts, "members", _("{who} undid a removal of {role}: nobody gets it back."), some)


def left_alone(facts: EventFacts) -> str:
    """Return the sentence about a role that is left alone."""
    until = facts.data.get("until")
    if not isinstance(until, str):
        text = _("{role} of {member} is neither given nor taken, because others reversed it twice within an hour.")
        return facts.told(text)
    # Translators: {time} is such as "3 May, 08:00 UTC".
    text = _(
        "{role} of {member} is neither given nor taken until {time}, because others reversed it twice within an hour."
    )
    return facts.told(text, time=day_and_minute(datetime.fromisoformat(until)))


def followed_again(facts: EventFacts) -> str:
    """Return the sentence about a role that follows the rules again."""
    if facts.data.get("early"):
        return facts.told(_("{who} let the rules decide about {role} of {member} again."))
    return facts.told(_("The rules decide about {role} of {member} again."))


def imported(facts: EventFacts) -> str:
    """Return the sentence about an import of rules."""
    came_from = {"collabland": "Collab.Land", "guild": "Guild"}.get(str(facts.data.get("source")), "")
    count, skipped = facts.count("rules"), facts.count("skipped")
    if came_from:
        text = ngettext(
            "{who} imported {count} rule from {source} in shadow",
            "{who} imported {count} rules from {source} in shadow",
            count,
        )
    else:
        text = ngettext("{who} imported {count} rule in shadow", "{who} imported {count} rules in shadow", count)
    told = facts.told(text, count=count, source=came_from)
    if not skipped:
        return facts.told(_("{sentence}."), sentence=told)
    # Translators: {told} is such as "Ada imported 3 rules from Guild in shadow".
    more = ngettext("{told}; {count} entry was skipped.", "{told}; {count} entries were skipped.", skipped)
    return facts.told(more, told=told, count=skipped)


def exported(facts: EventFacts) -> str:
    """Return the sentence about an export of rules."""
    count = facts.count("rules")
    text = ngettext(
        "{who} downloaded {count} rule as a document.", "{who} downloaded {count} rules as a document.", count
    )
    return facts.told(text, count=count)


def migrated(facts: EventFacts) -> str:
    """Return the sentence about a collection or coin that got another contract."""
    count, old, new = facts.count("rules"), facts.contract("old"), facts.contract("new")
    text = ngettext(
        "{who} replaced {old} with {new} in {count} rule", "{who} replaced {old} with {new} in {count} rules", count
    )
    told = facts.told(text, old=old, new=new, count=count)
    if not facts.data.get("both"):
        return facts.told(_("{sentence}."), sentence=told)
    if facts.data.get("until"):
        # Translators: {told} is such as "Ada replaced Cats on Base with New Cats on Base in 3 rules".
        return facts.told(_("{told}; both count until {time}."), told=told, time=move_end(facts))
    return facts.told(_("{told}; both count until somebody ends that."), told=told)


def migration_ended(facts: EventFacts) -> str:
    """Return the sentence about the end of a migration."""
    count, old, new = facts.count("rules"), facts.contract("old"), facts.contract("new")
    text = ngettext(
        "{who} ended the migration from {old} to {new}: only the new one counts in {count} rule.",
        "{who} ended the migration from {old} to {new}: only the new one counts in {count} rules.",
        count,
    )
    return facts.told(text, old=old, new=new, count=count)


def role_replaced(facts: EventFacts) -> str:
    """Return the sentence about a role that replaced another one in rules."""
    count, old = facts.count("rules"), str(facts.data.get("oldName") or "")
    text = ngettext(
        "{who} replaced the role {old} with {role} in {count} rule.",
        "{who} replaced the role {old} with {role} in {count} rules.",
        count,
    )
    return facts.told(text, old=old, count=count)


def handed_over(facts: EventFacts) -> str:
    """Return the sentence about wallets that moved between two accounts of one person; it never names both accounts."""
    if facts.data.get("took"):
        return facts.told(_("{member} took wallets over from another account of theirs."))
    return facts.told(_("{member} handed wallets over to another account of theirs."))


def moved(facts: EventFacts) -> str:
    """Return the roles that are moved from another bot, in words."""
    roles = cast("list[str]", facts.data.get("roles") or [])
    return listed(roles) if roles else _("no role")


def move_end(facts: EventFacts) -> str:
    """Return the time at which a move ends, in words."""
    until = facts.data.get("until")
    return day_and_clock(datetime.fromisoformat(until)) if isinstance(until, str) else _("its date")


def move_begun(facts: EventFacts) -> str:
    """Return the sentence about a move that began."""
    text = _("{who} began a move of {roles}: until {time} nobody loses them for lack of a wallet.")
    return facts.told(text, roles=moved(facts), time=move_end(facts))


def move_undone(facts: EventFacts) -> str:
    """Return the sentence about a move that was called off or undone."""
    if not facts.data.get("approved"):
        return facts.told(_("{who} called off the move of {roles}: everybody keeps them."), roles=moved(facts))
    some = ngettext(
        "{who} undid the move of {roles}: {count} member gets roles back.",
        "{who} undid the move of {roles}: {count} members get roles back.",
        facts.count("members"),
    )
    none = _("{who} undid the move of {roles}: nobody gets roles back.")
    return _counted(facts, "members", none, some, roles=moved(facts))


def scopes(facts: EventFacts) -> str:
    """Return the API names of a token's scopes, separated by commas."""
    return ", ".join(cast("list[str]", facts.data.get("scopes") or []))
