"""The forward trail on a real node: the cost of a wallet's proof does not grow with the wallet's history."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateways import Gateways
from gateways.evm.rpc.errors import StateMissing
from gateways.evm.rpc.pool import NodePool
from gateways.evm.transactions import EvmTransactions, Nonces, Transaction
from gateways.solana.transactions import NewSignatures, SolanaSignature, SolanaTransaction
from gateways.transport.errors import NotThere, ProviderDown
from models import now
from services.wallets import chain_checks, proof_watch
from services.wallets.transaction_check import TransactionOutcome
from services.wallets.watched_challenge import OpenChallenge, Point, SeenTransaction
from tests.gateways.evm_lab import Front, anvil, front, rpc

AMOUNT = 1_234_567
A_LONG_PAST = 3_000
HEAD = 2_000


@pytest.fixture(scope="module")
def node() -> Iterator[str]:
    """A node that lets anybody send, and puts thousands of transactions into one block."""
    with anvil("--auto-impersonate", "--gas-limit", "1000000000", "--no-mining") as url:
        yield url


@pytest.fixture
async def end(node: str) -> AsyncIterator[Front]:
    await rpc(node, "anvil_mine", "0x1")
    async with front(node) as made:
        yield made


async def sends(end: Front, sender: str, values: list[int]) -> None:
    """Send one transaction for each value from the account to itself, in one block, and mine enough blocks on top."""
    first = int(await rpc(end.node, "eth_getTransactionCount", sender, "latest"), 16)
    asked = [
        {"jsonrpc": "2.0", "id": number, "method": "eth_sendTransaction", "params": [
            {"from": sender, "to": sender, "value": hex(value), "gas": "0x5208", "nonce": hex(first + number)}]}
        for number, value in enumerate(values)
    ]  # fmt: skip
    for start in range(0, len(asked), 500):
        answers: list[dict[str, Any]] = await end.passes_on(asked[start : start + 500])
        assert not [one for one in answers if "error" in one]
    await rpc(end.node, "anvil_mine", "0x8", "0x0")


async def proof(end: Front, past: int) -> list[str]:
    """Return the calls that a proof takes for a wallet that has sent `past` transactions before."""
    wallet = "0x" + secrets.token_hex(20)
    await rpc(end.node, "anvil_setBalance", wallet, hex(10**21))
    await sends(end, wallet, [1] * past)
    pool = NodePool({"base": [end.url]}, request_seconds=5.0, deadline=20.0)
    chains = SimpleNamespace(endpoints=lambda _: 0)
    outside = cast("Gateways", SimpleNamespace(transactions=EvmTransactions(pool), chains=chains))
    one = OpenChallenge(1, 1, "evm", wallet, "holdfast-abcdefghjk", AMOUNT, now(), {})
    await chain_checks.check_challenges(outside, [one])
    assert one.points["base"].nonce == past
    end.calls.clear()
    for value in (5, AMOUNT):
        await sends(end, wallet, [value])
        await chain_checks.check_challenges(outside, [one])
    await pool.close()
    assert one.judged is not None
    assert one.judged.outcome is TransactionOutcome.PROVES
    return end.methods()


class TwoMachines:
    """Transactions on a chain as two machines behind one address show them: one counts for accounts, and lags."""

    def __init__(self, sent_in: int, value: int) -> None:
        self.head, self.lag, self.sent_in, self.value = 1_000, 0, sent_in, value

    def chains(self) -> list[str]:
        return ["arbitrum"]

    async def nonces(self, chain: str, accounts: list[str], **_: bool) -> Nonces:
        sent = int(self.sent_in <= self.head - self.lag)
        return Nonces(chain, self.head, dict.fromkeys(accounts, sent), frozenset())

    async def to_themselves(self, chain: str, accounts: set[str], first: int, last: int) -> list[Transaction]:
        return [self.sent(one) for one in accounts if first <= self.sent_in <= last]

    async def transaction(self, chain: str, hash: str, account: str = "", **_: int) -> Transaction:
        return self.sent(account)

    def sent(self, by: str) -> Transaction:
        confirmed = self.head - self.sent_in + 1
        return Transaction("arbitrum", "0x11", by, by, self.value, b"", 0, self.sent_in, now(), True, confirmed)


async def test_a_count_of_transactions_that_lags_behind_the_head_hides_no_proof() -> None:
    wallet, node = "0x" + secrets.token_hex(20), TwoMachines(1_004, AMOUNT)
    chains = SimpleNamespace(endpoints=lambda _: 1)
    outside = cast("Gateways", SimpleNamespace(transactions=node, chains=chains))
    one = OpenChallenge(1, 1, "evm", wallet, "holdfast-abcdefghjk", AMOUNT, now(), {})
    for node.head, node.lag in ((1_000, 0), (1_014, 12), (1_026, 0)):
        await chain_checks.check_challenges(outside, [one])
    assert one.judged is not None
    assert one.judged.outcome is TransactionOutcome.PROVES


async def test_thousands_of_earlier_transactions_cost_a_proof_not_one_request_more(end: Front) -> None:
    fresh = await proof(end, 0)
    assert len(fresh) <= 40
    assert await proof(end, A_LONG_PAST) == fresh


class Nodes:
    """Nodes of Ethereum and Base at block HEAD; each account has sent one transaction to itself in the block before."""

    def __init__(self) -> None:
        self.read: list[tuple[int, int]] = []
        self.forgetful = False
        """Whether they have no past states."""

    def gateways(self) -> Gateways:
        chains = SimpleNamespace(endpoints=lambda _: 1)
        return cast("Gateways", SimpleNamespace(transactions=self, chains=chains))

    def chains(self) -> list[str]:
        return ["base", "ethereum"]

    async def nonces(self, chain: str, accounts: list[str], **_: bool) -> Nonces:
        return Nonces(chain, HEAD, dict.fromkeys(accounts, 1), frozenset())

    async def to_themselves(self, chain: str, accounts: set[str], first: int, last: int) -> list[Transaction]:
        self.read.append((first, last))
        return [self.sent(chain, one) for one in accounts if first <= HEAD - 1 <= last]

    async def busy_blocks(self, chain: str, account: str, *_: object) -> list[int]:
        if self.forgetful:
            raise StateMissing("the node", "no such state")
        return [HEAD - 1]

    async def transaction(self, chain: str, hash: str, account: str = "", **_: int) -> Transaction:
        return self.sent(chain, account)

    def sent(self, chain: str, by: str) -> Transaction:
        return Transaction(chain, f"0x{chain}", by, by, AMOUNT, b"", 0, HEAD - 1, now(), True, 100)


def watched(user: int, seen_on: str = "", **blocks: int) -> OpenChallenge:
    """Return a challenge of a person whose wallet had sent nothing in these blocks of the chains."""
    points = {chain: Point(0, block, 1) for chain, block in blocks.items()}
    wallet = "0x" + secrets.token_hex(20)
    one = OpenChallenge(user, user, "evm", wallet, "holdfast-abcdefghjk", AMOUNT, now(), points)
    one.seen = SeenTransaction(seen_on, "0xseen", HEAD - 1, 0, 1, 12) if seen_on else None
    return one


def proved_on(one: OpenChallenge) -> str | None:
    proved = one.judged is not None and one.judged.outcome is TransactionOutcome.PROVES
    return one.found.chain if proved and one.found is not None else None


async def test_a_chain_that_is_silent_about_a_transaction_hides_no_proof_on_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes = Nodes()

    async def silent(chain: str, hash: str, account: str = "", **_: int) -> Transaction:
        if chain == "ethereum":
            raise ProviderDown("Ethereum", "no answer")
        return nodes.sent(chain, account)

    monkeypatch.setattr(nodes, "transaction", silent)
    one = watched(1, "ethereum", ethereum=HEAD, base=HEAD - 5)
    await chain_checks.check_challenges(nodes.gateways(), [one])
    assert proved_on(one) == "base"


async def test_nobody_waits_for_a_node_that_is_silent_about_somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes, asked, waited = Nodes(), asyncio.Event(), list[bool]()

    async def slow(chain: str, hash: str, account: str = "", **_: int) -> Transaction:
        if chain == "ethereum":
            try:
                await asyncio.wait_for(asked.wait(), 5)
            except TimeoutError:
                waited.append(True)
            raise ProviderDown("Ethereum", "no answer")
        asked.set()
        return nodes.sent(chain, account)

    monkeypatch.setattr(nodes, "transaction", slow)
    one, other = watched(1, "ethereum", ethereum=HEAD, base=HEAD), watched(2, ethereum=HEAD, base=HEAD - 5)
    one.points["ethereum"] = one.points["base"] = other.points["ethereum"] = Point(1, HEAD, 1)
    await chain_checks.check_challenges(nodes.gateways(), [one, other])
    assert (proved_on(other), waited) == ("base", [])


async def test_one_account_whose_past_cannot_be_read_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes, known = Nodes(), Nodes().busy_blocks
    broken, far, new = watched(1, base=500), watched(2, base=500), watched(3)

    async def fails(chain: str, account: str, *more: object) -> list[int]:
        if account == broken.address:
            raise ProviderDown("Base", "no answer")
        return await known(chain, account, *more)

    monkeypatch.setattr(nodes, "busy_blocks", fails)
    await chain_checks.check_challenges(nodes.gateways(), [broken, far, new])
    assert (broken.points["base"].block, broken.unreachable) == (500, {"base"})
    assert (proved_on(far), far.unreachable) == ("base", set())
    assert new.points["base"].block == HEAD


async def test_one_account_that_was_not_read_for_long_hides_no_fresh_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes, older, fresh = Nodes(), watched(1, base=HEAD - 250), watched(2, base=HEAD - 5)
    older.points["ethereum"] = fresh.points["ethereum"] = Point(1, HEAD, 1)
    known = nodes.to_themselves

    async def fails(chain: str, accounts: set[str], first: int, last: int) -> list[Transaction]:
        if last - first > 100:
            raise ProviderDown("Base", "no answer")
        return await known(chain, accounts, first, last)

    monkeypatch.setattr(nodes, "to_themselves", fails)
    await chain_checks.check_challenges(nodes.gateways(), [older, fresh])
    assert (proved_on(fresh), older.points["base"].block) == ("base", HEAD - 250)


async def test_a_long_search_in_old_blocks_goes_on_where_it_was_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes, one = Nodes(), watched(1, base=500)
    one.points["ethereum"] = Point(1, HEAD, 1)
    nodes.forgetful, begun = True, nodes.to_themselves

    async def stops(chain: str, accounts: set[str], first: int, last: int) -> list[Transaction]:
        if len(nodes.read) == 3:
            await asyncio.Event().wait()
        return await begun(chain, accounts, first, last)

    monkeypatch.setattr(nodes, "to_themselves", stops)
    await chain_checks.check_challenges(nodes.gateways(), [one], patience=0.5)
    reached = one.points["base"].block
    assert reached == max(last for _, last in nodes.read) > 500
    monkeypatch.setattr(nodes, "to_themselves", begun)
    nodes.read.clear()
    one.unreachable.clear()
    await chain_checks.check_challenges(nodes.gateways(), [one])
    assert proved_on(one) == "base"
    assert min(first for first, _ in nodes.read) > reached - 10


async def test_a_wallet_of_solana_whose_signatures_do_not_come_hides_no_other() -> None:
    silent, other = (
        OpenChallenge(user, user, "solana", f"wallet {user}", "code", 1, now(), {"solana": Point(0, 5, 1)})
        for user in (1, 2)
    )

    async def newer_signatures(address: str, _slot: int) -> NewSignatures:
        if address == silent.address:
            await asyncio.Event().wait()
        return NewSignatures([SolanaSignature("sig", 9, True, None)], True)

    solana = SimpleNamespace(newer_signatures=newer_signatures)
    chains = SimpleNamespace(endpoints=lambda _: 1)
    outside = cast("Gateways", SimpleNamespace(transactions=Nodes(), solana=solana, chains=chains))
    await chain_checks.check_challenges(outside, [silent, other], patience=0.5)
    assert (silent.points["solana"].block, other.points["solana"].block) == (5, 9)


async def silent_ethereum(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make Ethereum's nodes answer no question about accounts."""
    known = nodes.nonces

    async def silent(chain: str, accounts: list[str], **more: bool) -> Nonces:
        if chain == "ethereum":
            await asyncio.Event().wait()
        return await known(chain, accounts, **more)

    monkeypatch.setattr(nodes, "nonces", silent)


