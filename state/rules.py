"""A server's rules: the list with what can be done to each, and the form that adds one."""

from dataclasses import dataclass

import reflex as rx

from gateways import gateways
from models import transaction
from services import rules, servers
from services.actors import Actor
from services.errors import NotFound
from state.gate import public, signed_in
from state.servers import configure_url
from state.toasts import say


@dataclass(frozen=True)
class RuleRowView:
    """A rule as the list shows it; `state` is active, shadow or paused."""

    id: int
    name: str
    summary: str
    chain: str
    role_name: str
    role_color: str
    state: str
    pause_reason: str
    holders: int


@dataclass(frozen=True)
class RoleOptionView:
    """A role to choose; one that cannot be given says why."""

    id: str
    name: str
    color: str
    label: str
    assignable: bool


class ServerPageState(rx.State):
    """Which server a screen is about: what its address says, checked by the service at every use."""

    server_id: int = 0
    discord_id: str = ""
    name: str = ""
    config_url: str = ""
    add_rule_url: str = ""

    def _read_address(self) -> None:
        asked = self.router.url.query_parameters
        number = asked.get("serverId", "")
        self.server_id = int(number) if number.isascii() and number.isdigit() and len(number) < 10 else 0
        self._name(asked.get("discordServerId", ""), asked.get("serverName", ""))

    def _name(self, discord_id: str, name: str) -> None:
        self.discord_id, self.name = discord_id[:32], name[:100]
        self.config_url = configure_url("/server-config", self.server_id, self.discord_id, self.name)
        self.add_rule_url = configure_url("/add-verification-rule", self.server_id, self.discord_id, self.name)


class RulesState(rx.State):
    """The Rules tab of a server's configuration."""

    loaded: bool = False
    missing: bool = False
    bot_invited: bool = True
    icon_url: str = ""
    rows: list[RuleRowView] = []
    working: int = 0
    asked_id: int = 0
    asked_name: str = ""
    asked_text: str = ""

    @signed_in
    async def load(self, actor: Actor) -> None:
        """Read the server and its rules."""
        page = await self.get_state(ServerPageState)
        page._read_address()
        self.loaded, self.asked_id = False, 0
        try:
            async with transaction() as db:
                server = await servers.get(db, gateways(), actor, page.server_id)
                listed = await rules.list_rules(db, gateways(), actor, page.server_id)
        except NotFound:
            self.missing, self.rows = True, []
        else:
            page._name(server.id, server.name)
            self.missing, self.bot_invited, self.icon_url = False, server.bot_invited, server.icon_url or ""
            self.rows = [_row(rule) for rule in listed]
        finally:
            self.loaded = True

    async def _reread(self, actor: Actor) -> None:
        page = await self.get_state(ServerPageState)
        async with transaction() as db:
            self.rows = [_row(rule) for rule in await rules.list_rules(db, gateways(), actor, page.server_id)]

    @signed_in
    async def pause(self, actor: Actor, rule_id: int):
        """Stop a rule; what it gave stays."""
        async for outcome in self._change(actor, rule_id, "paused", "Rule paused", "Roles it gave stay as they are."):
            yield outcome

    @signed_in
    async def resume(self, actor: Actor, rule_id: int):
        """Let a rule give and take again."""
        async for outcome in self._change(actor, rule_id, "active", "Rule resumed", "Members are being looked at now."):
            yield outcome

    async def _change(self, actor: Actor, rule_id: int, state: str, title: str, text: str):
        self.working = rule_id
        yield
        try:
            async with transaction() as db:
                await rules.change(db, gateways(), actor, rule_id, {"state": state})
            await self._reread(actor)
            await say(self, title, text)
        finally:
            self.working = 0

    @signed_in
    async def ask_delete(self, actor: Actor, rule_id: int) -> None:
        """Say what deleting a rule does before it is done."""
        async with transaction() as db:
            rule = await rules.get(db, gateways(), actor, rule_id)
            holders = await rules.consequences(db, gateways(), actor, rule_id)
        self.asked_id, self.asked_name = rule_id, rule.rule_name
        if holders == 0:
            self.asked_text = f"Nobody has {rule.role_name} through this rule, so no role is taken."
        else:
            people = "1 member has" if holders == 1 else f"{holders} members have"
            self.asked_text = (
                f"{people} {rule.role_name} through this rule. Whoever no other rule entitles to it loses it now. "
                "Roles given by hand stay."
            )

    @public
    def keep(self, is_open: bool) -> None:
        """Close the question."""
        if not is_open:
            self.asked_id = 0

    @signed_in
    async def delete(self, actor: Actor):
        """Delete the rule that the question was about."""
        rule_id, self.asked_id = self.asked_id, 0
        self.working = rule_id
        yield
        try:
            async with transaction() as db:
                await rules.delete(db, gateways(), actor, rule_id)
            await self._reread(actor)
            await say(self, "Rule deleted", f"{self.asked_name} is gone; its roles are being settled.")
        finally:
            self.working = 0


def _row(rule: rules.RuleView) -> RuleRowView:
    return RuleRowView(
        id=rule.id,
        name=rule.rule_name,
        summary=rule.summary,
        chain=rule.blockchain.capitalize(),
        role_name=rule.role_name,
        role_color=rule.role_color,
        state=rule.state,
        pause_reason=rule.pause_reason or "",
        holders=rule.holders,
    )
