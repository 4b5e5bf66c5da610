"""The bot's sentences about the services' views: pure functions that escape other people's texts."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from nextcord import ButtonStyle

from bot.messages.reply import MOST_FIELDS, YES, Button, Reply, fitting_lines, lines
from locales import N_, _, first_of
from services.core.chain_names import chain_title
from services.core.discord_text import LONGEST_FIELD, cut, plain
from services.engine.previews.try_address import Trial
from services.guilds.panel import MY_ROLES, SAFE_NAME, SAFETY, VERIFY
from services.guilds.role_safety import UNKNOWN_ROLE
from services.holdings.requirement_view import RequirementView
from services.privacy.erasure import EndingRole
from services.privacy.preferences import ChoiceView
from services.rules.views import RuleView
from services.servers.explain import MemberWhy, RoleWhy
from services.servers.recheck_report import RecheckReport, RoleLine
from services.wallets.wallets import WalletView
from settings import settings

MOST_WALLETS = 25
"""Wallets that a list names, so that the choices below it fit."""
MOST_IN_LISTS = 3_000
"""Characters of all lists of a report together, so that they fit below a member's notices."""
RULES = "holdfast:rules"
"""The custom id of the button that shows more rules."""
LONGEST_SENTENCE = 300
"""Characters of a sentence about a role or an amount; translations are longer than the English."""
HAS, LACKS, UNKNOWN = "✅", "❌", "❔"
METHODS = {
    # Translators: how a wallet was verified, as in "verified by OpenSea bio".
    "opensea_bio": N_("OpenSea bio"),
    # Translators: how a wallet was verified, as in "verified by transaction".
    "transaction": N_("transaction"),
}


def moment(time: datetime) -> str:
    """Return a time that Discord shows in the reader's language, such as "5 minutes ago"."""
    return f"<t:{int(time.timestamp())}:R>"


def on(time: datetime) -> str:
    """Return a time that Discord shows with its date."""
    return f"<t:{int(time.timestamp())}:f>"


def why(seen: MemberWhy, wanted: str = "", start: int = 0, doubt: str | None = None) -> Reply:
    """Explain each role with rules: whether the member has it, what is needed and held, when, and the next step.

    `wanted` is the id, the mention or the name of a role; all roles are explained if no rule is about it, those that
    the member has first. `start` is the place of the first role to show. `doubt` is why the last look could not read
    everything.
    """
    chosen = _meant(seen.roles, wanted) if wanted else ()
    roles = chosen or sorted(seen.roles, key=lambda role: not role.held)
    if not roles:
        return Reply(
            _("Your roles"), _("No rule in this server is about a role of yours, and none gives one yet."), "info"
        )
    missed = _("No rule here is about a role named {role}, so these are all the roles.")
    note = missed.format(role=plain(wanted, 100)) if wanted and not chosen else ""
    if doubt:
        note = "\n\n".join(part for part in (_earlier(doubt), note) if part)
    fields = tuple((_title(role), _body(role)) for role in roles)
    return _in_parts(Reply(_("Your roles"), note, "info", fields, more=MY_ROLES), start)


def _in_parts(reply: Reply, start: int) -> Reply:
    """Return the reply from this field on; from its beginning if the field is no longer there."""
    return replace(reply, start=start if start < len(reply.fields) else 0)


def _meant(roles: Sequence[RoleWhy], wanted: str) -> Sequence[RoleWhy]:
    """Return the role with this id, or all roles of this name; people type names without regard to case."""
    # A client writes a role that is picked after an @ as its mention.
    role_id = wanted.removeprefix("<@&").removesuffix(">")
    by_id = [role for role in roles if role.role_id == role_id]
    return by_id or [role for role in roles if role.role_name.casefold() == wanted.casefold()]


def _title(role: RoleWhy) -> str:
    unknown = any(rule.outcome == "unknown" and rule.state == "active" for rule in role.rules)
    mark = HAS if role.held else UNKNOWN if unknown else LACKS
    has = _("{role}: you have it") if role.held else _("{role}: you do not have it")
    return f"{mark} {has.format(role=_name(role.role_name))}"


def _name(role_name: str) -> str:
    """Return a role's name for a heading, which Discord formats like other texts and refuses without a character."""
    return plain(role_name, 100) or _(UNKNOWN_ROLE)


