"""The guild that means harm: what it puts on the chain, which rules it makes, and the host that never answers.

`python -m benchmarks.hostile PORT` is that host.
"""

import asyncio
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks import town
from benchmarks.lab import CHAIN, ROOT, Lab, wallet
from models import Member, Server, User, Wallet, transaction
from services.expressions import parse as parse_expression
from services.expressions import to_document
from tests.conftest import free_port
from tests.hostile import RUNTIME

GUILD = str(town.GUILD - 1)
FIRST_PERSON, FIRST_WALLET = 90_000_000, 90_000_000
CONDITIONS = 40
"""Leaves of its largest rule, each over a contract that counts two tokens for everybody and never says which."""
TOKENS = 60
"""Tokens of each of its members whose metadata are at the host that never answers."""
LOGS = 10_000
_FIRST = 0xBAD << 144


def deploy(node: Lab, members: int) -> dict[str, Any]:
    """Put its contracts on the chain; their addresses by what they do."""
    made: dict[str, Any] = {
        "harm": [f"0x{_FIRST + at:040x}" for at in range(CONDITIONS)],
        "slow": node.deploy("Slow", metadata="ipfs://bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi/"),
    }
    for contract in made["harm"]:
        node.rpc("anvil_setCode", contract, "0x" + RUNTIME)
    for member in range(members):
        node.mint(made["slow"], 1 + member * TOKENS, [wallet(FIRST_WALLET + member)] * TOKENS)
    return made


def act(node: Lab, evil: dict[str, Any]) -> None:
    """What it does on the chain again and again: a block full of logs, a torn log, tokens that move."""
    node.send(evil["harm"][0], LOGS.to_bytes(32, "big"))
    node.send(evil["harm"][0], b"")
    owner = wallet(FIRST_WALLET)
    node.settle(evil["slow"], [(owner, owner, 1, 1)])


async def move_in(evil: dict[str, Any], members: int, shared: str) -> None:
    """Its server, members, wallets and rules; one rule is over the contract that honest guilds name."""
    async with transaction() as db:
        server = Server(discord_id=GUILD, name="Hostile", bot_invited=True)
        db.add(server)
        await db.flush()
        server_id = server.id or 0
        for at in range(members):
            number = FIRST_PERSON + at
            db.add(User(id=number, discord_id=str(town.PERSON + number), username="somebody"))
            await db.flush()
            db.add(Wallet(user_id=number, family="evm", address=wallet(FIRST_WALLET + at), method="opensea_bio"))
            db.add(Member(server_id=server_id, discord_id=str(town.PERSON + number), name="somebody", roles=[]))
    # A rule has at most 40 conditions, so that the limits of a server cannot forbid any of these.
    mute = {"all": [_trait(contract) for contract in evil["harm"]]}
    basic = [{"type": "basic", "chain": CHAIN, "contract": one, "minTokens": 1} for one in (evil["harm"][0], shared)]
    trees = [mute, _trait(evil["slow"]), *basic]
    rows = [
        town.rule_row(server_id, "", str(town.ROLE - 1 - at), to_document(parse_expression(tree)))
        for at, tree in enumerate(trees)
    ]
    async with transaction() as db:
        await town.add_rules(db, rows)


def _trait(contract: str) -> dict[str, Any]:
    return {"type": "trait", "chain": CHAIN, "contract": contract, "trait": {"type": "Fur", "value": "Gold"},
            "minTokens": 1}  # fmt: skip


@contextmanager
def tarpit() -> Iterator[str]:
    """The address of a host that takes every request and never answers."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.hostile", str(port)], cwd=ROOT)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def refuse(discord: str) -> None:
    """From now on Discord refuses the guild's role writes as it does where two-factor is required of moderators."""
    with urllib.request.urlopen(
        urllib.request.Request(f"{discord}/refuse?guild={GUILD}&code=60003", method="POST"), timeout=10
    ):
        pass


async def _never(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await asyncio.sleep(3_600)
    finally:
        writer.close()


async def main() -> None:
    """Serve until killed."""
    async with await asyncio.start_server(_never, "127.0.0.1", int(sys.argv[1])) as server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