async def test_a_proof_on_one_chain_waits_for_no_silent_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes, one = Nodes(), watched(1, ethereum=HEAD - 5, base=HEAD - 5)
    await silent_ethereum(nodes, monkeypatch)
    # Far longer than the test may take: the check must not wait for this.
    async with asyncio.timeout(60):
        await chain_checks.check_challenges(nodes.gateways(), [one], patience=3_600)
    assert (proved_on(one), one.points["ethereum"].block) == ("base", HEAD - 5)


async def test_a_transaction_that_waits_on_another_chain_is_neither_replaced_nor_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes, gone = Nodes(), False

    async def waits(chain: str, hash: str, account: str = "", **_: int) -> Transaction:
        if chain == "ethereum" and gone:
            raise NotThere("Ethereum", "no such transaction")
        return replace(nodes.sent(chain, account), hash=hash, confirmations=1)

    monkeypatch.setattr(nodes, "transaction", waits)
    one = watched(1, "ethereum", ethereum=HEAD, base=HEAD - 5)
    one.points["ethereum"] = Point(1, HEAD, 1)
    await chain_checks.check_challenges(nodes.gateways(), [one])
    assert one.seen is not None
    assert (one.seen.chain, one.points["base"]) == ("ethereum", Point(0, HEAD - 5, 1))
    gone = True
    for _ in range(2):
        one.candidates.clear()
        one.judged = None
        await chain_checks.check_challenges(nodes.gateways(), [one])
    assert one.seen.chain == "base"