def _body(role: RoleWhy) -> str:
    found: list[str] = []
    for rule in role.rules:
        name = f"**{plain(rule.name, 80)}**"
        found.append(name if rule.state == "active" else _("{rule} (this rule is not active)").format(rule=name))
        found += [f"• {_requirement(one)}" for one in rule.requirements]
    then = f"*{plain(role.next, LONGEST_SENTENCE)}*"
    # Cut here, so that what happens next is shown whatever the rules say.
    told = cut("\n".join(found), LONGEST_FIELD - len(then) - 1)
    return "\n".join(part for part in (told, then) if part)


def _requirement(one: RequirementView) -> str:
    needed, held = one.amounts
    amounts = _("{requirement}: needed {needed}, held {held}")
    if one.wallets:
        amounts = _("{requirement}: needed {needed}, held {held} in {wallet}")
    told = amounts.format(
        requirement=plain(one.text, 160), needed=needed, held=held, wallet=plain(one.wallets, LONGEST_SENTENCE)
    )
    if one.reason:
        told = _("{text}, {reason}").format(text=told, reason=plain(one.reason, LONGEST_SENTENCE))
    if one.observed_at is not None:
        # Translators: {time} is such as "5 minutes ago", which Discord writes.
        told = _("{text}; last looked {time}").format(text=told, time=moment(one.observed_at))
    return told


