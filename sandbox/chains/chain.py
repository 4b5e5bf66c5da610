"""One EVM chain: its node, its journal, and every way in which the sandbox advances it."""

import asyncio
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

import orjson

from sandbox.base.chain_table import KEEPER, Facts
from sandbox.base.journal import Journal
from sandbox.base.refusal import Refusal
from sandbox.chains import abi, coins, token_owners
from sandbox.chains.anvil import Anvil, NodeError, NodeGone
from sandbox.chains.coins import Coin
from sandbox.chains.plans import UNLIMITED, Plan
from sandbox.chains.seeds import Collection, called, created, seeded_accounts, seeded_collections
from sandbox.contracts import accounts, staking
from sandbox.contracts.accounts import SmartAccount
from sandbox.contracts.staking import Staking

# The first block of every chain: high enough that state can be older than 128 blocks from the first minute.
FIRST_BLOCK = 1_000
# Head numbers are reserved on disk in steps, so that a block costs no write.
RESERVED_BLOCKS = 64
HEADS_KEPT = 5_000
# How long a control call waits for a node that ended, how often it reads it, and how soon an end is noticed.
RESTART_SECONDS, READS, NOTICED_SECONDS = 60.0, 3, 0.2
CALL_GAS = 3_000_000
BULK_GAS = 900_000_000
# The balance that an impersonated sender is topped up to when it has too little: enough for fees, so that people keep
# the amount of the chain's own coin that they were sent. The keeper pays for bulk transactions.
FUNDS, KEEPER_FUNDS = 10**17, 10**20

Record = dict[str, Any]
T = TypeVar("T")

_buried_later: ContextVar[bool] = ContextVar("_buried_later", default=False)