class MentionedWallet:
    """A node of Solana that lists more new mentions of a wallet than are read; the wallet signed one of them."""

    def __init__(self, signed: int) -> None:
        self.signed, self.mentions, self.asked = signed, range(101, 6_101), list[int]()

    def gateways(self) -> Gateways:
        chains = SimpleNamespace(endpoints=lambda _: 1)
        return cast("Gateways", SimpleNamespace(solana=self, chains=chains, transactions=Nodes()))

    async def newer_signatures(self, _address: str, slot: int) -> NewSignatures:
        self.asked.append(slot)
        fresh = [one for one in self.mentions if one > slot]
        listed = [SolanaSignature(f"sig{one}", one, True, self.memo(one)) for one in fresh[-5_000:]]
        return NewSignatures(listed, len(fresh) <= 5_000)

    def memo(self, slot: int) -> str | None:
        return "[4] code" if slot == self.signed else None

    async def memo_transaction(self, signature: str, **_: int) -> SolanaTransaction:
        return SolanaTransaction(signature, self.signed, now(), True, ("wallet",), ("code",))


def mentioned() -> OpenChallenge:
    return OpenChallenge(1, 1, "solana", "wallet", "code", 1, now(), {"solana": Point(0, 100, 100)})


async def test_thousands_of_mentions_of_a_wallet_do_not_hide_its_memo_among_the_newest() -> None:
    one = mentioned()
    await chain_checks.check_challenges(MentionedWallet(6_090).gateways(), [one])
    assert proved_on(one) == "solana"


