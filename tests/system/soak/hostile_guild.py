"""The hostile guild: its contract, members and rules, and its repeated attacks on the chain."""

import asyncio
import uuid
from typing import Any

import httpx
from eth_account import Account

from gateways import gateways
from models import Wallet, transaction
from services.accounts.users import ensure
from services.core import queue
from services.rules import rules
from services.rules.draft import RuleDraft
from services.triggers import gateway_events
from tests.support import hostile_contract
from tests.system.soak.world import World

CHAIN = "base"
FLOOD_LOGS = 1_200
"""As many as the gas limit of one of the control's transactions allows."""
CONDITIONS = 40
MEMBERS, TOKENS = 2, 5


class HostileTenant:
    """A guild in the same product and on the same chain as the world's guilds, which must not be affected by it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.contract = ""
        self.guild = ""

    async def move_in(self) -> None:
        """Deploy its contract, create its guild and members, and make its rules."""
        world, mark = self.world, uuid.uuid4().hex[:6]
        people = [await world.call("people", username=f"evil{mark}{one}") for one in range(MEMBERS)]
        self.guild = name = f"Evil {mark}"
        members = [person["id"] for person in people]
        made = await world.call("guilds", action="create", guild=name, owner=world.owner["id"], members=members)
        await world.call("guilds", action="add_bot", guild=name)
        shown = next(one for one in await world.shown() if one["id"] == made["id"])
        roles = {role["name"]: role["id"] for role in shown["roles"]}
        deployer = Deployer(world.control, CHAIN)
        await deployer.fund(world.owner["wallets"]["evm"])
        self.contract = await deployer.deploy(hostile_contract.RUNTIME)
        server_id = await self._server(made["id"])
        for person in people:
            await self._equip(person)
        world.holdings = await world.read_chains()
        await self._make_rules(server_id, roles)

    async def end(self) -> None:
        """Remove the bot from its guild."""
        await self.world.call("guilds", action="kick_bot", guild=self.guild)

    async def _server(self, guild_id: str) -> int:
        """Return the server's id, once the bot has stored the guild."""
        while True:
            async with transaction() as db:
                server = await gateway_events.server_of(db, guild_id)
                if server is not None and server.id:
                    return server.id
            await asyncio.sleep(0.1)

    async def _equip(self, person: dict[str, Any]) -> None:
        """Add tokens whose metadata are at a host that is often slow, and a proved wallet."""
        address: str = person["wallets"]["evm"]
        for _ in range(TOKENS):
            token = {"contract": self.world.contracts[CHAIN], "token_id": self.world.next_token(), "to": address}
            await self.world.call(f"chains/{CHAIN}/mint", **token)
        async with transaction() as db:
            user_id = await ensure(db, person["id"], person["username"])
            db.add(Wallet(user_id=user_id, family="evm", address=address.lower(), method="opensea_bio"))
            await db.flush()
            await queue.mark_people(db, [person["id"]])

    async def _make_rules(self, server_id: int, roles: dict[str, str]) -> None:
        shared = self.world.contracts[CHAIN]
        trees: dict[str, dict[str, Any]] = {
            "Holder": {"all": [_with_trait(self.contract, f"Gold {number}") for number in range(CONDITIONS)]},
            "Collector": _with_trait(shared, "Gold"),
            "Whale": {"type": "basic", "chain": CHAIN, "contract": self.contract, "minTokens": 3},
        }
        for role, tree in trees.items():
            draft = RuleDraft(
                rule_name="Harm", contract_address="", blockchain="", verification_type="basic", role_id=roles[role],
                server_id=server_id, expression=tree,
            )  # fmt: skip
            actor = await self.world.actor()
            async with transaction() as db:
                await rules.create(db, gateways(), actor, draft)

    async def harm(self) -> None:
        """Fill a block with logs, and write a malformed one."""
        sender = self.world.owner["wallets"]["evm"]
        for data in (f"0x{FLOOD_LOGS:064x}", "0x"):
            body = {"from": sender, "to": self.contract, "value_wei": "0", "data": data}
            await self.world.call(f"chains/{CHAIN}/send", **body)


def _with_trait(contract: str, value: str) -> dict[str, Any]:
    trait = {"type": "Fur", "value": value}
    return {"type": "trait", "chain": CHAIN, "contract": contract, "trait": trait, "minTokens": 1}


class Deployer:
    """An account that deploys code by ordinary transactions."""

    def __init__(self, control: httpx.AsyncClient, chain: str) -> None:
        self.control, self.chain = control, chain
        self.account: Any = Account.create()
        self.nonce = 0

    async def fund(self, sender: str) -> None:
        """Give the account a coin for fees."""
        body = {"from": sender, "to": self.account.address, "value_wei": str(10**18)}
        answer = await self.control.post(f"/control/chains/{self.chain}/send", json=body)
        assert answer.status_code == 200, answer.text

    async def deploy(self, runtime: str) -> str:
        """Deploy code and return its address."""
        chain_id = int(str(await self._rpc("eth_chainId")), 16)
        fields = {"nonce": self.nonce, "gas": 1_000_000, "gasPrice": 10**11, "value": 0, "chainId": chain_id}
        signed = self.account.sign_transaction(fields | {"data": "0x" + hostile_contract.creation(runtime).hex()})
        name = await self._rpc("eth_sendRawTransaction", "0x" + bytes(signed.raw_transaction).hex())
        self.nonce += 1
        receipt = await self._rpc("eth_getTransactionReceipt", name)
        assert receipt["status"] == "0x1", receipt
        return str(receipt["contractAddress"]).lower()

    async def _rpc(self, method: str, *params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = (await self.control.post(f"/rpc/{self.chain}", json=body)).json()
        assert "error" not in answer, answer
        return answer["result"]