def outcome(found: RecheckReport, title: str, text: str = "") -> Reply:
    """Say which roles were added and removed, which stay, which are missing, and which are unknown and why."""
    parts = (
        # Translators: the heading of the roles that a member got.
        (_("Added"), found.added, False),
        # Translators: the heading of the roles that a member lost.
        (_("Removed"), found.removed, True),
        # Translators: the heading of the roles that a member has as before.
        (_("Stays"), found.stays, False),
        # Translators: the heading of the roles that a member does not have.
        (_("Not yours"), found.missing, True),
        # Translators: the heading of the roles about which not everything could be read.
        (_("Unknown"), found.unknown, True),
    )  # fmt: skip
    told = [(name, roles, [_role(one, explained) for one in roles]) for name, roles, explained in parts if roles]
    longest = min(LONGEST_FIELD, MOST_IN_LISTS // max(1, len(told)))
    fields, left_out, taken = list[tuple[str, str]](), 0, found.taken
    for name, roles, said in told:
        shown, left = fitting_lines(said, longest)
        fields.append((name, shown))
        left_out += left
        if roles is found.removed:
            taken = taken[: len(roles) - left]
    if not fields:
        fields = [(_("Roles"), _("No rule in this server is about you yet."))]
    if found.doubt:
        fields.append((_("Still under way"), _earlier(found.doubt)))
    elif not found.settled:
        running = _("Some checks are still running. **/why** shows the result.")
        fields.append((_("Still under way"), running))
    tone = "bad" if found.removed else "warning" if found.unknown or found.doubt else "good"
    more = (Button(MY_ROLES, _("My roles")),) if left_out else ()
    return Reply(title, text, tone, tuple(fields), more, taken=frozenset(taken))


def _earlier(doubt: str) -> str:
    told = _(
        "Not everything could be read just now ({reason}), so some of this is from an earlier look. I look again "
        "automatically."
    )
    return told.format(reason=plain(doubt, LONGEST_SENTENCE))


def _role(one: RoleLine, explained: bool) -> str:
    return f"**{plain(one.name, 100)}**" + (f": {plain(one.text, LONGEST_SENTENCE)}" if explained else "")


def trial(rule_name: str, found: Trial) -> Reply:
    """Say a rule's answer for an address, and the reasons."""
    answer, tone = {"yes": (_("Yes"), "good"), "no": (_("No"), "bad")}.get(found.outcome, (_("Unknown"), "warning"))
    marks = {"yes": HAS, "no": LACKS}
    address = f"`{found.address}`" + (f" ({plain(found.name, 80)})" if found.name else "")
    text = _("**{rule}** for {address}, as the only wallet of a member. Nothing is stored.").format(
        rule=plain(rule_name, 80), address=address
    )
    fields = tuple(
        (marks.get(one.outcome, UNKNOWN) + " " + _("Condition {number}").format(number=number), _requirement(one))
        for number, one in enumerate(found.requirements, 1)
    )
    return Reply(answer, text, tone, fields)


def rules(found: Sequence[RuleView], start: int = 0, count: int | None = None) -> Reply:
    """List the roles that can be earned, from the one at the place `start` on.

    With `count`, the number of all rules, `found` has only the MOST_FIELDS rules from there on.
    """
    shown = [rule for rule in found if rule.state != "shadow"]
    if not shown:
        return Reply(_("Roles to earn"), _("This server has no rules yet, so there is no role to earn."), "info")
    fields = tuple((_earned(rule), f"{plain(rule.summary, 600)}\n*{plain(rule.rule_name, 80)}*") for rule in shown)
    if count is not None:
        # Those before and after are counted and not shown; none is after rules of which some were deleted just now.
        after = count - start - MOST_FIELDS if len(shown) == MOST_FIELDS else 0
        fields = (*[("", "")] * start, *fields, *[("", "")] * max(0, after))
    text = _("Hold what a rule asks for, verify the wallet with **/verify**, and it is yours.")
    return _in_parts(Reply(_("Roles to earn"), text, "info", fields, more=RULES), start)


def _earned(rule: RuleView) -> str:
    name = _name(rule.role_name)
    return _("{role} (paused)").format(role=name) if rule.state == "paused" else name


def wallet_line(wallet: WalletView) -> str:
    """Return a wallet on one line."""
    method = _(METHODS.get(wallet.verification_method, wallet.verification_method))
    alone = _("counts on {chain} alone").format(chain=chain_title(wallet.only_on or ""))
    # Translators: {wallet} is an address, {where} a chain, {time} such as "5 minutes ago", which Discord writes.
    return _("{wallet} ({where}), verified by {method} {time}").format(
        wallet=f"`{wallet.short_address}`",
        where=alone if wallet.only_on else chain_title(wallet.blockchain),
        method=method,
        time=moment(wallet.created_at),
    )


def add_wallet() -> Button:
    """Return the button to verify a wallet."""
    return Button(VERIFY, _("Add a wallet"), ButtonStyle.primary)


def use_wallets() -> Button:
    """Return the button by which a person's wallets count in this server."""
    return Button(f"holdfast:use:{YES}", _("Use them here"))


def none_counts(found: Sequence[WalletView], choice: ChoiceView | None) -> tuple[str, Button] | None:
    """Return why no wallet of a person counts in this server, and the button to change it; None if one counts."""
    if not found:
        return wallets(found, choice), add_wallet()
    if choice is not None and not choice.use_wallets:
        return _("In this server your wallets **do not count**."), use_wallets()
    return None


def wallets(found: Sequence[WalletView], choice: ChoiceView | None) -> str:
    """Return the list of wallets and the person's choices for this server."""
    if not found:
        return _("You have verified no wallet yet. Press **Add a wallet** to verify your first one.")
    uses = choice is None or choice.use_wallets
    shares = choice is not None and choice.share_wallets
    listed = first_of([wallet_line(wallet) for wallet in found], MOST_WALLETS)
    told = [
        lines(listed),
        "",
        _("In this server your wallets **count** for roles.")
        if uses
        else _("In this server your wallets **do not count**."),
        _("Its admins **see** their shortened addresses.")
        if shares
        else _("Its admins **do not see** their addresses."),
    ]
    return "\n".join(told)


def ending(roles: Sequence[EndingRole]) -> str:
    """Say what happens to each role when a person's data is deleted."""
    if not roles:
        return _("You have no role from {product}, so none is taken.").format(product=settings().product_name)
    # Translators: {end} says what happens to the role, such as "is taken within the next minutes".
    said = _("**{role}** in {server} {end}")
    return lines(
        [said.format(role=plain(one.role_name), server=plain(one.server_name), end=plain(one.text)) for one in roles]
    )


def help_(bot_id: str, commands: Sequence[tuple[str, str]]) -> Reply:
    """List the commands by their `(name, description)`, and say how to recognise the bot."""
    bot = settings().bot_name
    recognised = _("This bot's id is {id}. Only you see what I answer.").format(id=bot_id)
    return Reply(
        # Translators: the title of the list of commands.
        _("{bot} in short").format(bot=bot),
        "\n".join(f"**/{name}**: {text[:1].lower()}{text[1:]}" for name, text in commands),
        "info",
        ((_(SAFE_NAME), f"{_(SAFETY)} {recognised}"),),
    )
