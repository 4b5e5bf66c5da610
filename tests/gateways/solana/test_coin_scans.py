"""Coins of many wallets on Solana in one call: exact, kept for a sweep, and never believed in part."""

import asyncio
from base64 import b64encode
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateways.chains.balance_sheet import NATIVE, BalanceSheet, Segment
from gateways.chains.read_point import NEWEST, ReadPoint
from gateways.evm.rpc.errors import rpc_error
from gateways.evm.rpc.node import Head
from gateways.solana import coin_scans
from gateways.solana.balances import SolanaBalances
from gateways.solana.client import SolanaChains
from gateways.solana.coin_scans import FEWEST_OWNERS, CoinScans
from gateways.solana.node import Params, SolanaNode
from gateways.solana.token_accounts import TOKEN_PROGRAMS
from gateways.transport.base58 import decode, encode
from gateways.transport.errors import ProviderError
from sandbox.solana import accounts as sandbox_accounts
from sandbox.solana import rpc as sandbox_rpc
from sandbox.solana.node import RpcError, View
from tests.sandbox.chains.otters import Otters

SOLANA = "solana"
CROWD = [encode((number + 1).to_bytes(32, "big")) for number in range(1_000)]
SCAN, LIST = "getProgramAccounts", "getTokenAccountsByOwner"


async def read(chains: SolanaChains, mints: list[str], owners: list[str], at: ReadPoint = NEWEST) -> BalanceSheet:
    (sheet,) = await chains.balances(SOLANA, [Segment(tuple(mints), tuple(owners), frozenset(mints))], at=at)
    return sheet


async def asked(otters: Otters, since: int = 0) -> list[str]:
    """Return the methods called since a request."""
    told = (await otters.http.get("/control/requests", params={"since": since})).json()
    return [one["rpc_method"] for one in told["requests"] if one["target"] == SOLANA]


async def so_far(otters: Otters) -> int:
    return (await otters.http.get("/control/requests")).json()["next"]


async def held_coins(otters: Otters) -> tuple[str, str, str]:
    """Make two mints, one for each program; member 10 of the crowd has 3 of one, the last member 2 of the other."""
    reef, carol = (await otters.collection("reef-dollar"))["contract"], await otters.wallet("carol")
    young = (await otters.act("deploy", standard="SPL2022", name="Young", slug="young", decimals=2))["contract"]
    await otters.act("mint", contract=young, amount="2", to=CROWD[-1])
    await otters.act("mint", contract=reef, amount="3", to=CROWD[10])
    return reef, young, carol


