"""The form that adds a verification rule."""

from datetime import timedelta

import reflex as rx

from gateways import gateways
from models import transaction
from services import collections, rules, servers
from services.actors import Actor
from services.errors import HoldfastError, ProviderUnavailable
from state.gate import public, signed_in
from state.rules import RoleOptionView, ServerPageState
from state.toasts import refuse, say

BASIC, ANY_NFT = "basic", "any_nft"
OFFERED_TYPES, OFFERED_CHAINS = rules.SUPPORTED_TYPES, rules.SUPPORTED_CHAINS
DEFAULT_CHAIN = "ethereum"
DEFAULT_COLOR = "#5865F2"
CONTRACT_INPUT = "contractAddress"
"""The input of the collection, which a lookup fills with the contract's address."""


class RuleFormState(rx.State):
    """What is filled in so far; only what the form itself has to know changes as one types."""

    type: str = BASIC
    chain: str = DEFAULT_CHAIN
    contract: str = ""
    collection: str = ""
    looking: bool = False
    rule_name: str = ""
    min_tokens: str = "1"
    role_id: str = ""
    roles: list[RoleOptionView] = []
    roles_loaded: bool = False
    pending: bool = False
    fault: str = ""
    _given: str = ""

    @signed_in
    async def load(self, actor: Actor):
        """Start with the defaults, then fetch the server's roles."""
        page = await self.get_state(ServerPageState)
        page._read_address()
        self.type, self.chain, self.contract, self.rule_name = BASIC, DEFAULT_CHAIN, "", ""
        self.min_tokens, self.role_id, self.fault, self.pending = "1", "", "", False
        self.collection, self.looking, self._given = "", False, ""
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

    @signed_in
    async def choose_chain(self, actor: Actor, value: str):
        """Another chain; an address that is filled in is looked up there."""
        if value not in OFFERED_CHAINS or value == self.chain:
            return
        self.chain = value
        self._forget()
        if collections.is_whole(self.contract):
            async for outcome in self._look_up():
                yield outcome

    @signed_in
    async def enter_contract(self, actor: Actor, value: str):
        """What is typed or pasted; the collection is looked up once it is an address or a URL."""
        async for outcome in self._take(value):
            yield outcome

    @signed_in
    async def refresh_collection(self, actor: Actor):
        """Look the collection up again."""
        if not self.contract:
            await refuse(self, "No input", "Enter a contract address or collection URL first")
            return
        async for outcome in self._look_up(no_older_than=timedelta(0)):
            yield outcome

    async def _take(self, value: str):
        given = value.strip()[:500]
        if given in {self.contract, self._given}:
            if given != self.contract:
                yield rx.set_value(CONTRACT_INPUT, self.contract)
            return
        self.contract = self._given = given
        self._forget()
        if collections.is_whole(given):
            async for outcome in self._look_up():
                yield outcome

    def _forget(self) -> None:
        """The collection that was known is not the one that is filled in."""
        self.collection = ""
        self._rename()

    async def _look_up(self, no_older_than: timedelta = collections.FRESH_FOR):
        """Find the collection and take over its address, chain and name, or say why there is none."""
        self.looking = True
        yield
        try:
            async with transaction() as db:
                found = await collections.parse(db, gateways(), self.contract, self.chain, no_older_than=no_older_than)
        except ProviderUnavailable:
            self._forget()
            await refuse(self, "Connection error", "Failed to fetch collection data. Please try again.")
        except HoldfastError as fault:
            self._forget()
            await refuse(self, "Collection not found", fault.message or "Please check the URL or contract address")
        else:
            self.contract, self.chain, self.collection = found.contract_address, found.blockchain, found.name
            self._rename()
            yield rx.set_value(CONTRACT_INPUT, self.contract)
            await say(self, "Collection found", f"Successfully loaded: {found.name}")
        finally:
            self.looking = False

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
        self.rule_name = rules.automatic_name(self.type, self.chain, self.collection, None, None, ())

    @signed_in
    async def create(self, actor: Actor, form: dict[str, str]):
        """Create the rule and go back to the server's configuration."""
        self.pending, self.fault = True, ""
        yield
        # Whoever is quicker than the pause after typing has their collection looked up now.
        async for outcome in self._take(form.get(CONTRACT_INPUT, self.contract)):
            yield outcome
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
