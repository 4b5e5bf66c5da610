"""A fresh guild with fresh people in the sandbox, and the rows that the bot would store about it."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from gateways import close_gateways
from models import Rule, Wallet, transaction
from services.accounts.users import ensure
from services.core import queue
from services.guilds import members
from services.guilds.members import MemberFacts
from services.rules.expression import Requirement, to_document
from services.triggers import gateway_events
from services.triggers.gateway_events import GuildFacts, RoleFacts
from tests.sandbox.control import SandboxControl

BOTH = ("rpc:base", "rpc2:base")
"""The nodes of Base, the chain of a town unless another is named."""
STRANGER = "0x" + "5e" * 20


class Town:
    """One guild, a collection on a chain (Base unless another is named), and what people do there."""

    def __init__(self, control: SandboxControl, chain: str = "base") -> None:
        self.control = control
        self.chain = chain
        self.name = f"Town {uuid.uuid4().hex[:8]}"
        self.people: dict[str, dict[str, Any]] = {}
        self.contract = ""
        self.server_id = 0
        self._tokens = 0

    async def call(self, path: str, /, **body: Any) -> dict[str, Any]:
        answer = await self.control.post(f"/control/{path}", json=body)
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text}"
        return answer.json()

    async def several(self, chain: str, /, *acts: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the chain's answers to these acts, which are confirmed together."""
        return (await self.call(f"chains/{chain}/several", acts=acts))["done"]

    async def build(self, *names: str) -> None:
        """Create the guild with these people (the first one owns it), add the bot, and create an empty collection."""
        for name in names:
            unique = f"{name}{uuid.uuid4().hex[:10]}"
            self.people[name] = await self.call("people", username=unique)
        owner, *others = (person["id"] for person in self.people.values())
        await self.call("guilds", action="create", guild=self.name, owner=owner, members=others)
        await self.call("guilds", action="add_bot", guild=self.name)
        made = await self.call(f"chains/{self.chain}/deploy", standard="ERC721", name=self.name, slug=uuid.uuid4().hex)
        self.contract = made["contract"]
        await self.see()

    async def join(self, *names: str) -> None:
        """Let new people join, and store what the bot would report."""
        for name in names:
            self.people[name] = await self.call("people", username=f"{name}{uuid.uuid4().hex[:10]}")
            await self.call("members", guild=self.name, user=self.people[name]["id"], action="join")
        await self.see()

    async def leave(self) -> None:
        """Remove the bot from the guild, so that bots started later do not read it."""
        answer = await self.control.post("/control/guilds", json={"guild": self.name, "action": "kick_bot"})
        assert answer.status_code in {200, 404}, answer.text

    async def guild(self) -> dict[str, Any]:
        return (await self.control.get(f"/control/guilds/{self.name}")).json()

    async def role(self, name: str) -> str:
        return _role(await self.guild(), name)

    async def has(self, who: str, role: str) -> bool:
        """Return whether Discord shows the role on the person."""
        guild = await self.guild()
        wanted = _role(guild, role)
        return any(
            wanted in member["roles"] for member in guild["members"] if member["user_id"] == self.people[who]["id"]
        )

    async def see(self, *, without: str | None = None, bot: str | None = None) -> None:
        """Store what the bot would report about the guild now.

        The member `without` is left out of the list, and the member `bot` is marked as a bot.
        """
        left_out = self.people[without]["id"] if without else None
        marked = self.people[bot]["id"] if bot else None
        guild = await self.guild()
        own = next(role for role in guild["roles"] if role["managed"])
        bot_id = next(member["user_id"] for member in guild["members"] if own["id"] in member["roles"])
        facts = GuildFacts(
            id=guild["id"], name=guild["name"], icon=None, owner_id=guild["owner_id"], bot_id=bot_id,
            roles=tuple(
                RoleFacts(role["id"], role["name"], role["position"], role["managed"], int(role["permissions"]))
                for role in guild["roles"]
            ),
            members=tuple(
                MemberFacts(
                    member["user_id"], member["username"], frozenset(member["roles"]), member["pending"],
                    bot=member["user_id"] in {bot_id, marked},
                )
                for member in guild["members"]
                if member["user_id"] != left_out
            ),
        )  # fmt: skip
        async with transaction() as db:
            began = await gateway_events.list_begins(db, facts.id)
            await gateway_events.guild_available(db, facts)
            server = await gateway_events.server_of(db, facts.id)
            assert server is not None
            # Everybody in the town is stored, as if they had used the bot.
            await members.listed(db, server.id or 0, facts.members)
            await gateway_events.list_ended(db, facts.id, began)
            await gateway_events.who_runs(db, facts)
            server = await gateway_events.server_of(db, guild["id"])
            assert server is not None
            self.server_id = server.id or 0

    async def rule(self, role: str, least: int = 1, **fields: Any) -> int:
        """Create a rule for the town's collection, queue everybody, and return its id."""
        leaf = Requirement("basic", self.chain, self.contract, least)
        async with transaction() as db:
            row = Rule(
                server_id=self.server_id, name="A rule", role_id=await self.role(role), role_name=role,
                verification_type="basic", contract_address=self.contract, blockchain=self.chain, created_by="0",
                min_tokens=least, expression=to_document(leaf), **fields,
            )  # fmt: skip
            db.add(row)
            await db.flush()
            await queue.mark_server(db, self.server_id, queue.CHANGED)
            return row.id or 0

    async def change(self, rule_id: int, **fields: Any) -> None:
        """Change a rule's row as an admin's call does."""
        async with transaction() as db:
            row = await db.get_one(Rule, rule_id)
            for name, value in fields.items():
                setattr(row, name, value)
            db.add(row)
            await queue.mark_server(db, self.server_id, queue.CHANGED)

    async def prove(self, who: str) -> None:
        """Prove the person's wallet."""
        person = self.people[who]
        async with transaction() as db:
            user_id = await ensure(db, person["id"], person["username"])
            db.add(Wallet(user_id=user_id, family="evm", address=self.wallet(who), method="opensea_bio"))
            await db.flush()
            await queue.mark_people(db, [person["id"]])

    def wallet(self, who: str) -> str:
        return self.people[who]["wallets"]["evm"].lower()

    async def buys(self, who: str) -> str:
        """Mint a token to the person and return its id."""
        self._tokens += 1
        await self.call(
            f"chains/{self.chain}/mint", contract=self.contract, token_id=str(self._tokens), to=self.wallet(who)
        )
        return str(self._tokens)

    async def all_buy(self, *names: str) -> None:
        """Mint a token to each of these people, confirmed together: each block costs the node work."""
        acts = [
            {"action": "mint", "contract": self.contract, "token_id": str(token), "to": self.wallet(who)}
            for token, who in enumerate(names, self._tokens + 1)
        ]
        await self.several(self.chain, *acts)
        self._tokens += len(names)

    async def sells(self, token: str) -> None:
        await self.call(f"chains/{self.chain}/transfer", contract=self.contract, token_id=token, to=STRANGER)

    async def look(self) -> None:
        """Make everybody due, as a sweep does."""
        async with transaction() as db:
            await queue.mark_server(db, self.server_id, queue.SWEPT)

    async def break_(self, kind: str, *targets: str) -> None:
        for target in targets:
            await self.call("faults", target=target, kind=kind, seconds=300)

    async def break_anew(self, kind: str, *targets: str) -> None:
        """Let these have this fault alone; new gateways meet it, which do not rest after an earlier one."""
        await self.heal()
        await close_gateways()
        await self.break_(kind, *targets)

    async def heal(self) -> None:
        await self.control.delete("/control/faults")

    async def mark(self) -> int:
        """Return the current end of the request log."""
        return (await self.control.get("/control/requests", params={"since": 2**31})).json()["next"]

    async def requests(self, since: int, target: str) -> list[dict[str, Any]]:
        """Return the requests that reached a provider since then."""
        answer = await self.control.get("/control/requests", params={"since": since})
        return [request for request in answer.json()["requests"] if request["target"] == target]

    async def writes(self, since: int) -> list[str]:
        """Return the methods of the role writes in this town since then: `PUT` and `DELETE`."""
        guild = (await self.guild())["id"]
        return [
            request["method"]
            for request in await self.requests(since, "discord")
            if request["method"] in {"PUT", "DELETE"} and f"/guilds/{guild}/members/" in request["path"]
        ]


@asynccontextmanager
async def a_town(sandbox_url: str, *names: str, chain: str = "base") -> AsyncIterator[Town]:
    """A fresh guild with these people, the first of whom owns it; faults are cleared before and after."""
    async with SandboxControl(sandbox_url) as control:
        made = Town(control, chain)
        await made.heal()
        await made.build(*names)
        yield made
        await made.heal()
        await made.leave()


def _role(guild: dict[str, Any], name: str) -> str:
    return next(role["id"] for role in guild["roles"] if role["name"] == name)


async def until(condition: Callable[[], Awaitable[bool]], seconds: float = 60) -> None:
    """Wait until the condition holds, and fail after so many seconds."""
    began = time.monotonic()
    while not await condition():
        waited = time.monotonic() - began
        assert waited < seconds, "it did not come about in time"
        # Each check asks the sandbox, so a slow condition is checked less often.
        await asyncio.sleep(min(0.05 + waited / 20, 0.25))
