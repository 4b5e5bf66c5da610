"""The sentences of the audit log that depend on an event's data, in the language of the reader."""

from datetime import datetime
from typing import cast

from locales import _, day_and_clock, day_and_minute, listed, ngettext, series
from locales.stored_texts import said
from services.core.event_kinds.facts import EventFacts
from settings import settings


def given(facts: EventFacts) -> str:
    """Return the sentence about a role that was given."""
    if facts.data.get("gift"):
        text = _("{member} got {role} back, because an admin undid its removal.")
        return text.format(member=facts.member, role=facts.role)
    if not facts.rules:
        return _("{member} got {role}.").format(member=facts.member, role=facts.role)
    # Translators: {rules} is one rule or several, such as “Cats” and “Dogs”.
    text = _("{member} got {role} by {rules}.")
    return text.format(member=facts.member, role=facts.role, rules=facts.rules)


def reasons(facts: EventFacts) -> str:
    """Return the sentence about new reasons for a role."""
    if not facts.rules:
        return _("{member} now has {role} by no rule.").format(member=facts.member, role=facts.role)
    text = _("{member} now has {role} by {rules}.")
    return text.format(member=facts.member, role=facts.role, rules=facts.rules)


def taken(facts: EventFacts) -> str:
    """Return the sentence about a role that was taken."""
    # Translators: {reason} is such as "holds 1, needs 2 of Mellow Cats on Base".
    text = _("{member} lost {role}: {reason}.")
    reason = facts.reason or _("no rule entitles them to it any more")
    return text.format(member=facts.member, role=facts.role, reason=reason)


def role_deleted(facts: EventFacts) -> str:
    """Return the sentence about a role that was deleted in Discord."""
    count, product = facts.count("holders"), settings().product_name
    if not count:
        text = _("{role} was deleted in Discord; nobody had it from {product}.")
        return text.format(role=facts.role, product=product)
    return ngettext(
        "{role} was deleted in Discord; {count} member had it from {product}.",
        "{role} was deleted in Discord; {count} members had it from {product}.",
        count,
    ).format(role=facts.role, count=count, product=product)


def role_protected(facts: EventFacts) -> str:
    """Return the sentence about a change of a role's protection."""
    if facts.data.get("protected"):
        return _("{who} protected {role}: it is taken from nobody.").format(who=facts.who, role=facts.role)
    return _("{who} no longer protects {role}.").format(who=facts.who, role=facts.role)


def member_protected(facts: EventFacts) -> str:
    """Return the sentence about a change of a member's protection."""
    if facts.data.get("protected"):
        text = _("{who} protected {member}: nothing is taken from them.")
        return text.format(who=facts.who, member=facts.member)
    return _("{who} no longer protects {member}.").format(who=facts.who, member=facts.member)


def rule_created(facts: EventFacts) -> str:
    """Return the sentence about a new rule."""
    if not facts.asks:
        text = _("{who} created the rule {rule} for {role}.")
        return text.format(who=facts.who, rule=facts.rule, role=facts.role)
    # Translators: {asks} is what the rule asks for, such as "at least 1 token of Mellow Cats on Base".
    text = _("{who} created the rule {rule} for {role}: {asks}.")
    return text.format(who=facts.who, rule=facts.rule, role=facts.role, asks=facts.asks)


def rule_deleted(facts: EventFacts) -> str:
    """Return the sentence about a deleted rule."""
    count = facts.count("holders")
    if not count:
        text = _("{who} deleted the rule {rule}; nobody had {role} by it.")
        return text.format(who=facts.who, rule=facts.rule, role=facts.role)
    return ngettext(
        "{who} deleted the rule {rule}; {count} member had {role} by it.",
        "{who} deleted the rule {rule}; {count} members had {role} by it.",
        count,
    ).format(who=facts.who, rule=facts.rule, count=count, role=facts.role)


def previewed(facts: EventFacts) -> str:
    """Return the sentence about a preview of a rule."""
    if facts.data.get("deletes"):
        return _("{who} previewed deleting the rule {rule}.").format(who=facts.who, rule=facts.rule)
    if not facts.asks:
        return _("{who} previewed the rule {rule}.").format(who=facts.who, rule=facts.rule)
    text = _("{who} previewed the rule {rule}: {asks}.")
    return text.format(who=facts.who, rule=facts.rule, asks=facts.asks)


def breaker_tripped(facts: EventFacts) -> str:
    """Return the sentence about held-back removals."""
    # Translators: {count} of {holders}: the plural is about {holders}.
    return ngettext(
        "Removals of {role} are held back: {count} of {holders} holder would lose it within a day.",
        "Removals of {role} are held back: {count} of {holders} holders would lose it within a day.",
        facts.count("holders"),
    ).format(role=facts.role, count=facts.count("wouldLose"), holders=facts.count("holders"))


