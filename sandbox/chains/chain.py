"""One EVM chain: its node, its journal, and every way in which the sandbox moves it forward."""

import asyncio
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

import orjson

from sandbox.base.chain_table import KEEPER, Facts
from sandbox.base.journal import Journal
from sandbox.base.refusal import Refusal
from sandbox.chains import abi, coins, ledger
from sandbox.chains.anvil import Anvil, NodeError
from sandbox.chains.coins import Coin
from sandbox.chains.plans import UNLIMITED, Plan
from sandbox.chains.seeds import Collection, created, seeded_accounts, seeded_collections
from sandbox.contracts import accounts, staking
from sandbox.contracts.accounts import SmartAccount
from sandbox.contracts.staking import Staking

# Where every chain starts: high enough that state can be older than 128 blocks from the first minute.
FIRST_BLOCK = 1_000
# Head numbers are promised to the disk in steps, so that a block costs no write.
RESERVED_BLOCKS = 64
HEADS_KEPT = 5_000
CALL_GAS = 3_000_000
BULK_GAS = 900_000_000
# What an impersonated sender is topped up to when it has less: enough for fees, so that what people have of the chain's
# own coin stays what they were sent. The keeper pays for bulk.
FUNDS, KEEPER_FUNDS = 10**17, 10**20

Record = dict[str, Any]
T = TypeVar("T")

_buried_later: ContextVar[bool] = ContextVar("_buried_later", default=False)


