"""How a chain starts, recovers after a kill, returns to its start, and loses its last blocks."""

import asyncio
import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from sandbox.base.chain_table import ACCOUNT_DEPLOYER, KEEPER
from sandbox.base.refusal import Refusal
from sandbox.chains import abi, coins, names, token_owners
from sandbox.chains.anvil import NodeError, NodeGone
from sandbox.chains.chain import FIRST_BLOCK, Chain, Record
from sandbox.chains.seeds import COINS, STANDARDS, seeded_accounts, seeded_addresses, seeded_owners
from sandbox.contracts import accounts, staking

# Blocks before the last known head that are restored with their own numbers, so that a client that follows logs misses
# nothing. Older content is restored in the first blocks of the new node.
WINDOW = 200
DEEPEST_REORG = 100
"""The most blocks that a reorganisation replaces."""
APPROVAL, APPROVAL_FOR_ALL = map(
    abi.topic, ("Approval(address,address,uint256)", "ApprovalForAll(address,address,bool)")
)
"""The topics of approvals; those of a coin and of one token have the same."""
DELEGATED = tuple(
    abi.topic(f"Delegate{form}")
    for form in (
        "All(address,address,bytes32,bool)",
        "Contract(address,address,address,bytes32,bool)",
        "ERC721(address,address,address,uint256,bytes32,bool)",
        "ERC1155(address,address,address,uint256,bytes32,uint256)",
    )
)
_LOG = logging.getLogger("sandbox.chains")
MOVES_A_TRANSACTION = 1_000
PAUSE_SECONDS = 2.0
"""How long a node that did not start again is left alone."""


async def start(chain: Chain) -> None:
    """Start the node and restore everything in the journal, never below a block that was seen."""
    records, seen = chain.journal.records(), chain.reserved
    base = max(FIRST_BLOCK, chain.reserved - WINDOW)
    records, nonces = _compacted(records, base)
    chain.journal.rewrite(records)
    recent = [record for record in records if _block(record) > base + 2]
    old = [record for record in records if _block(record) <= base + 2]
    first_time = min([int(time.time()), *(record["time"] for record in recent if "time" in record)])
    await chain.node.start(base, first_time - 2)
    await chain.note_head()
    await _prepare(chain, [*old, *recent], nonces)
    chain.reserve(base + 2)
    await _fill_first_blocks(chain, old)
    filled = chain.head
    chain.records = old
    chain.list_collections()
    for record in recent:
        await _repeat(chain, record)
    # At this height the node knows a finalized block, as every real chain does, and the deepest reorganisation leaves
    # what the chain began with.
    await chain.mine(max(seen, base + chain.facts.confirmations, filled + DEEPEST_REORG) - chain.head)
    await _set_clock(chain, int(time.time()))
    await chain.mine(1)
    chain.running.set()


async def keep_running(chain: Chain) -> None:
    """Start the node again whenever it ends, from the journal, until this task is cancelled."""
    while True:
        await chain.node.ended()
        chain.running.clear()
        _LOG.warning("%s: the node ended and starts again", chain.facts.name)
        # Nothing that waits for the lock may write to the journal before the records are back.
        async with chain.lock:
            while not chain.running.is_set():
                await chain.node.stop()
                chain.forget_node()
                try:
                    await start(chain)
                except (NodeError, NodeGone, OSError, Refusal) as failed:
                    # OSError: the machine has no process or no space on the disk for it just now.
                    _LOG.warning("%s: the node does not start: %s", chain.facts.name, failed)
                    await asyncio.sleep(PAUSE_SECONDS)


async def reset(chain: Chain) -> None:
    """Restore the state of the start, in new blocks."""
    async with chain.lock:
        block = chain.head + 1
        await chain.drop_waiting()
        await _undo(chain)
        await chain.note_head()
        chain.keep({"kind": "reset", "block": block, "time": int(time.time())})
        await chain.mine(chain.facts.confirmations)


async def reorg(chain: Chain, depth: int) -> None:
    """Replace the last `depth` blocks by empty ones, and forget what happened in them."""
    async with chain.lock:
        await chain.node.call("anvil_reorg", depth, [])
        chain.forget_owners()
        last = chain.head - depth
        chain.records = [record for record in chain.records if _block(record) <= last]
        chain.journal.rewrite(chain.records)
        chain.list_collections()
        await chain.note_head()
        await _set_clock(chain, int(time.time()))
        await chain.mine(chain.facts.confirmations)