async def test_a_memo_that_thousands_of_mentions_hid_needs_its_signature_and_a_later_one_is_found() -> None:
    node, one = MentionedWallet(102), mentioned()
    await chain_checks.check_challenges(node.gateways(), [one])
    assert (proved_on(one), one.unreachable, one.points["solana"].lost) == (None, set(), True)
    node.signed = 6_105
    node.mentions = range(101, 6_111)
    await chain_checks.check_challenges(node.gateways(), [one])
    assert (proved_on(one), node.asked) == ("solana", [100, 6_100])


class FloodingWallet(MentionedWallet):
    """A wallet of somebody who sends memos with their own code, of which only one proves anything."""

    def __init__(self, signed: int) -> None:
        super().__init__(signed)
        self.judged = list[str]()

    def memo(self, slot: int) -> str | None:
        return "[4] code"

    async def memo_transaction(self, signature: str, **_: int) -> SolanaTransaction:
        self.judged.append(signature)
        slot = int(signature.removeprefix("sig"))
        signers = ("wallet",) if slot == self.signed else ("wallet", "another")
        return SolanaTransaction(signature, slot, now(), True, signers, ("code",))


async def test_thousands_of_memos_with_a_members_own_code_cost_few_requests() -> None:
    node, one = FloodingWallet(0), mentioned()
    node.mentions = range(101, 5_000)
    for _ in range(30):
        before = len(node.judged)
        await chain_checks.check_challenges(node.gateways(), [one])
        assert len(node.judged) - before <= proof_watch.MEMOS_AT_ONCE
    assert len(node.judged) == proof_watch.MEMOS_IN_ALL
    assert (proved_on(one), one.points["solana"].lost) == (None, True)


async def test_a_memo_behind_others_that_prove_nothing_is_found_by_a_later_check() -> None:
    node, one = FloodingWallet(145), mentioned()
    node.mentions = range(101, 151)
    checks = 0
    while proved_on(one) is None and checks < 10:
        await chain_checks.check_challenges(node.gateways(), [one])
        checks += 1
    assert (proved_on(one), checks, len(node.judged)) == ("solana", 3, len(set(node.judged)))