class Chain:
    """`records` is what happened since the seeds, oldest first; `collections` and `coins` follow from it. Hold `lock`
    to move the chain. Strangers get of the node what the `plan` gives; the sandbox itself gets everything."""

    def __init__(self, facts: Facts, url: str, data: Path, binary: Path, plan: Plan = UNLIMITED) -> None:
        self.facts = facts
        self.plan = plan
        self.url = url
        self.node = Anvil(binary, data / f"{facts.name}-node", facts.chain_id, facts.confirmations)
        self.journal = Journal(data / f"{facts.name}.jsonl")
        self.lock = asyncio.Lock()
        self.records: list[Record] = []
        self.collections: dict[str, Collection] = {}
        self.staking: dict[str, Staking] = {}
        self.coins: dict[str, Coin] = {}
        self.head = 0
        self._head_time = 0.0
        self._heads: deque[tuple[float, int]] = deque(maxlen=HEADS_KEPT)
        self._head_file = data / f"{facts.name}.head"
        self._reserved = int(self._head_file.read_text()) if self._head_file.exists() else 0
        self._waiting: list[str] = []
        self._ledger = ledger.Ownership()
        # A collection that a reset takes away lost its tokens before, in logs that are still to be read.
        self._ever_listed: set[str] = set()
        self._reading = asyncio.Lock()

    # Heads

    @property
    def reserved(self) -> int:
        """No block above this number was ever shown to anybody; 0 on a fresh chain."""
        return self._reserved

    def reserve(self, head: int) -> None:
        """Promise to the disk that the chain may be seen at `head`, before it is."""
        if head > self._reserved:
            self._reserved = head + RESERVED_BLOCKS
            fresh = self._head_file.with_suffix(".fresh")
            fresh.write_text(str(self._reserved))
            os.replace(fresh, self._head_file)

    def head_at(self, moment: float) -> int:
        """The head at a moment of the monotonic clock, as far back as remembered."""
        known = [head for since, head in self._heads if since <= moment]
        return known[-1] if known else self._heads[0][1]

    async def note_head(self) -> int:
        """Ask the node for its head and remember when it was seen."""
        self.head = int(await self.node.call("eth_blockNumber"), 16)
        self._head_time = time.monotonic()
        self._heads.append((self._head_time, self.head))
        return self.head

    async def mine(self, blocks: int) -> None:
        """Mine empty blocks that all carry the present time."""
        if blocks > 0:
            self.reserve(self.head + blocks)
            await self.node.call("anvil_mine", hex(blocks), "0x0")
        await self.note_head()

    async def confirm(self) -> None:
        """Bury the head under the chain's confirmations, unless `confirmed_together` does so later."""
        if not _buried_later.get():
            await self.mine(self.facts.confirmations)

    @asynccontextmanager
    async def confirmed_together(self) -> AsyncIterator[None]:
        """Mine the confirmations of all that this task does here once, at the end; a node computes for each block."""
        before = _buried_later.set(True)
        try:
            yield
        finally:
            _buried_later.reset(before)
            async with self.lock:
                await self.confirm()

    async def freshen(self) -> None:
        """Mine one block if the head would look stale to somebody who asks for it."""
        if time.monotonic() - self._head_time > self.facts.block_seconds:
            async with self.lock:
                if time.monotonic() - self._head_time > self.facts.block_seconds:
                    await self.mine(1)

    # Transactions

    async def transact(self, record: Record) -> Record:
        """Do what somebody asked for: try it, send it, write it down, bury it under confirmations. Adds `hash`,
        `block`, `time` and, for a deployment, `contract` to the record. Raises Refusal(409) with the reason when it
        would revert."""
        sender = record["from"]
        record["gas"] = self._gas(sender)
        await self.fund(sender, int(record.get("value", "0")))
        try:
            await self.node.call("eth_call", self._request(record), "latest")
        except NodeError as refused:
            raise Refusal(409, f"The chain refuses this: {abi.reason(refused.error)}") from refused
        self.reserve(self.head + 1)
        try:
            receipt = await self.sent(record)
        except NodeError as refused:
            raise Refusal(409, f"The chain refuses this: {abi.reason(refused.error)}") from refused
        record |= {"hash": receipt["transactionHash"], "block": int(receipt["blockNumber"], 16)}
        record["time"] = int(time.time())
        if receipt.get("contractAddress"):
            record["contract"] = receipt["contractAddress"].lower()
        self.keep(record)
        await self.note_head()
        await self.confirm()
        return record

    async def fund(self, account: str, value: int) -> None:
        """See to it that an account can pay."""
        funds = KEEPER_FUNDS if account == KEEPER else FUNDS
        if int(await self.node.call("eth_getBalance", account, "latest"), 16) < value + funds // 2:
            await self.node.call("anvil_setBalance", account, hex(value + funds))

    async def answer(self, to: str, data: str) -> str:
        """What a contract answers to a call at the head. Raises NodeError."""
        return await self.node.call("eth_call", {"to": to, "data": data}, "latest")

    async def sent(self, record: Record) -> dict[str, Any]:
        """Send a recorded transaction and return the receipt; it must succeed."""
        if record["kind"] == "raw":
            receipt = await self.node.call("eth_sendRawTransactionSync", record["raw"])
        else:
            receipt = await self.node.call("eth_sendTransactionSync", self._request(record))
        if receipt["status"] != "0x1" and record["kind"] != "raw":
            raise Refusal(409, "The transaction reverted.")
        return receipt

    async def submit(self, record: Record) -> None:
        """Put a recorded transaction into the pool without waiting for a block."""
        if record["kind"] == "raw":
            await self.node.call("eth_sendRawTransaction", record["raw"])
        else:
            await self.node.call("eth_sendTransaction", self._request(record))

    async def send_raw(self, request: bytes, raw: str) -> bytes:
        """What a stranger sends over /rpc: the node's own answer; what was mined is written down."""
        async with self.lock:
            self.reserve(self.head + 1)
            answer = await self.node.post(request)
            parsed = orjson.loads(answer)
            if "result" in parsed:
                self._waiting.append(raw)
                await self._keep_mined(parsed["result"])
        return answer

    async def _keep_mined(self, newest: str) -> None:
        """The node mines a moment after it answers, and a filled nonce gap lets earlier transactions go too."""
        deadline = time.monotonic() + 1.0
        while await self.node.call("eth_getTransactionReceipt", newest) is None and time.monotonic() < deadline:
            queued = await self.node.call("txpool_status")
            if int(queued["queued"], 16):
                break
            await asyncio.sleep(0.005)
        still: list[str] = []
        for raw in self._waiting:
            named = await self.node.call("web3_sha3", raw)
            receipt = await self.node.call("eth_getTransactionReceipt", named)
            if receipt is None:
                still.append(raw)
                continue
            block = int(receipt["blockNumber"], 16)
            self.keep(
                {"kind": "raw", "raw": raw, "from": receipt["from"].lower(), "block": block, "time": int(time.time())}
            )
        self._waiting = still
        await self.note_head()

    def _request(self, record: Record) -> dict[str, Any]:
        request = {"from": record["from"], "data": record.get("data", "0x")}
        request["gas"] = hex(record.get("gas", self._gas(record["from"])))
        if record.get("to"):
            request["to"] = record["to"]
        request["value"] = hex(int(record.get("value", "0")))
        return request

    def _gas(self, sender: str) -> int:
        """Enough, and a little different at every head: after a reset somebody may ask for the very same transaction
        with the same nonce again, and two transactions never have one hash."""
        return (BULK_GAS if sender == KEEPER else CALL_GAS) + self.head % 100_000

    # What is known

    def keep(self, record: Record) -> None:
        """Write a record down and let it take effect on the listed collections."""
        self.journal.append(record)
        self.records.append(record)
        self.list_collections()

    def list_collections(self) -> None:
        """Work out the collections, traits, staking contracts and coins from the seeds and the records."""
        self.collections = self.collections_at()
        self.staking = self._listed(self.staking_at_start(), "staking", Staking)
        self.coins = self._listed(coins.seeded_coins(self.facts), "coin", Coin)
        self._ever_listed |= self.collections.keys()

    def collections_at(self, block: int | None = None) -> dict[str, Collection]:
        """Contract → collection with its traits, now or as of a block."""
        listed = seeded_collections(self.facts)
        for record in self.records:
            if block is not None and record["block"] > block:
                break
            if record["kind"] == "reset":
                listed = seeded_collections(self.facts)
            elif record["kind"] == "traits":
                listed[record["contract"]].traits[record["token"]] = record["traits"]
            elif "collection" in record:
                listed[record["contract"]] = Collection(record["contract"], **record["collection"])
        return listed

    def staking_at_start(self) -> dict[str, Staking]:
        """Contract → staking contract, on a fresh chain."""
        sender = staking.deployer(self.facts.name)
        return staking.at_start([created(sender, nonce) for nonce in range(len(staking.KINDS))])

    async def stakes(self, one: Staking) -> dict[int, str]:
        """Token id → lower-case address of who has staked it now."""
        return abi.stakes_in(await self.answer(one.contract, abi.call(one.source, "stakes()")))

    async def amounts(self, coin: Coin) -> dict[str, int]:
        """Lower-case address → base units of a coin that it has now."""
        return coins.holdings_of(await self.answer(coin.contract, abi.call(coins.CONTRACT, "holdings()")))

    def accounts(self) -> dict[str, SmartAccount]:
        """Address → contract account, from the seeds and the records."""
        return self._listed(seeded_accounts(), "account", SmartAccount)

    def since_reset(self) -> list[Record]:
        """The records after the last reset."""
        resets = [at for at, record in enumerate(self.records) if record["kind"] == "reset"]
        return self.records[resets[-1] + 1 :] if resets else self.records

    def _listed(self, at_start: dict[str, T], name: str, kind: Callable[..., T]) -> dict[str, T]:
        """Contract → what the seeds have, and what the records' entries of this name have deployed since."""
        later = (record for record in self.since_reset() if name in record)
        return at_start | {record["contract"]: kind(record["contract"], **record[name]) for record in later}

    def smart_account(self, address: str) -> SmartAccount:
        """A listed contract account. Raises Refusal(404)."""
        found = self.accounts().get(address)
        if found is None:
            raise Refusal(404, f"There is no Safe and no account of ERC-4337 at {address} on {self.facts.name}.")
        return found

    async def owners(self, block: int | None = None) -> dict[str, ledger.Owners]:
        """Contract → owners for every listed collection, now or as of a block."""
        if block is not None:
            then = ledger.Ownership()
            await self._read_logs(then, block)
            return {contract: then.of(contract) for contract in self.collections}
        async with self._reading:
            now = self._ledger
            await self._read_logs(now, int(await self.node.call("eth_blockNumber"), 16))
        return {contract: now.of(contract) for contract in self.collections}

    async def _read_logs(self, known: ledger.Ownership, block: int) -> None:
        """Bring a ledger up to a block; what it knows already is not read again."""
        if block > known.block:
            asked = {"fromBlock": hex(known.block + 1), "toBlock": hex(block), "topics": [ledger.TOPICS]}
            known.read(await self.node.call("eth_getLogs", {**asked, "address": sorted(self._ever_listed)}), block)

    def forget_owners(self) -> None:
        """Blocks were replaced: who owns what has to be read from the beginning."""
        self._ledger = ledger.Ownership()

    async def world(self) -> dict[str, Any]:
        """This chain's part of GET /control/world."""
        owners = await self.owners()
        coins_listed, places = list(self.coins.values()), list(self.staking.values())
        amounts = await asyncio.gather(*map(self.amounts, coins_listed))
        stakes = await asyncio.gather(*map(self.stakes, places))
        return {
            "rpc": f"{self.url}/rpc/{self.facts.name}",
            "chain_id": self.facts.chain_id,
            "block": self.head,
            "collections": [
                {
                    "contract": collection.contract,
                    "name": collection.name,
                    "slug": collection.slug,
                    "standard": collection.standard,
                    "tokens": [
                        {
                            "id": str(token),
                            "owners": {holder: str(amount) for holder, amount in holders.items()},
                            "traits": collection.traits.get(str(token), {}),
                        }
                        for token, holders in owners[collection.contract].items()
                    ],
                }
                for collection in self.collections.values()
            ]
            + [coin.entry(holders) for coin, holders in zip(coins_listed, amounts, strict=True)]
            + [one.entry(staked) for one, staked in zip(places, stakes, strict=True)],
            "entry_point": accounts.ENTRY_POINT,
            "accounts": [account.view() for account in self.accounts().values()],
        }

    def staking_contract(self, contract: str) -> Staking:
        """A listed staking contract by contract, slug or name. Raises Refusal(404)."""
        for candidate in self.staking.values():
            if contract.lower() in (candidate.contract, candidate.slug, candidate.name.lower()):
                return candidate
        raise Refusal(404, f"There is no staking contract {contract} on {self.facts.name}.")

    def coin(self, contract: str) -> Coin | None:
        """A listed coin by contract, slug, symbol or name, if there is one."""
        for candidate in self.coins.values():
            names = (candidate.contract, candidate.slug, candidate.symbol.lower(), candidate.name.lower())
            if contract.lower() in names:
                return candidate
        return None

    def collection(self, contract: str) -> Collection:
        """A listed collection by contract, slug or name. Raises Refusal(404)."""
        for candidate in self.collections.values():
            if contract.lower() in (candidate.contract, candidate.slug, candidate.name.lower()):
                return candidate
        raise Refusal(404, f"There is no collection {contract} on {self.facts.name}.")
