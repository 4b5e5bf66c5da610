"""People of the sandbox who send from their own wallets, and the calls by which they prove them."""

import hashlib
import uuid
from typing import Any

from eth_account import Account

from gateways import gateways
from models import transaction
from services.accounts import users
from services.core.actors import Actor
from services.wallets import open_challenges, wallets
from tests.sandbox.control import SandboxControl


class Walker:
    """One fresh person with an account of ours, and their wallet on all chains."""

    def __init__(self, control: SandboxControl, person: dict[str, Any], user_id: int) -> None:
        self.control = control
        self.actor = Actor(user_id, person["id"], person["username"])
        self.address: str = person["wallets"]["evm"].lower()
        self.solana: str = person["wallets"]["solana"]

    @classmethod
    async def new(cls, control: SandboxControl) -> "Walker":
        answer = await control.post("/control/people", json={"username": f"w{uuid.uuid4().hex[:10]}"})
        person = answer.json()
        async with transaction() as db:
            return cls(control, person, await users.ensure(db, person["id"], person["username"]))

    # What they do on the chains

    async def tell(self, path: str, **body: Any) -> dict[str, Any]:
        answer = await self.control.post(f"/control/{path}", json=body)
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text}"
        return answer.json()

    async def sends(self, chain: str, value: int | str = 0, *, data: str = "0x", **more: str) -> str:
        """Send a transaction to themselves (or as given) and have it confirmed; return its hash."""
        body = {"from": self.address, "to": self.address, "value_wei": str(value), "data": data, **more}
        return (await self.tell(f"chains/{chain}/send", **body))["hash"]

    async def signs(self, chain: str, value: int, **fields: Any) -> str:
        """Sign a transaction to themselves and send it to the node, which mines no blocks on top; return its hash."""
        account = self._account()
        signed = account.sign_transaction(
            {
                "to": account.address, "value": value, "gas": 200_000, "nonce": await self._nonce(chain),
                "chainId": await self._chain_id(chain), "maxFeePerGas": 10**10, "maxPriorityFeePerGas": 10**9, **fields,
            }
        )  # fmt: skip
        return await self.asks(chain, "eth_sendRawTransaction", "0x" + signed.raw_transaction.hex())

    async def lets_act(self, chain: str, contract: str) -> None:
        """Let the contract act for their account on the chain from now on (EIP-7702)."""
        leave = {"chainId": await self._chain_id(chain), "address": contract, "nonce": await self._nonce(chain) + 1}
        signed = self._account().sign_authorization(leave)
        await self.signs(chain, 0, authorizationList=[signed])

    def _account(self) -> Any:
        account = Account.from_key(hashlib.sha256(f"sandbox wallet of {self.actor.discord_id}".encode()).digest())
        assert account.address.lower() == self.address
        return account

    async def _nonce(self, chain: str) -> int:
        return int(await self.asks(chain, "eth_getTransactionCount", self.address, "latest"), 16)

    async def _chain_id(self, chain: str) -> int:
        return int(await self.asks(chain, "eth_chainId"), 16)

    async def asks(self, chain: str, method: str, *params: Any) -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = (await self.control.post(f"/rpc/{chain}", json=body)).json()
        assert "error" not in answer, answer
        return answer["result"]

    async def mines(self, chain: str, blocks: int) -> None:
        await self.tell(f"chains/{chain}/mine", blocks=str(blocks))

    # What they do with us

    async def challenge(self, address: str = "") -> wallets.ChallengeView:
        """Return what they are asked to send, and follow their wallet from now on."""
        async with transaction() as db:
            view = await wallets.challenge(db, gateways(), self.actor, address or self.address)
        async with transaction() as db:
            await wallets.follow(db, gateways(), self.actor, view.address)
        return view

    async def amount(self) -> int:
        return int((await self.challenge()).chains[0].value_wei)

    async def verify(self, pasted: str = "", *, address: str = "", method: str = "transaction") -> wallets.Verdict:
        async with transaction() as db:
            return await wallets.verify(db, gateways(), self.actor, address or self.address, method, pasted)

    async def check(self) -> wallets.Verdict:
        async with transaction() as db:
            return await wallets.check_again(db, gateways(), self.actor, self.address, "transaction")

    async def holds(self) -> list[str]:
        async with transaction() as db:
            return [wallet.wallet_address for wallet in await wallets.list_wallets(db, self.actor)]


async def clock_looks() -> int:
    """Let the clock look once at all open challenges, and return how many these were."""
    from sqlalchemy import text

    async with transaction() as db:
        await open_challenges.prepare(db)
        await db.execute(text("UPDATE schedule SET next_at = now() WHERE name LIKE 'challenges.%'"))
    checks = open_challenges.ChainChecks()
    found = await open_challenges.tick(gateways(), checks)
    await checks.ended()
    return found
