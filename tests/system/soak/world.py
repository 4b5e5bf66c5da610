"""A guild in the sandbox with its people, collections and rules, and a mirror of its true state."""

import asyncio
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

import httpx
from sqlalchemy.exc import DBAPIError

from gateways import gateways
from models import User, Wallet, transaction
from services.accounts.users import ensure
from services.core import queue
from services.core.actors import Actor
from services.core.errors import HoldfastError, Retryable
from services.roles import breaker
from services.rules import rules
from services.rules.draft import RuleDraft
from services.triggers import gateway_events as guilds
from services.triggers import member_rereads
from services.wallets import wallets
from tests.system.soak.expected_roles import Holdings, Pair, SoakRule, Timeline, Token, right

STANDARDS = {"base": "ERC721", "ethereum": "ERC721Enumerable", "polygon": "ERC1155", "solana": "Solana"}
COINS = {"base": "ERC20", "solana": "SPL"}
DECIMALS = {"base": 6, "solana": 9}
COIN_AMOUNTS = ("40", "60.25", "99.5", "200")
"""Whole coins that a person gets at once."""
STAKING = {"polygon": "Staking:number", "base": "Staking:list"}
GOLDEN = {"Fur": "Gold"}
ROLES = ("Holder", "Collector", "Whale")
ELSEWHERE = {"evm": "0x" + "5e" * 20, "solana": "1" * 31 + "9"}
SETTLED_BLOCKS = 65
REFUSED_SECONDS = 120.0
"""How long a busy machine may take to answer a request for one of the first rules."""
"""Blocks that settle the earlier state on each chain: no reorganisation here undoes it, and it can cost a role."""


def family(chain: str) -> str:
    """Return which of a person's wallets holds tokens of the chain."""
    return "solana" if chain == "solana" else "evm"


def _plain(chain: str, address: str) -> str:
    """Return an address as the mirror spells it."""
    return address if chain == "solana" else address.lower()


@dataclass
class Guild:
    """One guild: its members, present or away for now, and the roles that rules give, by name."""

    name: str
    id: str
    members: tuple[str, ...]
    roles: dict[str, str]
    server_id: int = 0


