"""Vaults that hold tokens of a town's collection and delegate them to its people, for tests of delegations."""

import uuid

from eth_utils.crypto import keccak
from sqlmodel import col, select

from gateways import gateways
from gateways.chains.catalogue import CHAINS
from models import Delegation, Due, Wallet, now, transaction
from services.accounts.users import ensure
from services.core import queue
from services.core.answer import Answer
from services.core.queue import Claim
from services.engine import cases, ledger, read_and_confirm
from services.holdings import delegations, last_known
from services.holdings.evaluate import Reading
from services.rules.expression import Requirement
from services.rules.rule_terms import RuleTerms
from tests.jobs.town import STRANGER, Town

YES, NO, UNKNOWN = Answer.YES, Answer.NO, Answer.UNKNOWN
NODES = ("rpc:base", "rpc2:base")


def a_vault() -> str:
    return "0x" + uuid.uuid4().hex + "dead7a17"


class Bank:
    """The town's collection, the vaults that hold some of it, and their delegations."""

    def __init__(self, town: Town) -> None:
        self.town = town
        self.many = ""
        self._tokens = 100

    async def puts(self, vault: str, amount: int = 1, contract: str = "") -> str:
        """Mint a token to the vault and return its id."""
        self._tokens += 1
        given = {"amount": str(amount)} if contract and contract == self.many else {}
        await self.town.call(
            "chains/base/mint", contract=contract or self.town.contract, token_id=str(self._tokens), to=vault, **given
        )
        return str(self._tokens)

    async def sells(self, vault: str, token: str) -> None:
        await self.town.call(
            "chains/base/transfer", contract=self.town.contract, token_id=token, to=STRANGER, **{"from": vault}
        )

    async def delegates(self, vault: str, who: str, **what: str) -> None:
        await self.town.call("chains/base/delegate", vault=vault, to=self.town.wallet(who), **what)

    async def withdraws(self, vault: str, who: str) -> None:
        """Revoke the vault's delegation of everything to the person."""
        await self.tells_the_registry(vault, "delegateAll(address,bytes32,bool)", self.town.wallet(who), 0, 0)

    async def tells_the_registry(self, vault: str, form: str, *values: int | str) -> None:
        """Call the registry as the vault, with arguments of one word each."""
        words = [f"{value if isinstance(value, int) else int(value, 16):064x}" for value in values]
        data = keccak(text=form)[:4] + bytes.fromhex("".join(words))
        registry = CHAINS["base"].delegates
        await self.town.call(
            "chains/base/send", to=registry, value_wei="0", data="0x" + data.hex(), **{"from": vault}
        )  # fmt: skip

    async def deploys_many(self) -> str:
        made = await self.town.call("chains/base/deploy", standard="ERC1155", name="Many", slug=uuid.uuid4().hex)
        self.many = made["contract"]
        return self.many

    async def looks_again(self, who: str) -> None:
        """Press Re-check as the person."""
        async with transaction() as db:
            await queue.mark_member(db, self.town.server_id, self.town.people[who]["id"], queue.WAITING)

    async def answers(self, leaf: Requirement, *, delegated: bool = True) -> dict[str, Reading]:
        """Return one reconcile's reading of everybody, after checking that the stored answers are the same."""
        people = {
            who: Claim(self.town.server_id, one["id"], 0, 0, queue.WAITING) for who, one in self.town.people.items()
        }
        terms = [RuleTerms(1, "role", leaf, "active", delegated=delegated)]
        claims = list(people.values())
        async with transaction() as db:
            stale = await cases.delegations_to_read(db, claims, {self.town.server_id: terms})
        fetched = await delegations.read(gateways(), stale)
        async with transaction() as db:
            await delegations.remember(db, fetched)
            batch = await cases.load(db, claims, {self.town.server_id: terms})
            wanted = await read_and_confirm.questions(db, batch)
        done = await read_and_confirm.decide_cases(gateways(), batch, wanted, now())
        async with transaction() as db:
            await ledger.remember(db, done)
        found: dict[str, Reading] = {}
        for who, item in zip(people, done.outcomes, strict=True):
            found[who] = item.readings[1][0]
            places = [*(address for _, address in item.case.wallets), *(v.address for v in item.case.delegated.vaults)]
            async with transaction() as db:
                memory = await last_known.load(db, [leaf], places)
            told = last_known.recall(leaf, item.case.wallets, memory, item.case.delegated_by(terms[0], wanted=True))
            if found[who].answer is not UNKNOWN:
                assert (told.answer, told.held) == (found[who].answer, found[who].held), (who, leaf)
        return found

    async def held(self, leaf: Requirement, **how: bool) -> dict[str, int | None]:
        """Return what everybody holds. What is unknown counts as nothing held, so nothing may be."""
        said = await self.answers(leaf, **how)
        assert not [(who, one.reason) for who, one in said.items() if one.answer is UNKNOWN], leaf
        return {who: one.held for who, one in said.items()}


async def known(town: Town, vault: str, who: str) -> bool:
    async with transaction() as db:
        found = select(Delegation).where(Delegation.vault == vault, Delegation.delegate == town.wallet(who))
        return (await db.exec(found)).first() is not None


async def settled(town: Town) -> bool:
    """Return whether no member of the town is due any more; a reconcile planned for later does not count."""
    async with transaction() as db:
        mine = col(Due.key).startswith(f"{town.server_id}:")
        waiting = await db.exec(select(Due.key).where(mine, col(Due.due_at) <= now()))
        return waiting.first() is None


async def wallets_of(town: Town, who: str, address: str) -> None:
    """Store this wallet as the person's, as a proof does."""
    person = town.people[who]
    async with transaction() as db:
        user_id = await ensure(db, person["id"], person["username"])
        db.add(Wallet(user_id=user_id, family="evm", address=address, method="opensea_bio"))
        await db.flush()
        await queue.mark_people(db, [person["id"]])
        await queue.mark_other_delegates(db, [address], queue.CHANGED)
