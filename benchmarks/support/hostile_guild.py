"""The hostile guild: its transactions, its rules, and a host that never answers.

Each attack runs alone, or several at once. `python -m benchmarks.support.hostile_guild tarpit PORT` is that host,
`python -m benchmarks.support.hostile_guild previews DATABASE NODE CONTRACT` previews a rule without an end.
"""

import asyncio
import sys
import urllib.request
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from sqlmodel import select

from benchmarks.support import community
from benchmarks.support.nft_chain import CHAIN, READING_GAS, NftChain, wallet
from benchmarks.support.rounds import serving, started
from gateways import gateways
from models import Member, Server, User, Wallet, transaction
from services.core.queue import Claim
from services.engine import cases, read_and_confirm
from services.engine.previews import preview
from services.engine.previews.plan import PreviewPlan
from services.rules import limits
from services.rules.expression import parse as parse_expression
from services.rules.expression import to_document
from services.rules.rule_terms import RuleTerms
from tests.support.hostile_contract import RUNTIME

GUILD = str(community.GUILD - 1)
FIRST_PERSON, FIRST_WALLET = 90_000_000, 90_000_000
CONDITIONS = 40
"""Leaves of its largest rule, and its contracts."""
TOKENS = 60
"""Tokens of each of its members whose metadata are at the host that never answers."""
LOGS, FLOOD = 10_000, 25_500
OLD_RULES = 5_000
ROLES = 30
"""Roles that each of its members should get, but Discord refuses."""
MANY_WALLETS = 100
"""Wallets of each of its members, where they have as many as one person may have."""
_FIRST, _OLD = 0xBAD << 144, 0xBAE << 144

GAS, ANSWER, REVERT = "5b600056", "621000006000f3", "621000006000fd"
"""Contracts that use up all gas in a loop, and answer or revert with a megabyte on any call."""


@dataclass(frozen=True)
class Kind:
    """One kind of attack."""

    code: str = RUNTIME
    """The code of its contracts; the default says that everybody has two tokens, without naming them."""
    traits: bool = False
    """Whether one rule asks all of its contracts for a trait, and another for one whose metadata never come."""
    balances: bool = False
    """Whether rules ask all of its contracts for balances, 40 in each of ten rules."""
    logs: int = 0
    """How many logs it writes in a block at intervals."""
    old_rules: int = 0
    """Rules from before there were limits, each over a contract of its own."""
    refused: int = 0
    """Which of its role writes Discord refuses: each (1), or every other one (2)."""
    previews: bool = False
    wallets: int = 1


KINDS: Mapping[str, Kind] = {
    "mixture": Kind(traits=True, logs=LOGS, refused=1),
    "gas": Kind(code=GAS, balances=True),
    "answers": Kind(code=ANSWER, balances=True),
    "reverts": Kind(code=REVERT, balances=True),
    "flood": Kind(logs=FLOOD),
    "old-rules": Kind(old_rules=OLD_RULES),
    "every-other": Kind(refused=2),
    "refusals": Kind(refused=1),
    "previews": Kind(balances=True, previews=True),
    "wallets": Kind(balances=True, wallets=MANY_WALLETS),
}


def deploy(node: NftChain, members: int, name: str) -> dict[str, Any]:
    """Put the contracts of a kind on the chain; return their addresses by what they do."""
    kind = KINDS[name]
    made: dict[str, Any] = {"kind": name, "harm": [f"0x{_FIRST + at:040x}" for at in range(CONDITIONS)]}
    for contract in made["harm"]:
        node.rpc("anvil_setCode", contract, "0x" + kind.code)
    if kind.traits:
        link = "ipfs://bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi/"
        made["slow"] = node.deploy("Slow", metadata=link)
        for member in range(members):
            node.mint(made["slow"], 1 + member * TOKENS, [wallet(FIRST_WALLET + member)] * TOKENS)
    return made


def act(node: NftChain, evil: dict[str, Any]) -> None:
    """Attack the chain repeatedly: a block full of logs, a malformed log, tokens that move."""
    kind = KINDS[evil["kind"]]
    if kind.logs:
        before, node.gas = node.gas, READING_GAS - 10_000
        node.send(evil["harm"][0], kind.logs.to_bytes(32, "big"))
        node.gas = before
        node.send(evil["harm"][0], b"")
    if kind.traits:
        owner = wallet(FIRST_WALLET)
        node.settle(evil["slow"], [(owner, owner, 1, 1)])