class World:
    """Some guilds and the events in them. Every deed is done in the sandbox or by the product's verbs, and mirrored.

    There are several because Discord lets a bot write ten roles in ten seconds in each.
    """

    def __init__(self, control: httpx.AsyncClient, random: Random) -> None:
        self.control, self.random = control, random
        self.owner: dict[str, Any] = {}
        self.people: dict[str, dict[str, Any]] = {}
        self.guilds: list[Guild] = []
        self.present: set[str] = set()
        self.proved: dict[str, dict[str, str]] = {}
        self.contracts: dict[str, str] = {}
        self.coins: dict[str, str] = {}
        self.staking: dict[str, str] = {}
        self.holdings = Holdings()
        self.soak_rules: list[SoakRule] = []
        self.timeline, self.away = Timeline(), list[tuple[str, float]]()
        self._tokens = 0

    async def call(self, path: str, **body: Any) -> dict[str, Any]:
        answer = await self.control.post(f"/control/{path}", json=body)
        assert answer.status_code == 200, f"{path} {body}: {answer.status_code} {answer.text}"
        return answer.json()

    # The beginning.

    async def build(self, guilds: int, members: int) -> None:
        """Create the guilds with their people and the bot, a collection on each chain, and tokens for some people."""
        mark = uuid.uuid4().hex[:6]
        self.owner = await self.call("people", username=f"owner{mark}")
        for number in range(guilds):
            people = [await self.call("people", username=f"soak{mark}{number}x{one}") for one in range(members)]
            self.people.update({person["id"]: person for person in people})
            await self._found(f"Soak {mark} {number}", tuple(person["id"] for person in people))
        self.present = set(self.people)
        for chain, standard in STANDARDS.items():
            self.contracts[chain] = await self._deploy(chain, standard)
        for chain, standard in COINS.items():
            self.coins[chain] = await self._deploy(chain, standard, decimals=DECIMALS[chain])
            self.holdings.decimals[chain, self.coins[chain]] = DECIMALS[chain]
        for chain, standard in STAKING.items():
            self.staking[chain] = await self._deploy(chain, standard)
        await self.chains_go_on()
        for who in sorted(self.people):
            for chain in self.random.sample(sorted(STANDARDS), self.random.randint(0, 2)):
                await self.mint(chain, self.address(who, chain))
            for chain in self.random.sample(sorted(COINS), self.random.randint(0, 2)):
                await self.pay(chain, self.address(who, chain))
            for chain in self.random.sample(sorted(STAKING), self.random.randint(0, 1)):
                await self.stake(chain, self.address(who, chain))

    async def _deploy(self, chain: str, standard: str, **more: Any) -> str:
        slug = f"soak-{uuid.uuid4().hex}"
        made = await self.call(f"chains/{chain}/deploy", standard=standard, name=slug[:11], slug=slug, **more)
        return made["contract"]

    async def chains_go_on(self) -> None:
        """Make as many blocks as settle the earlier state: the chains of the world never stop."""
        for chain in STANDARDS:
            if chain != "solana":
                await self.call(f"chains/{chain}/mine", blocks=str(SETTLED_BLOCKS))

    async def _found(self, name: str, members: tuple[str, ...]) -> None:
        owner = self.owner["id"]
        made = await self.call("guilds", action="create", guild=name, owner=owner, members=list(members))
        await self.call("guilds", action="add_bot", guild=name)
        shown = next(guild for guild in await self.shown() if guild["id"] == made["id"])
        roles = {role["name"]: role["id"] for role in shown["roles"] if role["name"] in ROLES}
        self.guilds.append(Guild(name, made["id"], members, roles))

    async def end(self) -> None:
        """Remove the bot from the guilds, so that later seeds on the same machine sweep only their own."""
        for guild in self.guilds:
            await self.call("guilds", action="kick_bot", guild=guild.name)

    async def meet(self) -> None:
        """Wait until the bot has stored the guilds, and let most people prove their wallets."""
        for guild in self.guilds:
            while not guild.server_id:
                async with transaction() as db:
                    server = await guilds.server_of(db, guild.id)
                guild.server_id = (server.id or 0) if server is not None else 0
                await asyncio.sleep(0.1)
        for who in sorted(self.people):
            if self.random.random() < 0.9:
                await self.prove(who)

    async def shown(self) -> list[dict[str, Any]]:
        """Return the sandbox's guilds."""
        return (await self.control.get("/control/world")).json()["guilds"]

    async def roles_in_discord(self) -> set[Pair]:
        """Return the pairs of person and role in the guilds, as Discord shows them."""
        ours = {role for guild in self.guilds for role in guild.roles.values()}
        return {
            (member["user_id"], role)
            for guild in await self.shown()
            for member in guild["members"]
            for role in member["roles"]
            if role in ours
        }

    def guild_of(self, who: str) -> Guild:
        """Return the guild in which the person is or was a member."""
        return next(guild for guild in self.guilds if who in guild.members)

    def guild_with(self, role: str) -> Guild:
        """Return the guild that the role belongs to."""
        return next(guild for guild in self.guilds if role in guild.roles.values())

    # The true state.

    def wanted(self) -> dict[Pair, bool | None]:
        """Return for every present person and role: right, wrong, or to be left alone (a rule for it is paused)."""
        found: dict[Pair, bool | None] = {}
        for guild in self.guilds:
            for role in guild.roles.values():
                soak_rules = [soak_rule for soak_rule in self.soak_rules if soak_rule.role == role]
                for who in guild.members:
                    state = any(
                        right(soak_rule.tree, self.holdings, self.proved.get(who, {})) for soak_rule in soak_rules
                    )
                    let_be = who not in self.present or any(soak_rule.paused for soak_rule in soak_rules)
                    found[who, role] = None if let_be else state
        return found

    def right(self) -> set[Pair]:
        """Return the pairs that should exist once all is quiet."""
        return {pair for pair, state in self.wanted().items() if state}

    def _true_since(self, moment: float) -> None:
        self.timeline.note(moment, self.wanted())

    async def read_chains(self) -> Holdings:
        """Return everybody's holdings as the sandbox reports them."""
        world = (await self.control.get("/control/world")).json()
        found = Holdings(decimals=self.holdings.decimals)

        def listing(chain: str, contract: str) -> dict[str, Any]:
            return next(one for one in world["chains"][chain]["collections"] if one["contract"] == contract)

        def owned(chain: str, contract: str) -> dict[Token, str]:
            return {
                (chain, contract, token["id"]): _plain(chain, owner)
                for token in listing(chain, contract)["tokens"]
                for owner in token["owners"]
            }

        for chain, contract in self.contracts.items():
            found.owners |= owned(chain, contract)
            tokens = listing(chain, contract)["tokens"]
            found.traits |= {(chain, contract, one["id"]): one["traits"] for one in tokens if one.get("traits")}
        for chain, contract in self.staking.items():
            found.stakes |= owned(chain, contract)
        for chain, contract in self.coins.items():
            for owner, amount in listing(chain, contract)["holders"].items():
                found.amounts[chain, contract, _plain(chain, owner)] = int(amount)
        return found

    def address(self, who: str, chain: str) -> str:
        return _plain(chain, self.people[who]["wallets"][family(chain)])

    # Events on chains.

    def next_token(self) -> str:
        """Return a token id that no other call got."""
        self._tokens += 1
        return str(self._tokens)

    async def mint(self, chain: str, to: str) -> None:
        """Mint a token for an address; on base every other one is golden."""
        moment, body = time.time(), {"contract": self.contracts[chain], "to": to}
        number = self.next_token()
        made = await self.call(f"chains/{chain}/mint", token_id=number, **body)
        token = made.get("token_id", number)
        at = (chain, self.contracts[chain], token)
        self.holdings.owners[at] = to
        if chain == "base" and self.random.random() < 0.5:
            await self.call(f"chains/{chain}/traits", contract=at[1], token_id=token, traits=GOLDEN)
            self.holdings.traits[at] = GOLDEN
        self._true_since(moment)

    async def move(self, at: Token, to: str) -> None:
        """Move a token to another address."""
        moment, (chain, contract, token) = time.time(), at
        sender = {"from": self.holdings.owners[at]}
        await self.call(f"chains/{chain}/transfer", contract=contract, token_id=token, to=to, **sender)
        self.holdings.owners[at] = to
        self._true_since(moment)

    async def burn(self, at: Token) -> None:
        """Destroy a token."""
        moment, (chain, contract, token) = time.time(), at
        sender = {"from": self.holdings.owners.pop(at)}
        await self.call(f"chains/{chain}/burn", contract=contract, token_id=token, **sender)
        self.holdings.traits.pop(at, None)
        self._true_since(moment)

    async def pay(self, chain: str, to: str) -> None:
        """Mint coins for an address."""
        amount = int(Fraction(self.random.choice(COIN_AMOUNTS)) * 10 ** DECIMALS[chain])
        moment, contract = time.time(), self.coins[chain]
        await self.call(f"chains/{chain}/mint", contract=contract, to=to, amount=str(amount))
        self._adds(chain, to, amount)
        self._true_since(moment)

    async def spend(self, chain: str, sender: str, to: str | None, amount: int) -> None:
        """Move some of an address's coins to another, or destroy them."""
        moment, body = time.time(), {"contract": self.coins[chain], "from": sender, "amount": str(amount)}
        if to is None:
            await self.call(f"chains/{chain}/burn", **body)
        else:
            await self.call(f"chains/{chain}/transfer", **body, to=to)
            self._adds(chain, to, amount)
        self._adds(chain, sender, -amount)
        self._true_since(moment)

    def _adds(self, chain: str, address: str, amount: int) -> None:
        at = (chain, self.coins[chain], address)
        self.holdings.amounts[at] = self.holdings.amounts.get(at, 0) + amount
        if not self.holdings.amounts[at]:
            del self.holdings.amounts[at]

    async def stake(self, chain: str, who: str) -> None:
        """Stake a token of an address."""
        moment, at = time.time(), (chain, self.staking[chain], self.next_token())
        await self.call(f"chains/{chain}/stake", contract=at[1], token_id=at[2], **{"from": who})
        self.holdings.stakes[at] = who
        self._true_since(moment)

    async def unstake(self, at: Token) -> None:
        """Take a staked token back."""
        moment, (chain, contract, token) = time.time(), at
        who = {"from": self.holdings.stakes.pop(at)}
        await self.call(f"chains/{chain}/unstake", contract=contract, token_id=token, **who)
        self._true_since(moment)

    async def reorganise(self, chain: str, depth: int) -> None:
        """Undo the last blocks of a chain."""
        moment = time.time()
        await self.call(f"chains/{chain}/reorg", depth=str(depth))
        self.holdings = await self.read_chains()
        self._true_since(moment)

    # Acts of people.

    async def prove(self, who: str) -> None:
        """Sign the person in, so that Discord lists their servers, and prove both of their wallets."""
        moment = time.time()
        person = self.people[who]
        servers = [self.guild_of(who).server_id] if who in self.present else []
        async with transaction() as db:
            user_id = await ensure(db, person["id"], person["username"])
            await member_rereads.met_elsewhere(db, person["id"], person["username"], servers)
            for kind in ("evm", "solana"):
                address = self.address(who, "solana" if kind == "solana" else "base")
                db.add(Wallet(user_id=user_id, family=kind, address=address, method="opensea_bio"))
                self.proved.setdefault(who, {})[kind] = address
            await db.flush()
            await queue.mark_people(db, [person["id"]])
        self._true_since(moment)

    async def disown(self, who: str) -> None:
        """Remove the person's wallets."""
        moment = time.time()
        async with transaction() as db:
            user_id = await ensure(db, who, self.people[who]["username"])
            actor = Actor(user_id, who, self.people[who]["username"])
            for view in await wallets.list_wallets(db, actor):
                await wallets.remove(db, actor, view.id)
        self.proved.pop(who, None)
        self._true_since(moment)

    async def leave(self, who: str) -> None:
        """Let the person leave the guild; their roles are dropped."""
        self.away.append((who, time.time()))
        await self.call("members", guild=self.guild_of(who).name, user=who, action="leave")
        self.present.discard(who)
        self.away.append((who, time.time()))
        self._true_since(self.away[-2][1])

    async def join(self, who: str) -> None:
        """Let the person join, or come back."""
        moment = time.time()
        await self.call("members", guild=self.guild_of(who).name, user=who, action="join")
        self.present.add(who)
        self._true_since(moment)

    # Acts of the admin. A faulty provider refuses a change; then nothing has changed.

    async def actor(self) -> Actor:
        async with transaction() as db:
            user = await db.get_one(User, await ensure(db, self.owner["id"], self.owner["username"]))
            return Actor(user.id or 0, user.discord_id, user.username)

    async def make(self, soak_rule: SoakRule) -> bool:
        """Create a rule; return whether it was created."""
        try:
            await self._create(soak_rule)
        except HoldfastError:
            return False
        return True

    async def make_first(self, soak_rule: SoakRule) -> None:
        """Create a rule while nothing is faulty; raises HoldfastError if it is refused."""
        deadline = time.monotonic() + REFUSED_SECONDS
        while True:
            try:
                return await self._create(soak_rule)
            except Retryable:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(1)

    async def _create(self, soak_rule: SoakRule) -> None:
        guild = self.guild_with(soak_rule.role)
        draft = RuleDraft(
            rule_name="A rule of the soak", contract_address="", blockchain="", verification_type="basic",
            role_id=soak_rule.role, server_id=guild.server_id, expression=soak_rule.tree,
        )  # fmt: skip
        actor, moment = await self.actor(), time.time()
        async with transaction() as db:
            view = await rules.create(db, gateways(), actor, draft)
        soak_rule.id = view.id
        self.soak_rules.append(soak_rule)
        self._true_since(moment)

    async def change(self, soak_rule: SoakRule, changes: Mapping[str, Any]) -> bool:
        """Change a rule's condition or state; return whether it was changed."""
        actor, moment = await self.actor(), time.time()
        try:
            async with transaction() as db:
                await rules.change(db, gateways(), actor, soak_rule.id, changes)
        except HoldfastError:
            return False
        soak_rule.tree = changes.get("expression", soak_rule.tree)
        soak_rule.paused = changes.get("state", "paused" if soak_rule.paused else "active") == "paused"
        self._true_since(moment)
        return True

    async def delete(self, soak_rule: SoakRule) -> bool:
        """Delete a rule; return whether it was deleted."""
        actor, moment = await self.actor(), time.time()
        try:
            async with transaction() as db:
                await rules.delete(db, gateways(), actor, soak_rule.id)
        except HoldfastError:
            return False
        self.soak_rules.remove(soak_rule)
        self._true_since(moment)
        return True

    async def approve(self) -> None:
        """Approve the removals that the breaker holds back."""
        actor = await self.actor()
        for guild in self.guilds:
            async with transaction() as db:
                await breaker.approve(db, guild.server_id, actor.discord_id)


async def database_answers() -> None:
    """Wait until the database accepts statements again."""
    while True:
        try:
            async with transaction() as db:
                await guilds.server_of(db, "0")
        except DBAPIError:
            await asyncio.sleep(0.1)
        else:
            return