async def test_a_thousand_wallets_and_two_coins_take_a_handful_of_calls(
    chains: SolanaChains, otters: Otters, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Coins that end further apart have their supplies read in two requests.
    monkeypatch.setattr(coin_scans, "TOGETHER_SECONDS", 60)
    reef, young, carol = await held_coins(otters)
    since = await so_far(otters)
    sheet = await read(chains, [reef, young], [carol, *CROWD])
    assert [sheet.amount(reef, one) for one in (carol, CROWD[10], CROWD[-1])] == [1_000 * 10**6, 3, 0]
    assert [sheet.amount(young, one) for one in (carol, CROWD[10], CROWD[-1])] == [0, 0, 2]
    assert (sheet.unknown(reef), sheet.unknown(young)) == (0, 0)
    calls = await asked(otters, since)
    assert LIST not in calls
    assert (calls.count(SCAN), len(calls)) == (3, 8)
    since = await so_far(otters)
    assert (await read(chains, [reef, young], CROWD)).amount(young, CROWD[-1]) == 2
    assert await asked(otters, since) == [], "a sweep's next page is answered by what was read a moment ago"


async def test_those_who_ask_at_the_same_time_share_one_answer(chains: SolanaChains, otters: Otters) -> None:
    reef, _, carol = await held_coins(otters)
    since = await so_far(otters)
    sheets = await asyncio.gather(*(read(chains, [reef], [carol, *CROWD[at : at + 50]]) for at in (0, 50, 100)))
    assert [sheet.amount(reef, carol) for sheet in sheets] == [1_000 * 10**6] * 3
    assert (await asked(otters, since)).count(SCAN) == 1


async def test_few_wallets_and_confirmations_never_take_what_was_kept(chains: SolanaChains, otters: Otters) -> None:
    reef, young, carol = await held_coins(otters)
    await read(chains, [reef], [carol, *CROWD])
    done = await otters.act("burn", contract=reef, amount=str(1_000 * 10**6), **{"from": carol})
    for at, owners in (
        (ReadPoint(0), [carol, *CROWD]),
        (ReadPoint(None, done["block"]), [carol, *CROWD]),
        (NEWEST, [carol, *CROWD[: FEWEST_OWNERS - 2]]),
    ):
        sheet = await read(chains, [reef, young], owners, at)
        assert sheet.amount(reef, carol) == 0
        assert sheet.block >= done["block"]


@pytest.mark.parametrize("kind", ["down", "500", "empty", "zero", "malformed", "429"])
async def test_no_fault_reads_as_nobody_having_any(chains: SolanaChains, otters: Otters, kind: str) -> None:
    reef, _, carol = await held_coins(otters)
    await otters.fault(kind)
    for owners in ([carol, *CROWD[:30]], CROWD[11:50]):
        with pytest.raises(ProviderError):
            await read(chains, [reef], owners)


async def test_a_node_that_refuses_is_not_asked_again_and_each_wallet_is(
    chains: SolanaChains, otters: Otters, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_view: View, _params: list[Any]) -> Any:
        raise RpcError(-32010, "excluded from account secondary indexes; this RPC method unavailable for key")

    monkeypatch.setitem(sandbox_rpc.DATA, SCAN, (refuse, []))
    reef, _, carol = await held_coins(otters)
    for times in (1, 0):
        since = await so_far(otters)
        sheet = await read(chains, [reef], [carol, *CROWD[:30]])
        assert [sheet.amount(reef, one) for one in (carol, CROWD[10], CROWD[0])] == [1_000 * 10**6, 3, 0]
        assert (await asked(otters, since)).count(SCAN) == times
        assert LIST in await asked(otters, since)


async def test_an_answer_in_part_is_not_believed(
    chains: SolanaChains, otters: Otters, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = sandbox_accounts.get_program_accounts

    def in_part(view: View, params: list[Any]) -> Any:
        answer = whole(view, params)
        return {**answer, "value": answer["value"][1:]}

    monkeypatch.setitem(sandbox_rpc.DATA, SCAN, (in_part, []))
    reef, _, carol = await held_coins(otters)
    sheet = await read(chains, [reef], [carol, *CROWD[:30]])
    assert [sheet.amount(reef, one) for one in (carol, CROWD[10], CROWD[0])] == [1_000 * 10**6, 3, 0]
    assert LIST in await asked(otters)


async def test_a_wallet_that_could_not_be_read_has_the_nodes_own_reason(
    chains: SolanaChains, otters: Otters, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists, reef = sandbox_accounts.get_token_accounts_by_owner, (await otters.collection("reef-dollar"))["contract"]
    carol, dave = await otters.wallet("carol"), await otters.wallet("dave")

    def some(view: View, params: list[Any]) -> Any:
        if params[0] == carol:
            raise RpcError(-32603, "internal error")
        return lists(view, params)

    monkeypatch.setitem(sandbox_rpc.DATA, LIST, (some, []))
    sheet = await read(chains, [reef, NATIVE], [carol, dave])
    assert isinstance(sheet, SolanaBalances)
    assert (sheet.amount(reef, carol), sheet.amount(reef, dave)) == (None, 250 * 10**6)
    assert sheet.amount(NATIVE, carol) is not None
    assert "internal error" in (sheet.doubt(reef, carol) or "")
    assert sheet.doubt(reef, dave) is None


MINT, NOW = CROWD[-1], datetime(2026, 11, 25, tzinfo=UTC)


class OddNode(SolanaNode):
    """A node of one coin whose answers a test can alter."""

    def __init__(self, accounts: list[tuple[int, int]], lost: set[int], supply: int, bent: str) -> None:
        super().__init__(0, "http://node.test")
        self._accounts, self._lost, self._supply, self._bent = accounts, lost, supply, bent

    async def ask(self, method: str, params: Params) -> object:
        if self._bent == method:
            return {"context": {"slot": 9}, "value": [None]}
        if method == "getMultipleAccounts":
            return {"context": {"slot": 9}, "value": [_account(self._supply.to_bytes(8, "little"))]}
        rows = [
            {"pubkey": CROWD[at], "account": _account((decode(CROWD[owner]) or b"") + amount.to_bytes(8, "little"))}
            for at, (owner, amount) in enumerate(self._accounts)
            if at not in self._lost
        ]
        if rows and self._bent == "short":
            rows[0]["account"] = _account(b"1" * 39)
        return {"context": {"slot": 8}, "value": rows}


def _account(data: bytes) -> dict[str, Any]:
    return {"owner": TOKEN_PROGRAMS[0], "data": [b64encode(data).decode(), "base64"]}


@settings(max_examples=200, deadline=None)
@given(
    accounts=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=8),
    lost=st.sets(st.integers(0, 7), max_size=3),
    more=st.integers(-2, 2),
    bent=st.sampled_from(["", "", "", "short", "getMultipleAccounts", SCAN]),
)
def test_what_is_believed_lacks_nobody(accounts: list[tuple[int, int]], lost: set[int], more: int, bent: str) -> None:
    """A node omits accounts or reports another supply: only amounts that add up to the supply are believed."""
    supply = max(0, sum(amount for _, amount in accounts) + more)

    async def scan() -> None:
        node = OddNode(accounts, lost, supply, bent)
        found = await CoinScans().read(
            node, [MINT], Head(9, NOW), deadline=asyncio.get_running_loop().time() + 5, not_before=0, again=False
        )
        if MINT in found:
            assert sum(found[MINT].amounts.values()) == supply > 0
            if not more:
                held = dict.fromkeys(range(6), 0)
                for owner, amount in accounts:
                    held[owner] += amount
                assert {owner: found[MINT].amounts.get(decode(CROWD[owner]) or b"", 0) for owner in held} == held
        elif not more and supply and bent == "":
            assert any(at in lost and amount for at, (_, amount) in enumerate(accounts))
        await node.close()

    asyncio.run(scan())


class Coins(SolanaNode):
    """A node of several coins; member 1 of the crowd has 7 of each. `bent` alters the scan of a mint.

    A number is seconds until the answer, a text a refusal, and "short" a mint with too little data.
    """

    def __init__(self, bent: dict[str, float | str]) -> None:
        super().__init__(0, "http://node.test")
        self.bent = bent
        self.scanned: list[str] = []

    async def ask(self, method: str, params: Params) -> object:
        assert not isinstance(params, dict)
        if method == "getMultipleAccounts":
            sizes = [4 if self.bent.get(mint) == "short" else 8 for mint in cast("list[str]", next(iter(params)))]
            return {"context": {"slot": 9}, "value": [_account((7).to_bytes(size, "little")) for size in sizes]}
        _, options = cast("tuple[str, dict[str, Any]]", params)
        mint = options["filters"][1]["memcmp"]["bytes"]
        self.scanned.append(mint)
        bent = self.bent.get(mint, 0.0)
        if isinstance(bent, str):
            raise rpc_error(self.name, -32600, bent)
        await asyncio.sleep(bent)
        account = _account((decode(CROWD[1]) or b"") + (7).to_bytes(8, "little"))
        return {"context": {"slot": 8}, "value": [{"pubkey": CROWD[0], "account": account}]}


async def scanned(scans: CoinScans, node: SolanaNode, mints: list[str], seconds: float = 4.0) -> set[str]:
    """Return the coins that a whole scan reads in half of this time."""
    deadline = asyncio.get_running_loop().time() + seconds
    found = await scans.read(node, mints, Head(9, NOW), deadline=deadline, not_before=0, again=False)
    assert all(one.amounts == {decode(CROWD[1]): 7} for one in found.values())
    return set(found)


async def test_a_slow_coin_takes_no_time_of_the_others_and_is_left_alone() -> None:
    mints, scans = CROWD[100:130], CoinScans()
    slow = set(mints[:3])
    node = Coins(dict.fromkeys(slow, 60.0))
    found = await scanned(scans, node, mints)
    assert slow.isdisjoint(found)
    assert found <= scans.kept(node, mints, 0).keys(), "what was read serves further questions"
    while found < set(mints[3:]):
        since = len(node.scanned)
        found |= await scanned(scans, node, mints)
        assert len(node.scanned) > since
    assert len(node.scanned) == len(mints), "none is asked for twice"
    assert await scanned(scans, node, mints) == set(mints[3:])


async def test_one_slow_coin_keeps_none_of_the_others_from_being_read() -> None:
    mints = CROWD[100:120]
    node = Coins({mints[7]: 60.0})
    assert await scanned(CoinScans(), node, mints) == {*mints} - {mints[7]}


@pytest.mark.parametrize(
    "refusal",
    [
        "Too many accounts requested (10000001 pubkeys), Please use getProgramAccountsV2 with pagination to handle "
        "large datasets.",
        "Too many accounts requested (Large number of pubkeys)",
        "short",
    ],
)
async def test_a_coin_that_cannot_be_read_so_is_left_alone(refusal: str) -> None:
    mints, scans = CROWD[100:110], CoinScans()
    node = Coins({mints[4]: refusal})
    good = {*mints} - {mints[4]}
    assert await scanned(scans, node, mints) == good
    node.scanned.clear()
    assert await scanned(scans, node, [*mints, CROWD[200]]) == {*good, CROWD[200]}
    assert node.scanned == [CROWD[200]]