class Chain:
    """One EVM chain with its node and its journal.

    `records` is what happened since the seeds, oldest first; `collections` and `coins` follow from it. Hold `lock` to
    advance the chain. `plan` limits what clients get from the node; the sandbox itself gets everything.
    """

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
        self._waiting: dict[str, int] = {}
        """The raw transactions that are not recorded yet, and the head at which the node took each."""
        self._ledger = token_owners.Ownership()
        # When a reset removes a collection, its tokens are burnt first, in logs that must still be read.
        self._ever_listed: set[str] = set()
        self.running = asyncio.Event()
        """Set while the node has all that is in the journal; not set while it starts."""

    # A node that ends

    async def restarted(self) -> None:
        """Wait while the node starts again after its end. Raises Refusal(503) after RESTART_SECONDS."""
        try:
            async with asyncio.timeout(RESTART_SECONDS):
                await self.running.wait()
        except TimeoutError:
            raise Refusal(503, f"The node of {self.facts.name} ended, and it has not started again.") from None

    @asynccontextmanager
    async def reachable(self) -> AsyncIterator[None]:
        """Do what is inside with a node that runs. Raises Refusal: 409 for what the node refuses, 503 when it ends."""
        await self.restarted()
        try:
            yield
        except NodeError as refused:
            raise Refusal(409, f"The chain refuses this: {abi.reason(refused.error)}") from refused
        except NodeGone as gone:
            said = f"The node of {self.facts.name} ended meanwhile. It starts again, perhaps without this."
            raise Refusal(503, said) from gone

    async def _read(self, read: Callable[[], Awaitable[T]]) -> T:
        """Return what `read` returns of a chain that nobody advances meanwhile.

        A node that ends meanwhile is read again when it runs. Raises Refusal(503).
        """
        for _ in range(READS):
            with suppress(NodeGone):
                await self.restarted()
                async with self.lock:
                    return await read()
            # Its answers stop a moment before its end is noticed.
            await asyncio.sleep(NOTICED_SECONDS)
        raise Refusal(503, f"The node of {self.facts.name} does not answer.")

    def forget_node(self) -> None:
        """Forget what was read from a node that ended, and what only its pool had."""
        self.forget_owners()
        self._waiting = {}

    async def drop_waiting(self) -> None:
        """Drop the transactions that wait for one with an earlier nonce."""
        await self.node.call("anvil_dropAllTransactions")
        self._waiting = {}

    # Heads

    @property
    def reserved(self) -> int:
        """The highest block number that anybody can have seen; 0 on a fresh chain."""
        return self._reserved

    def reserve(self, head: int) -> None:
        """Record on disk that the chain may be seen at `head`, before it is."""
        if head > self._reserved:
            self._reserved = head + RESERVED_BLOCKS
            fresh = self._head_file.with_suffix(".fresh")
            fresh.write_text(str(self._reserved))
            os.replace(fresh, self._head_file)

    def head_at(self, moment: float) -> int:
        """Return the head at a moment of the monotonic clock, or the oldest head that is remembered."""
        known = [head for since, head in self._heads if since <= moment]
        return known[-1] if known else self._heads[0][1]

    def settled(self, head: int, tag: str) -> int:
        """Return the block that a node with this head calls `safe` or `finalized`."""
        # As the node is started with --slots-in-an-epoch.
        return max(0, head - self.node.epoch * (1 if tag == "safe" else 2))

    async def note_head(self) -> int:
        """Ask the node for its head, remember when it was seen, and return it."""
        head = int(await self.node.call("eth_blockNumber"), 16)
        if head != self.head:
            self.head, self._head_time = head, time.monotonic()
            # A node that starts again begins below the head that was seen last.
            if not self._heads or head > self._heads[-1][1]:
                self._heads.append((self._head_time, head))
        return head

    async def mine(self, blocks: int) -> None:
        """Mine empty blocks that all carry the present time."""
        if blocks > 0:
            self.reserve(self.head + blocks)
            await self.node.call("anvil_mine", hex(blocks), "0x0")
        await self.note_head()

    async def confirm(self) -> None:
        """Mine the chain's confirmations on top of the head, unless `confirmed_together` does so later."""
        if not _buried_later.get():
            await self.mine(self.facts.confirmations)

    @asynccontextmanager
    async def confirmed_together(self) -> AsyncIterator[None]:
        """Mine the confirmations of all that this task does inside once, at the end; each block costs the node work."""
        before = _buried_later.set(True)
        try:
            yield
        finally:
            _buried_later.reset(before)
            async with self.lock:
                await self.confirm()

    async def freshen(self) -> None:
        """Mine one block if the head would look stale to a client that asks for it."""
        if time.monotonic() - self._head_time > self.facts.block_seconds:
            async with self.lock:
                if time.monotonic() - self._head_time > self.facts.block_seconds:
                    await self.mine(1)

    # Transactions

    async def transact(self, record: Record) -> Record:
        """Carry out a transaction: simulate it, send it, record it and mine its confirmations.

        Adds `hash`, `block`, `time`, `balances` and, for a deployment, `contract` to the record. Raises NodeError with
        the reason when it would revert, and Refusal(409).
        """
        sender = record["from"]
        record["gas"] = self._gas(sender)
        await self.fund(sender, int(record.get("value", "0")))
        await self.node.call("eth_call", self._request(record), "latest")
        self.reserve(self.head + 1)
        receipt = await self.sent(record)
        record |= {"hash": receipt["transactionHash"], "block": int(receipt["blockNumber"], 16)}
        record["time"] = int(time.time())
        if receipt.get("contractAddress"):
            record["contract"] = receipt["contractAddress"].lower()
        record["balances"] = await self._balances(record)
        self.keep(record)
        await self.note_head()
        await self.confirm()
        return record

    async def fund(self, account: str, value: int) -> None:
        """Top up an account so that it can pay the value and the fees. Raises Refusal(409) for too great a value."""
        funds = KEEPER_FUNDS if account == KEEPER else FUNDS
        if value + funds >= abi.UINT256:
            raise Refusal(409, "The chain refuses this: insufficient funds for gas * price + value")
        if int(await self.node.call("eth_getBalance", account, "latest"), 16) < value + funds // 2:
            await self.node.call("anvil_setBalance", account, hex(value + funds))

    async def _balances(self, record: Record) -> dict[str, str]:
        """Return account → wei in hexadecimal, for all but the keeper whose own coin a transaction may have moved."""
        accounts = {record["from"], record.get("to"), *record.get("funds", ())} - {None, KEEPER}
        return {account: await self.node.call("eth_getBalance", account, "latest") for account in sorted(accounts)}

    async def set_balances(self, records: Iterable[Record]) -> None:
        """Give accounts what they had of the own coin after the last of these transactions."""
        last = {account: wei for record in records for account, wei in record.get("balances", {}).items()}
        for account, wei in last.items():
            await self.node.call("anvil_setBalance", account, wei)

    async def answer(self, to: str, data: str) -> str:
        """Return what a contract answers to a call at the head. Raises NodeError."""
        return await self.node.call("eth_call", {"to": to, "data": data}, "latest")

    async def sent(self, record: Record) -> dict[str, Any]:
        """Send a recorded transaction and return the receipt. Raises Refusal(409) when one that is not raw reverts."""
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
        """Pass a client's raw transaction to the node, record what was mined, and return the node's own answer."""
        async with self.lock:
            self.reserve(self.head + 1)
            answer = await self.node.post(request)
            parsed = orjson.loads(answer)
            if "result" in parsed:
                self._waiting[raw] = self.head
                await self._keep_mined(parsed["result"], self.head)
        return answer

    async def _keep_mined(self, newest: str, head: int) -> None:
        """Record the raw transactions that were mined.

        The node mines a moment after it answers, and a transaction that fills a nonce gap releases earlier ones too.
        """
        deadline = time.monotonic() + 1.0
        while await self._receipt(newest, head) is None and time.monotonic() < deadline:
            if await self._is_queued(newest):
                break
            await asyncio.sleep(0.005)
        still: dict[str, int] = {}
        for raw, taken in self._waiting.items():
            named = await self.node.call("web3_sha3", raw)
            receipt = await self._receipt(named, taken)
            if receipt is None:
                still[raw] = taken
                continue
            record: Record = {"kind": "raw", "raw": raw, "from": receipt["from"].lower(), "to": receipt["to"]}
            if receipt["contractAddress"]:
                record["contract"] = receipt["contractAddress"].lower()
            sent = await self.node.call("eth_getTransactionByHash", named)
            record["value"] = str(int(sent["value"], 16))
            record |= {"block": int(receipt["blockNumber"], 16), "time": int(time.time())}
            record["balances"] = await self._balances(record)
            self.keep(record)
        self._waiting = still
        await self.note_head()

    async def _receipt(self, named: str, head: int) -> dict[str, Any] | None:
        """Return the receipt of a transaction that was mined after this head; the same one may be there from before.

        A reset takes nonces back, so a client may send the very bytes again that it sent before it.
        """
        receipt = await self.node.call("eth_getTransactionReceipt", named)
        return receipt if receipt and int(receipt["blockNumber"], 16) > head else None

    async def _is_queued(self, named: str) -> bool:
        """Return whether a transaction waits for one with an earlier nonce."""
        queued = (await self.node.call("txpool_content"))["queued"]
        return any(waiting["hash"] == named for sent in queued.values() for waiting in sent.values())

    def _request(self, record: Record) -> dict[str, Any]:
        request = {"from": record["from"], "data": record.get("data", "0x")}
        request["gas"] = hex(record.get("gas", self._gas(record["from"])))
        if record.get("to"):
            request["to"] = record["to"]
        request["value"] = hex(int(record.get("value", "0")))
        return request

    def _gas(self, sender: str) -> int:
        """Return a gas limit that suffices and differs a little at every head.

        After a reset a client may ask for the very same transaction with the same nonce again, and two transactions
        must not have the same hash.
        """
        return (BULK_GAS if sender == KEEPER else CALL_GAS) + self.head % 100_000

    # Records and listings

    def keep(self, record: Record) -> None:
        """Write a record to the journal and apply it to the listed collections."""
        self.journal.append(record)
        self.records.append(record)
        self.list_collections()

    def list_collections(self) -> None:
        """Derive the collections, traits, staking contracts and coins from the seeds and the records."""
        self.collections = self.collections_at()
        self.staking = self._listed(self.staking_at_start(), "staking", Staking)
        self.coins = self._listed(coins.seeded_coins(self.facts), "coin", Coin)
        self._ever_listed |= self.collections.keys()

    def collections_at(self, block: int | None = None) -> dict[str, Collection]:
        """Return contract → collection with its traits, now or as of a block."""
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
        """Return contract → staking contract, as on a fresh chain."""
        sender = staking.deployer(self.facts.name)
        return staking.at_start([created(sender, nonce) for nonce in range(len(staking.KINDS))])

    async def stakes(self, one: Staking) -> dict[int, str]:
        """Return token id → lower-case address of the account that has staked it now."""
        return abi.stakes_in(await self.answer(one.contract, abi.call(one.source, "stakes()")))

    async def amounts(self, coin: Coin) -> dict[str, int]:
        """Return lower-case address → base units of a coin that the address has now."""
        return coins.holdings_of(await self.answer(coin.contract, abi.call(coins.CONTRACT, "holdings()")))

    def accounts(self) -> dict[str, SmartAccount]:
        """Return address → contract account, from the seeds and the records."""
        return self._listed(seeded_accounts(), "account", SmartAccount)

    def since_reset(self) -> list[Record]:
        """Return the records after the last reset."""
        resets = [at for at, record in enumerate(self.records) if record["kind"] == "reset"]
        return self.records[resets[-1] + 1 :] if resets else self.records

    def _listed(self, at_start: dict[str, T], name: str, kind: Callable[..., T]) -> dict[str, T]:
        """Return contract → what is listed: `at_start`, and what records with an entry `name` have deployed since."""
        later = (record for record in self.since_reset() if name in record)
        return at_start | {record["contract"]: kind(record["contract"], **record[name]) for record in later}

    def smart_account(self, address: str) -> SmartAccount:
        """Return a listed contract account. Raises Refusal(404)."""
        found = self.accounts().get(address)
        if found is None:
            raise Refusal(404, f"There is no Safe and no account of ERC-4337 at {address} on {self.facts.name}.")
        return found

    async def owners(self, block: int | None = None) -> dict[str, token_owners.Owners]:
        """Return contract → owners for every listed collection, now or as of a block. Raises Refusal(503)."""
        return await self._read(lambda: self.owners_so_far(block))

    async def owners_so_far(self, block: int | None = None) -> dict[str, token_owners.Owners]:
        """Return the same, from a node that may still be starting; hold `lock`."""
        if block is not None:
            then = token_owners.Ownership()
            await self._read_logs(then, block)
            return {contract: then.of(contract) for contract in self.collections}
        await self._read_logs(self._ledger, int(await self.node.call("eth_blockNumber"), 16))
        return {contract: self._ledger.of(contract) for contract in self.collections}

    async def _read_logs(self, known: token_owners.Ownership, block: int) -> None:
        """Bring a ledger up to a block; logs that it already has are not read again."""
        if block > known.block:
            asked = {"fromBlock": hex(known.block + 1), "toBlock": hex(block), "topics": [token_owners.TOPICS]}
            known.read(await self.node.call("eth_getLogs", {**asked, "address": sorted(self._ever_listed)}), block)

    def forget_owners(self) -> None:
        """Forget who owns what, which must be read from the beginning because blocks were replaced."""
        self._ledger = token_owners.Ownership()

    async def world(self) -> dict[str, Any]:
        """Return this chain's part of GET /control/world. Raises Refusal(503)."""
        return await self._read(self._world)

    async def _world(self) -> dict[str, Any]:
        owners = await self.owners_so_far()
        coins_listed, places = list(self.coins.values()), list(self.staking.values())
        amounts = await asyncio.gather(*map(self.amounts, coins_listed))
        stakes = await asyncio.gather(*map(self.stakes, places))
        return {
            "rpc": f"{self.url}/rpc/{self.facts.name}",
            "chain_id": self.facts.chain_id,
            "block": self.head,
            "collections": [one.entry(owners[one.contract]) for one in self.collections.values()]
            + [coin.entry(holders) for coin, holders in zip(coins_listed, amounts, strict=True)]
            + [one.entry(staked) for one, staked in zip(places, stakes, strict=True)],
            "entry_point": accounts.ENTRY_POINT,
            "accounts": [account.view() for account in self.accounts().values()],
        }

    def staking_contract(self, contract: str) -> Staking:
        """Return a listed staking contract by address, slug or name. Raises Refusal(404)."""
        if (found := called(self.staking.values(), contract)) is None:
            raise Refusal(404, f"There is no staking contract {contract} on {self.facts.name}.")
        return found

    def coin(self, contract: str) -> Coin | None:
        """Return a listed coin by address, slug, symbol or name, or None; a collection's slug means the collection."""
        if any(contract.lower() == one.slug for one in self.collections.values()):
            return None
        return called(self.coins.values(), contract)

    def collection(self, contract: str) -> Collection:
        """Return a listed collection by address, slug or name. Raises Refusal(404)."""
        if (found := called(self.collections.values(), contract)) is None:
            raise Refusal(404, f"There is no collection {contract} on {self.facts.name}.")
        return found