async def move_in(evil: dict[str, Any], members: int, shared: str) -> None:
    """Create its server, members, wallets and rules; one rule names the honest guilds' contract.

    Rules from before the limits are paused as the clock does it within an hour.
    """
    kind = KINDS[evil["kind"]]
    async with transaction() as db:
        server = Server(discord_id=GUILD, name="Hostile", bot_invited=True)
        db.add(server)
        await db.flush()
        server_id = server.id or 0
        for at in range(members):
            number = FIRST_PERSON + at
            db.add(User(id=number, discord_id=str(community.PERSON + number), username="somebody"))
            await db.flush()
            for more in range(kind.wallets):
                address = wallet(FIRST_WALLET + at + more * members)
                db.add(Wallet(user_id=number, family="evm", address=address, method="opensea_bio"))
            db.add(Member(server_id=server_id, discord_id=str(community.PERSON + number), name="somebody", roles=[]))
    rows = [
        community.rule_row(server_id, "", str(community.ROLE - 1 - at), to_document(parse_expression(tree)))
        for at, tree in enumerate(_trees(kind, evil, shared))
    ]
    async with transaction() as db:
        await community.add_rules(db, rows)
        await limits.pause(db)


def _trees(kind: Kind, evil: dict[str, Any], shared: str) -> list[dict[str, Any]]:
    trees = [_basic(shared)]
    if kind.logs or kind.refused:
        trees.append(_basic(evil["harm"][0]))
    if kind.traits:
        # A rule has at most 40 conditions, so the limits of a server cannot forbid any of these.
        trees += [{"all": [_trait(contract) for contract in evil["harm"]]}, _trait(evil["slow"])]
    if kind.balances:
        some = [_basic(contract) for contract in evil["harm"]]
        trees += [{"any": some[at:] + some[:at]} for at in range(10)]
    if kind.refused and not kind.traits:
        trees += [_basic(evil["harm"][at]) for at in range(ROLES)]
    return trees + [_basic(f"0x{_OLD + at:040x}") for at in range(kind.old_rules)]


def _basic(contract: str) -> dict[str, Any]:
    return {"type": "basic", "chain": CHAIN, "contract": contract, "minTokens": 1}


def _trait(contract: str) -> dict[str, Any]:
    return {"type": "trait", "chain": CHAIN, "contract": contract, "trait": {"type": "Fur", "value": "Gold"},
            "minTokens": 1}  # fmt: skip


def tarpit() -> AbstractContextManager[str]:
    """A host that accepts every request and never answers; yields its address."""
    return serving("benchmarks.support.hostile_guild", "tarpit")


def previews(database: str, node: str, contract: str) -> AbstractContextManager[object]:
    """Preview a rule again and again, in a process of its own like the web."""
    return started("benchmarks.support.hostile_guild", "previews", database, node, contract)


def refuse(discord: str, every: int) -> None:
    """Refuse the guild's role writes from now on, as Discord does where moderators need two-factor authentication.

    Each of them with `every` 1, every other one with 2.
    """
    url = f"{discord}/refuse?guild={GUILD}&code=60003&every={every}"
    with urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=10):
        pass


async def preview_for_ever(database: str, node: str, contract: str) -> None:
    """Preview a rule over the honest guilds' contract for the hostile guild's members, again and again."""
    async with community.product(database, [node]):
        async with transaction() as db:
            server_id = (await db.exec(select(Server.id).where(Server.discord_id == GUILD))).one() or 0
        terms = (RuleTerms(1, str(community.ROLE - 1), parse_expression(_basic(contract)), "active"),)
        while True:
            async with transaction() as db:
                people = (await db.exec(select(Member.discord_id).where(Member.server_id == server_id))).all()
                claims = [Claim(server_id, one, 0, 0, 0) for one in people]
                batch = await cases.load(db, claims, {server_id: terms})
                plan = PreviewPlan(
                    {terms[0].role_id: "Role"}, ((batch, await read_and_confirm.questions(db, batch)),), {}, 0
                )
            await preview.whole(gateways(), plan)


async def _never(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await asyncio.sleep(3_600)
    finally:
        writer.close()


async def never_answer(port: int) -> None:
    """Serve until killed."""
    async with await asyncio.start_server(_never, "127.0.0.1", port) as server:
        await server.serve_forever()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["tarpit", number]:
            asyncio.run(never_answer(int(number)))
        case ["previews", database, node, contract]:
            asyncio.run(preview_for_ever(database, node, contract))
        case _:
            raise SystemExit(__doc__)
