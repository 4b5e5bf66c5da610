"""One way of reading balances, run once: `python -m benchmarks.support.balance_method METHOD URL CONTRACTS WALLETS`.

CONTRACTS is a list with commas, WALLETS a number. Prints a Sample; its unit is a check, its sum that of all balances.
"""

import asyncio
import socket
import sys
import threading
from typing import Any
from urllib.parse import urlsplit

import orjson

from benchmarks.support.nft_chain import CHAIN, CHAIN_ID, wallet
from benchmarks.support.rounds import Measured
from gateways.chains.balance_sheet import LARGE, UNKNOWN, BalanceSheet, Segment, packed
from gateways.evm.balances.balances_program import CODE, SCRATCH, call_data, product, read_answer
from gateways.evm.balances.bulk_reader import Way
from gateways.evm.client import EvmChains
from gateways.evm.rpc.pool import NodePool

FLOOR_OWNERS = 1_200
"""Owners in a call of the floor: with ten collections about as many checks as the product does with 50 M gas."""
BALANCE_OF = [
    {"name": "balanceOf", "type": "function", "stateMutability": "view",
     "inputs": [{"name": "owner", "type": "address"}], "outputs": [{"name": "", "type": "uint256"}]}
]  # fmt: skip


def main() -> None:
    """Run the named method."""
    name, url, contracts, count = sys.argv[1:5]
    owners = [wallet(number) for number in range(int(count))]
    METHODS[name](url, contracts.split(","), owners)


def ours(url: str, contracts: list[str], owners: list[str], way: Way | None = None) -> None:
    """The product's own reader."""

    async def run() -> None:
        pool = NodePool({CHAIN: [url]}, deadline=600, request_seconds=120)
        chains = EvmChains(pool)
        if way is not None:
            for reader in chains._bulk.values():  # the way is normally found node by node; here it is given
                reader.way, reader._way_until = way, float("inf")
        await chains.balances(CHAIN, [Segment(tuple(contracts), tuple(owners[:100]))])
        with Measured() as time:
            (sheet,) = await chains.balances(CHAIN, [Segment(tuple(contracts), tuple(owners))])
            total = sum_of(sheet, contracts)
        await chains.close()
        time.tell(len(contracts) * len(owners), total)

    asyncio.run(run())


def sum_of(sheet: BalanceSheet, contracts: list[str]) -> int:
    """Return the sum of a sheet's amounts from its cells, as the floor adds up its own."""
    rows = [sheet.row(contract) for contract in contracts]
    assert not any(UNKNOWN in row or LARGE in row for row in rows)
    return sum(sum(row) - len(row) for row in rows)


def fallback(url: str, contracts: list[str], owners: list[str]) -> None:
    """Read with the product's reader on a node without state override: aggregate3."""
    ours(url, contracts, owners, Way.MULTICALL)


def floor(url: str, contracts: list[str], owners: list[str]) -> None:
    """Read at the least possible cost for a client of this node: the same loop, packed before, on two bare sockets."""
    parts, blob, chosen = urlsplit(url), packed(owners), packed(contracts)
    targets = [chosen[at : at + 20] for at in range(0, len(chosen), 20)]
    pieces = [blob[at : at + FLOOR_OWNERS * 20] for at in range(0, len(blob), FLOOR_OWNERS * 20)]
    totals: list[int] = []

    def request(piece: bytes) -> tuple[bytes, bytes]:
        data = call_data(bytes(27), 1, product(targets, len(piece) // 20), piece)
        params = [{"to": SCRATCH, "data": "0x" + data.hex()}, "latest", {SCRATCH: {"code": CODE}}]
        body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "eth_call", "params": params})
        head = f"POST / HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\nContent-Length: "
        return data, f"{head}{len(body)}\r\n\r\n".encode() + body

    def ask(connection: socket.socket, piece: bytes) -> None:
        data, sent = request(piece)
        connection.sendall(sent)
        said = bytearray()
        while (end := said.find(b"\r\n\r\n")) < 0:
            said += connection.recv(1 << 20)
        length = int(said[:end].lower().split(b"content-length:")[1].split(b"\r\n")[0])
        while len(said) < end + 4 + length:
            said += connection.recv(1 << 20)
        answer = bytes.fromhex(orjson.loads(bytes(said[end + 4 :]))["result"][2:])
        read = read_answer("the node", answer, data, product(targets, len(piece) // 20), CHAIN_ID)
        totals.append(sum(sum(cells) - len(cells) for cells in read.cells))

    def work(mine: list[bytes]) -> None:
        with socket.create_connection((parts.hostname, parts.port)) as connection:
            for piece in mine:
                ask(connection, piece)

    work(pieces[:1])
    totals.clear()
    with Measured() as time:
        workers = [threading.Thread(target=work, args=(pieces[first::2],)) for first in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    time.tell(len(contracts) * len(owners), sum(totals))


def web3_one_by_one(url: str, contracts: list[str], owners: list[str]) -> None:
    """web3.py as its documentation shows it, with its cache of the chain's id switched on."""
    from web3 import HTTPProvider, Web3

    client = Web3(HTTPProvider(url, cache_allowed_requests=True))
    made = [client.eth.contract(address=client.to_checksum_address(one), abi=BALANCE_OF) for one in contracts]
    who = [client.to_checksum_address(owner) for owner in owners]
    made[0].functions.balanceOf(who[0]).call()
    with Measured() as time:
        total = sum(contract.functions.balanceOf(owner).call() for contract in made for owner in who)
    time.tell(len(made) * len(who), total)


def web3_together(url: str, contracts: list[str], owners: list[str]) -> None:
    """Read with AsyncWeb3 and twenty requests at a time."""
    from web3 import AsyncHTTPProvider, AsyncWeb3

    async def run() -> None:
        client = AsyncWeb3(AsyncHTTPProvider(url, cache_allowed_requests=True))
        made = [client.eth.contract(address=client.to_checksum_address(one), abi=BALANCE_OF) for one in contracts]
        who = [client.to_checksum_address(owner) for owner in owners]
        await made[0].functions.balanceOf(who[0]).call()
        turns = asyncio.Semaphore(20)

        async def one(contract: Any, owner: str) -> int:
            async with turns:
                return int(await contract.functions.balanceOf(owner).call())

        with Measured() as time:
            total = sum(await asyncio.gather(*(one(contract, owner) for contract in made for owner in who)))
        await client.provider.disconnect()
        time.tell(len(made) * len(who), total)

    asyncio.run(run())


METHODS = {"ours": ours, "fallback": fallback, "floor": floor, "web3": web3_one_by_one, "asyncweb3": web3_together}

if __name__ == "__main__":
    main()
