"""The form that adds a verification rule."""

import reflex as rx

from gateways import gateways
from models import transaction
from services import rules, servers
from services.actors import Actor
from services.errors import HoldfastError
from state.gate import public, signed_in
from state.rules import RoleOptionView, ServerPageState
from state.toasts import refuse, say

BASIC, ANY_NFT = "basic", "any_nft"
OFFERED_TYPES, OFFERED_CHAINS = rules.SUPPORTED_TYPES, rules.SUPPORTED_CHAINS
DEFAULT_CHAIN = "ethereum"
DEFAULT_COLOR = "#5865F2"


class RuleFormState(rx.State):
    """What is filled in so far; only what the form itself has to know changes as one types."""

    type: str = BASIC
    chain: str = DEFAULT_CHAIN
    contract: str = ""
    rule_name: str = ""
    min_tokens: str = "1"
    role_id: str = ""
    roles: list[RoleOptionView] = []
    roles_loaded: bool = False
    pending: bool = False
    fault: str = ""

    @signed_in
    async def load(self, actor: Actor):
        """Start with the defaults, then fetch the server's roles."""
        page = await self.get_state(ServerPageState)
        page._read_address()
        self.type, self.chain, self.contract, self.rule_name = BASIC, DEFAULT_CHAIN, "", ""
        self.min_tokens, self.role_id, self.fault, self.pending = "1", "", "", False
        self.roles, self.roles_loaded = [], False
        yield
        try:
            async with transaction() as db:
                server = await servers.get(db, gateways(), actor, page.server_id)
                page._name(server.id, server.name)
                found = await servers.roles(db, gateways(), actor, server.id)
            self.roles = [_option(role) for role in found]
        except HoldfastError as fault:
            self.fault = fault.message
        finally:
            self.roles_loaded = True

    @public
    def choose_type(self, value: str) -> None:
        """Another kind of rule."""
        if value in OFFERED_TYPES:
            self.type = value
            self._rename()

    @public
    def choose_chain(self, value: str) -> None:
        """Another chain."""
        if value in OFFERED_CHAINS:
            self.chain = value
            self._rename()

    @public
    def enter_contract(self, value: str) -> None:
        """The contract's address as typed or pasted."""
        self.contract = value.strip()[:200]
        self._rename()

    @public
    def enter_min_tokens(self, value: float | None) -> None:
        """How many tokens at least; an emptied field is no number."""
        self.min_tokens = "" if value is None else f"{value:g}"[:20]

    @public
    def choose_role(self, value: str) -> None:
        """Which role holders get."""
        self.role_id = value

    @public
    async def refresh_name(self) -> None:
        """Make the rule's name anew from what is filled in."""
        if not self.contract and self.type != ANY_NFT:
            await refuse(self, "No contract address")
        self._rename()

    def _rename(self) -> None:
        known = self.contract or self.type == ANY_NFT
        collection = f"{self.contract[:6]}…{self.contract[-4:]}" if len(self.contract) > 12 else self.contract
        self.rule_name = rules.automatic_name(self.type, self.chain, collection, None, None, ()) if known else ""

    @signed_in
    async def create(self, actor: Actor):
        """Create the rule and go back to the server's configuration."""
        self.pending, self.fault = True, ""
        yield
        page = await self.get_state(ServerPageState)
        role = next((one for one in self.roles if one.id == self.role_id), None)
        amount = self.min_tokens.strip()
        draft = rules.RuleDraft(
            rule_name=self.rule_name,
            contract_address="any" if self.type == ANY_NFT else self.contract,
            blockchain=self.chain,
            verification_type=self.type,
            min_tokens=int(amount) if amount.isascii() and amount.isdigit() else 0,
            role_id=self.role_id,
            role_color=role.color if role else DEFAULT_COLOR,
            role_name=role.name if role else None,
            server_id=page.server_id,
        )
        try:
            async with transaction() as db:
                await rules.create(db, gateways(), actor, draft)
        except HoldfastError as fault:
            self.fault = fault.message
            await refuse(self, "Error", fault.message or "Failed to create verification rule")
        else:
            await say(self, "Success", "Verification rule created successfully!")
            yield rx.redirect(page.config_url)
        finally:
            self.pending = False


def _option(role: servers.RoleView) -> RoleOptionView:
    label = role.name if role.assignable else f"{role.name} ({role.reason})"
    color = f"#{role.color:06x}" if role.color else DEFAULT_COLOR
    return RoleOptionView(role.id, role.name, color, label, role.assignable)
