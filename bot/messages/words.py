"""The bot's sentences about the services' views: pure functions that escape texts of others."""

from collections.abc import Sequence
from datetime import datetime

from bot.messages.replies import Reply, lines
from services.core.chain_names import chain_title
from services.core.discord_text import plain
from services.engine.trial import Trial
from services.guilds.panel import SAFETY
from services.holdings.requirement_view import RequirementView
from services.privacy.erasure import EndingRole
from services.privacy.preferences import ChoiceView
from services.rules.views import RuleView
from services.servers.explain import MemberWhy, RoleWhy
from services.servers.recheck_report import RecheckReport, RoleLine
from services.wallets.wallets import WalletView
from settings import settings

HAS, LACKS, UNKNOWN = "✅", "❌", "❔"
METHODS = {"opensea_bio": "OpenSea bio", "transaction": "transaction"}


def moment(time: datetime) -> str:
    """Return a time that Discord shows in the reader's language, such as "5 minutes ago"."""
    return f"<t:{int(time.timestamp())}:R>"


def on(time: datetime) -> str:
    """Return a time that Discord shows with its date."""
    return f"<t:{int(time.timestamp())}:f>"


def why(seen: MemberWhy, role_id: str | None = None) -> Reply:
    """Explain each role with rules: whether the member has it, what is needed and held, when, and what comes next."""
    roles = [role for role in seen.roles if role_id in (None, role.role_id)]
    if not roles:
        return Reply("Your roles", "No rule in this server is about a role of yours, and none gives one yet.", "info")
    return Reply("Your roles", "", "info", tuple((_title(role), _body(role)) for role in roles))


def _title(role: RoleWhy) -> str:
    unknown = any(rule.outcome == "unknown" and rule.state == "active" for rule in role.rules)
    mark = HAS if role.held else UNKNOWN if unknown else LACKS
    return f"{mark} {role.role_name}: you {'have' if role.held else 'do not have'} it"


def _body(role: RoleWhy) -> str:
    found: list[str] = []
    for rule in role.rules:
        rests = "" if rule.state == "active" else " (this rule is not active)"
        found.append(f"**{plain(rule.name, 80)}**{rests}")
        found += [f"• {_requirement(one)}" for one in rule.requirements]
    found.append(f"*{plain(role.next, 200)}*")
    return "\n".join(found)


def _requirement(one: RequirementView) -> str:
    needed, held = one.amounts
    told = f"{plain(one.text, 160)}: needed {needed}, held {held}"
    if one.wallet:
        told += f" in {plain(one.wallet, 60)}"
    if one.reason:
        told += f", {plain(one.reason, 120)}"
    if one.observed_at is not None:
        told += f"; last looked {moment(one.observed_at)}"
    return told


def outcome(found: RecheckReport, title: str, text: str = "") -> Reply:
    """Say what was added and removed, what stays, what is missing, and what is unknown and why."""
    parts = (
        ("Added", found.added, False), ("Removed", found.removed, True), ("Stays", found.stays, False),
        ("Not yours", found.missing, True), ("Unknown", found.unknown, True),
    )  # fmt: skip
    fields = [(name, lines([_role(one, explained) for one in roles])) for name, roles, explained in parts if roles]
    if not fields:
        fields = [("Roles", "No rule in this server is about you yet.")]
    if not found.settled:
        fields.append(("Still under way", "Some checks are still running. **/why** shows the result."))
    tone = "bad" if found.removed else "warning" if found.unknown else "good"
    return Reply(title, text, tone, tuple(fields))


def _role(one: RoleLine, explained: bool) -> str:
    return f"**{plain(one.name, 100)}**" + (f": {plain(one.text, 200)}" if explained else "")


def trial(rule_name: str, found: Trial) -> Reply:
    """Say what a rule answers for an address, and why."""
    answer, tone = {"yes": ("Yes", "good"), "no": ("No", "bad")}.get(found.outcome, ("Unknown", "warning"))
    marks = {"yes": HAS, "no": LACKS}
    address = f"`{found.address}`" + (f" ({plain(found.name, 80)})" if found.name else "")
    text = f"**{plain(rule_name, 80)}** for {address}, as the only wallet of a member. Nothing is stored."
    fields = tuple(
        (f"{marks.get(one.outcome, UNKNOWN)} Condition {number}", _requirement(one))
        for number, one in enumerate(found.requirements, 1)
    )
    return Reply(answer, text, tone, fields)


def rules(found: Sequence[RuleView]) -> Reply:
    """List the roles that can be earned."""
    shown = [rule for rule in found if rule.state != "shadow"]
    if not shown:
        return Reply("Roles to earn", "This server has no rules yet, so there is no role to earn.", "info")
    fields = tuple(
        (
            rule.role_name + (" (paused)" if rule.state == "paused" else ""),
            f"{plain(rule.summary, 600)}\n*{plain(rule.rule_name, 80)}*",
        )
        for rule in shown
    )
    return Reply("Roles to earn", "Hold what a rule asks for, verify the wallet with **/verify**, and it is yours.",
                 "info", fields)  # fmt: skip


def wallet_line(wallet: WalletView) -> str:
    """Return a wallet on one line."""
    method = METHODS.get(wallet.verification_method, wallet.verification_method)
    where = f"counts on {chain_title(wallet.only_on)} alone" if wallet.only_on else wallet.blockchain
    return f"`{wallet.short_address}` ({where}), verified by {method} {moment(wallet.created_at)}"


def wallets(found: Sequence[WalletView], choice: ChoiceView | None) -> tuple[str, str]:
    """Return the list of wallets and the person's choices for this server: a text and a tone."""
    if not found:
        return "You have verified no wallet yet. Press **Add a wallet** to verify your first one.", "info"
    uses = choice is None or choice.use_wallets
    shares = choice is not None and choice.share_wallets
    told = [
        lines([wallet_line(wallet) for wallet in found]),
        "",
        "In this server your wallets **count** for roles." if uses else "In this server your wallets **do not count**.",
        "Its admins **see** their shortened addresses." if shares else "Its admins **do not see** their addresses.",
    ]
    return "\n".join(told), "info"


def ending(roles: Sequence[EndingRole]) -> str:
    """Say what happens to each role when a person's data is deleted."""
    if not roles:
        return f"You have no role from {settings().product_name}, so none is taken."
    return lines([f"**{plain(one.role_name)}** in {plain(one.server_name)} {plain(one.text)}" for one in roles])


def help_(bot_id: str, commands: Sequence[tuple[str, str]]) -> Reply:
    """List the commands by their `(name, description)`, and say how to recognise the bot."""
    bot = settings().bot_name
    return Reply(
        f"{bot} in short",
        "\n".join(f"**/{name}**: {text[:1].lower()}{text[1:]}" for name, text in commands),
        "info",
        (("Stay safe", f"{SAFETY} This bot's id is {bot_id}. Only you see what I answer."),),
    )