async def _prepare(chain: Chain, records: list[Record], nonces: dict[str, int]) -> None:
    """Put in place what a genesis would hold: the shared contracts, and balances and nonces for later senders."""
    if chain.facts.multicall3:
        await chain.node.call("anvil_setCode", chain.facts.multicall3, abi.ARTEFACTS["Multicall3"]["runtime"])
    await chain.node.call("anvil_setCode", chain.facts.registry, abi.ARTEFACTS["DelegateRegistry"]["runtime"])
    await chain.node.call("anvil_setCode", accounts.ENTRY_POINT, abi.ARTEFACTS["EntryPoint"]["runtime"])
    for place, contract in names.CONTRACTS.items() if chain.facts.names else ():
        await chain.node.call("anvil_setCode", place, abi.ARTEFACTS[contract]["runtime"])
    for sender in (KEEPER, *_deployers(chain)):
        await chain.fund(sender, 0)
    for account, value in _funds(records).items():
        await chain.fund(account, value)
    for sender in {record["from"] for record in records if "from" in record}:
        spent = sum(int(record.get("value", "0")) for record in records if record.get("from") == sender)
        await chain.fund(sender, spent)
    await _set_nonces(chain, nonces)


async def _set_nonces(chain: Chain, nonces: Mapping[str, int]) -> None:
    """Give senders nonces, apart from the keeper and the deployers, which have their own."""
    for sender, nonce in nonces.items():
        if sender not in (KEEPER, *_deployers(chain)):
            await chain.node.call("anvil_setNonce", sender, hex(nonce))


def _funds(records: list[Record]) -> dict[str, int]:
    """Return contract account → the most that it pays itself at once."""
    found: dict[str, int] = {}
    for record in records:
        for account, value in record.get("funds", {}).items():
            found[account] = max(found.get(account, 0), int(value))
    return found


async def _fill_first_blocks(chain: Chain, old: list[Record]) -> None:
    """Put the seeds and everything older than the window into the first blocks of this node."""
    metadata = f"{chain.url}/metadata/{chain.facts.name}/"
    await chain.node.call("evm_setAutomine", False)
    for standard, (name, symbol, _) in zip(STANDARDS, chain.facts.collections, strict=True):
        data = abi.deployment(standard, name, symbol, metadata, KEEPER)
        await chain.submit({"kind": "tx", "from": chain.facts.deployer, "data": data})
    seeded, places = coins.seeded_coins(chain.facts), chain.staking_at_start().values()
    for coin in seeded.values():
        data = coins.deployment(coin.name, coin.symbol, coin.decimals)
        await chain.submit({"kind": "tx", "from": coins.deployer(chain.facts), "data": data})
    for one in places:
        data = abi.staking_deployment(one.source, one.name, KEEPER)
        await chain.submit({"kind": "tx", "from": staking.deployer(chain.facts.name), "data": data})
    for account in seeded_accounts().values():
        data = abi.account(account.standard, account.owner)
        await chain.submit({"kind": "tx", "from": ACCOUNT_DEPLOYER, "data": data})
    await chain.mine(1)
    for coin in seeded.values():
        data = coins.settling({}, coins.seeded_amounts(coin))
        await chain.submit({"kind": "tx", "from": KEEPER, "to": coin.contract, "data": data})
    for one in places:
        data = abi.settlement(_stake_moves({}, one.stakes_at_start))
        await chain.submit({"kind": "tx", "from": KEEPER, "to": one.contract, "data": data})
    for position, address in enumerate(seeded_addresses(chain.facts)):
        moves = token_owners.difference({}, seeded_owners(position))
        await chain.submit({"kind": "tx", "from": KEEPER, "to": address, "data": abi.settlement(moves)})
    for to, data in names.seeds() if chain.facts.names else ():
        await chain.submit({"kind": "tx", "from": KEEPER, "to": to, "data": data, "gas": names.GAS})
    for record in old:
        if record["kind"] in ("tx", "raw"):
            try:
                await chain.submit(record)
            except NodeError as refused:
                _lost(chain, record, refused)
    while int((await chain.node.call("txpool_status"))["pending"], 16):
        await chain.mine(1)
    await chain.node.call("evm_setAutomine", True)
    await chain.set_balances(old)


async def _repeat(chain: Chain, record: Record) -> None:
    """Repeat a recent record, in its own block."""
    if record["kind"] in ("tx", "raw", "reset"):
        await chain.mine(_block(record) - chain.head - 1)
        await _set_clock(chain, record["time"])
        chain.reserve(chain.head + 1)
        if record["kind"] == "reset":
            await _undo(chain)
            # Resets of earlier versions left the nonces as they were.
            await _set_nonces(chain, record.get("nonces", {}))
        else:
            try:
                await _fund(chain, record)
                await chain.sent(record)
            except (NodeError, Refusal) as refused:
                _lost(chain, record, refused)
            await chain.set_balances([record])
        await chain.note_head()
    chain.records.append(record)
    chain.list_collections()