def breaker_dismissed(facts: EventFacts) -> str:
    """Return the sentence about dismissed removals."""
    count = facts.count("members")
    if not count:
        text = _("{who} dismissed the held-back removals of {role}; nobody keeps it.")
        return text.format(who=facts.who, role=facts.role)
    return ngettext(
        "{who} dismissed the held-back removals of {role}; {count} member keeps it.",
        "{who} dismissed the held-back removals of {role}; {count} members keep it.",
        count,
    ).format(who=facts.who, role=facts.role, count=count)


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
    return text.format(member=facts.member)


def chose_payout(facts: EventFacts) -> str:
    """Return the sentence about a choice of a payout address."""
    if facts.data.get("chosen"):
        return _("{member} chose an address for payouts.").format(member=facts.member)
    return _("{member} withdrew their address for payouts.").format(member=facts.member)


def payouts_downloaded(facts: EventFacts) -> str:
    """Return the sentence about a download of payout addresses."""
    count = facts.count("members")
    if not count:
        return _("{who} downloaded the list of payout addresses (nobody chose one).").format(who=facts.who)
    return ngettext(
        "{who} downloaded the list of payout addresses ({count} member chose one).",
        "{who} downloaded the list of payout addresses ({count} members chose one).",
        count,
    ).format(who=facts.who, count=count)


def rechecked(facts: EventFacts) -> str:
    """Return the sentence about a request to check again."""
    if facts.is_by_the_member:
        return _("{who} asked to be checked again.").format(who=facts.who)
    if facts.is_about_a_member:
        return _("{who} had {member} checked again.").format(who=facts.who, member=facts.member)
    count = facts.count("members")
    if not count:
        return _("{who} had everybody checked again (nobody).").format(who=facts.who)
    return ngettext(
        "{who} had everybody checked again ({count} member).",
        "{who} had everybody checked again ({count} members).",
        count,
    ).format(who=facts.who, count=count)


def left(facts: EventFacts) -> str:
    """Return the sentence about a member who left."""
    count = facts.count("roles")
    if not count:
        return _("{member} left the server.").format(member=facts.member)
    return ngettext(
        "{member} left the server. They had {count} role from {product}.",
        "{member} left the server. They had {count} roles from {product}.",
        count,
    ).format(member=facts.member, count=count, product=settings().product_name)


def bot_left(facts: EventFacts) -> str:
    """Return the sentence about the bot leaving the server."""
    count = facts.count("removalsLeftUndone")
    if not count:
        return _("{member} left the server.").format(member=settings().bot_name)
    return ngettext(
        "{bot} left the server; {count} removal was not finished.",
        "{bot} left the server; {count} removals were not finished.",
        count,
    ).format(bot=settings().bot_name, count=count)


def channel(facts: EventFacts) -> str:
    """Return the sentence about a repair of the verification channel."""
    done = [said(one).rstrip(".。") for one in cast("list[str]", facts.data.get("done") or [])]
    if not done:
        return _("{who} repaired the verification channel.").format(who=facts.who)
    # Translators: {done} is such as "created the channel #verify, Posted the panel".
    text = _("{who} repaired the verification channel: {done}.")
    told = series(done)
    return text.format(who=facts.who, done=told[:1].lower() + told[1:])


def log_channel(facts: EventFacts) -> str:
    """Return the sentence about a choice of the log channel."""
    if facts.data.get("name"):
        return _("{who} chose #{name} for alerts.").format(who=facts.who, name=facts.data["name"])
    return _("{who} turned alerts off.").format(who=facts.who)


def undone(facts: EventFacts) -> str:
    """Return the sentence about an undo."""
    match facts.data.get("of"):
        case "rule.deleted":
            return _("{who} brought the rule {rule} back.").format(who=facts.who, rule=facts.rule)
        case "rule.changed":
            return _("{who} undid a change of the rule {rule}.").format(who=facts.who, rule=facts.rule)
        case "rule.paused":
            return _("{who} resumed the rules for {role}.").format(who=facts.who, role=facts.role)
        case "rule.migrated":
            return _("{who} undid the replacement of a contract in the rules.").format(who=facts.who)
        case "rule.migration_ended":
            return _("{who} undid the end of a migration: both contracts count again.").format(who=facts.who)
        case "rule.role_replaced":
            text = _("{who} undid the replacement of a role with {role} in the rules.")
            return text.format(who=facts.who, role=facts.role)
        case "role.lost":
            return _given_back(facts)
        case _:
            return _removal_undone(facts)


def _given_back(facts: EventFacts) -> str:
    count = facts.count("members")
    if not count:
        text = _("{who} gave {role} back to nobody who had lost it to somebody else.")
        return text.format(who=facts.who, role=facts.role)
    return ngettext(
        "{who} gave {role} back to {count} member who had lost it to somebody else.",
        "{who} gave {role} back to {count} members who had lost it to somebody else.",
        count,
    ).format(who=facts.who, role=facts.role, count=count)


def _removal_undone(facts: EventFacts) -> str:
    count = facts.count("members")
    if not count:
        return _("{who} undid a removal of {role}: nobody gets it back.").format(who=facts.who, role=facts.role)
    return ngettext(
        "{who} undid a removal of {role}: {count} member gets it back.",
        "{who} undid a removal of {role}: {count} members get it back.",
        count,
    ).format(who=facts.who, role=facts.role, count=count)