async def _fund(chain: Chain, record: Record) -> None:
    """Let a transaction's accounts pay what they paid; a reset may have left them nothing."""
    for account, value in {record["from"]: record.get("value", "0"), **record.get("funds", {})}.items():
        await chain.fund(account, int(value))


def _lost(chain: Chain, record: Record, refused: Exception) -> None:
    """Log a transaction that cannot be repeated: a chain without one old transaction is better than none."""
    _LOG.warning("%s: the transaction of block %s cannot be repeated: %s", chain.facts.name, record["block"], refused)


async def _undo(chain: Chain) -> None:
    """Take back all that happened: tokens, coins, the own coin, rights, names, nonces, and later contracts."""
    await _withdraw_rights(chain)
    await _undo_staking(chain)
    await _undo_coins(chain)
    owners = await chain.owners_so_far()
    seeds = seeded_addresses(chain.facts)
    for address, now in owners.items():
        wanted = seeded_owners(seeds.index(address)) if address in seeds else {}
        moves = token_owners.difference(now, wanted)
        for at in range(0, len(moves), MOVES_A_TRANSACTION):
            chain.reserve(chain.head + len(moves) // MOVES_A_TRANSACTION + 2)
            data = abi.settlement(moves[at : at + MOVES_A_TRANSACTION])
            await chain.sent({"kind": "tx", "from": KEEPER, "to": address, "data": data})
            await chain.note_head()
        if address not in seeds:
            await _take_off(chain, address)
    for account in chain.accounts().values():
        if not account.seeded:
            await _take_off(chain, account.account)
    for record in chain.since_reset():
        if record["kind"] == "raw" and "contract" in record:
            await _take_off(chain, record["contract"])
            await chain.node.call("anvil_setBalance", record["contract"], "0x0")
    for to, data in names.restored() if chain.facts.names else ():
        await _keeper_sends(chain, to, data, names.GAS)
    for sender in {record["from"] for record in chain.since_reset() if "from" in record}:
        has_code = await chain.node.call("eth_getCode", sender, "latest") != "0x"
        await _set_nonces(chain, {sender: int(has_code)})
    for deployer, count in _deployers(chain).items():
        await chain.node.call("anvil_setNonce", deployer, hex(count))
    await chain.set_balances(
        {"balances": dict.fromkeys(record.get("balances", ()), "0x0")} for record in chain.since_reset()
    )


async def _withdraw_rights(chain: Chain) -> None:
    """Withdraw the approvals of listed contracts and the delegations, also those that people signed."""
    listed = sorted({*chain.collections, *chain.coins, chain.facts.registry})
    wanted = {"fromBlock": "0x0", "toBlock": "latest", "address": listed}
    topics = [APPROVAL, APPROVAL_FOR_ALL, *DELEGATED]
    logs: list[Any] = await chain.node.call("eth_getLogs", {**wanted, "topics": [topics]})
    for contract, name, *about in dict.fromkeys((log["address"], *log["topics"]) for log in logs):
        owner = abi.address_in(about[0])
        if name in DELEGATED:
            await _withdraw_delegations(chain, owner)
        elif name == APPROVAL_FOR_ALL:
            operator = abi.address_in(about[1])
            if await _says(
                chain, contract, abi.call("Collection721", "isApprovedForAll(address,address)", owner, operator)
            ):
                data = abi.call("Collection721", "setApprovalForAll(address,bool)", operator, 0)
                await _sends(chain, owner, contract, data)
        elif len(about) == 3:
            token = int(about[2], 16)
            if await _says(chain, contract, abi.call("Collection721", "getApproved(uint256)", token)):
                now = await _says(chain, contract, abi.call("Collection721", "ownerOf(uint256)", token))
                data = abi.call("Collection721", "approve(address,uint256)", abi.NOBODY, token)
                await _sends(chain, f"0x{now:040x}", contract, data)
        elif await _says(
            chain, contract, abi.call(coins.CONTRACT, "allowance(address,address)", owner, abi.address_in(about[1]))
        ):
            data = abi.call(coins.CONTRACT, "approve(address,uint256)", abi.address_in(about[1]), 0)
            await _sends(chain, owner, contract, data)


async def _withdraw_delegations(chain: Chain, vault: str) -> None:
    registry = chain.facts.registry
    said = abi.words(
        await chain.answer(registry, abi.call("DelegateRegistry", "getOutgoingDelegations(address)", vault))
    )
    for at in range(2, 2 + 7 * said[1], 7):
        kind, to, _, rights, contract, token, _ = said[at : at + 7]
        form, values = {
            1: ("delegateAll(address,bytes32,bool)", (to, rights)),
            2: ("delegateContract(address,address,bytes32,bool)", (to, contract, rights)),
            3: ("delegateERC721(address,address,uint256,bytes32,bool)", (to, contract, token, rights)),
            5: ("delegateERC1155(address,address,uint256,bytes32,uint256)", (to, contract, token, rights)),
        }[kind]
        await _sends(chain, vault, registry, abi.call("DelegateRegistry", form, *values, 0))


async def _says(chain: Chain, contract: str, data: str) -> int:
    """Return the number that a contract answers; 0 where there is none, as for a burnt token."""
    with suppress(NodeError, ValueError):
        return int(await chain.answer(contract, data), 16)
    return 0


async def _sends(chain: Chain, sender: str, to: str, data: str) -> None:
    """Send a transaction of anybody's, in a block of its own, which costs the sender no coin and no nonce."""
    node = chain.node
    had = await node.call("eth_getBalance", sender, "latest")
    nonce = await node.call("eth_getTransactionCount", sender, "latest")
    chain.reserve(chain.head + 1)
    await chain.fund(sender, 0)
    await chain.sent({"kind": "tx", "from": sender, "to": to, "data": data})
    await node.call("anvil_setNonce", sender, nonce)
    await node.call("anvil_setBalance", sender, had)
    await chain.note_head()


async def _undo_coins(chain: Chain) -> None:
    """Give everybody the coins they had at the start, and remove later coins from the chain."""
    for coin in chain.coins.values():
        await _keeper_sends(chain, coin.contract, abi.call(coins.CONTRACT, "restart()"))
        moves = coins.settling(await chain.amounts(coin), coins.seeded_amounts(coin))
        await _keeper_sends(chain, coin.contract, moves)
        if not coin.seeded:
            await _take_off(chain, coin.contract)


async def _keeper_sends(chain: Chain, to: str, data: str, gas: int | None = None) -> None:
    """Send a transaction of the keeper, in a block of its own."""
    chain.reserve(chain.head + 1)
    record: Record = {"kind": "tx", "from": KEEPER, "to": to, "data": data}
    await chain.sent(record if gas is None else {**record, "gas": gas})
    await chain.note_head()


async def _take_off(chain: Chain, contract: str) -> None:
    await chain.node.call("anvil_setCode", contract, "0x")
    await chain.node.call("anvil_setNonce", contract, "0x0")


def _deployers(chain: Chain) -> dict[str, int]:
    """Return deployer → number of its contracts on a fresh chain: collections, coins, staking contracts, accounts."""
    return {
        chain.facts.deployer: len(STANDARDS),
        coins.deployer(chain.facts): len(COINS),
        staking.deployer(chain.facts.name): len(staking.KINDS),
        ACCOUNT_DEPLOYER: len(accounts.STANDARDS),
    }


async def _undo_staking(chain: Chain) -> None:
    """Stake what was staked at the start, and remove later staking contracts from the chain."""
    for one in chain.staking.values():
        if moves := _stake_moves(await chain.stakes(one), one.stakes_at_start):
            await _keeper_sends(chain, one.contract, abi.settlement(moves))
        if not one.seeded:
            await _take_off(chain, one.contract)


def _stake_moves(now: Mapping[int, str], wanted: Mapping[int, str]) -> list[abi.Move]:
    """Return the moves that lead from the stakes `now` (token id → staker) to the stakes `wanted`."""
    return token_owners.difference(
        {token: {who: 1} for token, who in now.items()}, {token: {who: 1} for token, who in wanted.items()}
    )


def _compacted(records: list[Record], base: int) -> tuple[list[Record], dict[str, int]]:
    """Return the records without what a reset older than the window undid, and the nonces that it left."""
    for at in range(len(records) - 1, -1, -1):
        record = records[at]
        if record["kind"] == "reset" and (_block(record) <= base + 2 or at == 0):
            # The reset itself is kept, at a block before all others, for the nonces of one of an earlier version.
            kept: Record = {**record, "block": 0}
            return [kept, *records[at + 1 :]], record.get("nonces", {})
    return records, {}


def _block(record: Record) -> int:
    return record["block"]


async def _set_clock(chain: Chain, seconds: int) -> None:
    """Set the node's clock, which a start and a reorg leave behind; the next block is never older than the head."""
    head: Any = await chain.node.call("eth_getBlockByNumber", "latest", False)
    await chain.node.call("evm_setNextBlockTimestamp", max(seconds, int(head["timestamp"], 16)))