def left_alone(facts: EventFacts) -> str:
    """Return the sentence about a role that is left alone."""
    until = facts.data.get("until")
    if not isinstance(until, str):
        text = _("{role} of {member} is neither given nor taken, because others reversed it twice within an hour.")
        return text.format(role=facts.role, member=facts.member)
    # Translators: {time} is such as "3 May, 08:00 UTC".
    text = _(
        "{role} of {member} is neither given nor taken until {time}, because others reversed it twice within an hour."
    )
    return text.format(role=facts.role, member=facts.member, time=day_and_minute(datetime.fromisoformat(until)))


def followed_again(facts: EventFacts) -> str:
    """Return the sentence about a role that follows the rules again."""
    if facts.data.get("early"):
        text = _("{who} let the rules decide about {role} of {member} again.")
        return text.format(who=facts.who, role=facts.role, member=facts.member)
    return _("The rules decide about {role} of {member} again.").format(role=facts.role, member=facts.member)


def imported(facts: EventFacts) -> str:
    """Return the sentence about an import of rules."""
    came_from = {"collabland": "Collab.Land", "guild": "Guild"}.get(str(facts.data.get("source")), "")
    count, skipped = facts.count("rules"), facts.count("skipped")
    if came_from:
        told = ngettext(
            "{who} imported {count} rule from {source} in shadow",
            "{who} imported {count} rules from {source} in shadow",
            count,
        ).format(who=facts.who, count=count, source=came_from)
    else:
        told = ngettext(
            "{who} imported {count} rule in shadow", "{who} imported {count} rules in shadow", count
        ).format(who=facts.who, count=count)
    if not skipped:
        return _("{sentence}.").format(sentence=told)
    # Translators: {told} is such as "Ada imported 3 rules from Guild in shadow".
    return ngettext("{told}; {count} entry was skipped.", "{told}; {count} entries were skipped.", skipped).format(
        told=told, count=skipped
    )


def exported(facts: EventFacts) -> str:
    """Return the sentence about an export of rules."""
    count = facts.count("rules")
    return ngettext(
        "{who} downloaded {count} rule as a document.", "{who} downloaded {count} rules as a document.", count
    ).format(who=facts.who, count=count)


def migrated(facts: EventFacts) -> str:
    """Return the sentence about a collection or coin that got another contract."""
    count, old, new = facts.count("rules"), facts.contract("old"), facts.contract("new")
    told = ngettext(
        "{who} replaced {old} with {new} in {count} rule", "{who} replaced {old} with {new} in {count} rules", count
    ).format(who=facts.who, old=old, new=new, count=count)
    if not facts.data.get("both"):
        return _("{sentence}.").format(sentence=told)
    if facts.data.get("until"):
        # Translators: {told} is such as "Ada replaced Cats on Base with New Cats on Base in 3 rules".
        return _("{told}; both count until {time}.").format(told=told, time=move_end(facts))
    return _("{told}; both count until somebody ends that.").format(told=told)


def migration_ended(facts: EventFacts) -> str:
    """Return the sentence about the end of a migration."""
    count, old, new = facts.count("rules"), facts.contract("old"), facts.contract("new")
    return ngettext(
        "{who} ended the migration from {old} to {new}: only the new one counts in {count} rule.",
        "{who} ended the migration from {old} to {new}: only the new one counts in {count} rules.",
        count,
    ).format(who=facts.who, old=old, new=new, count=count)


def role_replaced(facts: EventFacts) -> str:
    """Return the sentence about a role that replaced another one in rules."""
    count, old = facts.count("rules"), str(facts.data.get("oldName") or "")
    return ngettext(
        "{who} replaced the role {old} with {role} in {count} rule.",
        "{who} replaced the role {old} with {role} in {count} rules.",
        count,
    ).format(who=facts.who, old=old, role=facts.role, count=count)


def handed_over(facts: EventFacts) -> str:
    """Return the sentence about wallets that moved between two accounts of one person; it never names both accounts."""
    if facts.data.get("took"):
        return _("{member} took wallets over from another account of theirs.").format(member=facts.member)
    return _("{member} handed wallets over to another account of theirs.").format(member=facts.member)


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
    return text.format(who=facts.who, roles=moved(facts), time=move_end(facts))


def move_undone(facts: EventFacts) -> str:
    """Return the sentence about a move that was called off or undone."""
    if not facts.data.get("approved"):
        text = _("{who} called off the move of {roles}: everybody keeps them.")
        return text.format(who=facts.who, roles=moved(facts))
    count = facts.count("members")
    if not count:
        text = _("{who} undid the move of {roles}: nobody gets roles back.")
        return text.format(who=facts.who, roles=moved(facts))
    return ngettext(
        "{who} undid the move of {roles}: {count} member gets roles back.",
        "{who} undid the move of {roles}: {count} members get roles back.",
        count,
    ).format(who=facts.who, roles=moved(facts), count=count)


def scopes(facts: EventFacts) -> str:
    """Return the API names of a token's scopes, separated by commas."""
    return ", ".join(cast("list[str]", facts.data.get("scopes") or []))
