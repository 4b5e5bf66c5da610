"""Coins on Solana: exact amounts over all token accounts and both programs, and no fault that reads as zero."""

from base64 import b64encode
from typing import Any

import orjson
import pytest

from gateways.chains.balance_sheet import NATIVE, BalanceSheet, Segment
from gateways.chains.coin_facts import CoinFacts
from gateways.chains.read_point import NEWEST, ReadPoint
from gateways.solana import coins
from gateways.solana.balances import SolanaBalances
from gateways.solana.client import SolanaChains
from gateways.solana.token_accounts import WRAPPED_SOL
from gateways.transport.base58 import encode
from gateways.transport.errors import ProviderError
from sandbox.solana import accounts as sandbox_accounts
from sandbox.solana import rpc as sandbox_rpc
from sandbox.solana.assets import AIRDROP, FEE
from sandbox.solana.node import RpcError, View
from tests.sandbox.chains.otters import OTTERS, STRANGER, Otters

SOLANA = "solana"
NOBODY = ["1" * 31 + letter for letter in "23456789"]
FAULTS = ["down", "500", "empty", "zero", "malformed", "429"]


async def deployed(otters: Otters, standard: str, **more: Any) -> str:
    slug = f"{standard.lower()}-coin"
    return (await otters.act("deploy", standard=standard, name="Some Coin", slug=slug, **more))["contract"]


async def read(chains: SolanaChains, mints: list[str], owners: list[str], at: ReadPoint = NEWEST) -> BalanceSheet:
    (sheet,) = await chains.balances(SOLANA, [Segment(tuple(mints), tuple(owners), frozenset(mints))], at=at)
    return sheet


async def test_amounts_of_both_programs_and_lamports_are_exact(chains: SolanaChains, otters: Otters) -> None:
    reef = (await otters.collection("reef-dollar"))["contract"]
    young = await deployed(otters, "SPL2022", decimals="9")
    third = await deployed(otters, "SPL", decimals=0)
    await otters.act("mint", contract=young, amount=str(2**64 - 1), to=STRANGER)
    await otters.act("mint", contract=third, amount="3", to=STRANGER)
    carol = await otters.wallet("carol")
    await otters.act("transfer", contract=reef, amount="1", to=STRANGER, **{"from": carol})
    owners = [carol, STRANGER, NOBODY[0]]
    sheet = await read(chains, [reef, young, NATIVE], owners)
    assert [sheet.amount(reef, owner) for owner in owners] == [1_000 * 10**6 - 1, 1, 0]
    assert [sheet.amount(young, owner) for owner in owners] == [0, 2**64 - 1, 0]
    lamports = [sheet.amount(NATIVE, owner) for owner in owners]
    assert lamports == [AIRDROP - FEE, 0, 0]
    assert [sheet.unknown(one) for one in (reef, young, NATIVE)] == [0, 0, 0]
    assert dict(sheet.holders(young)) == {STRANGER: 2**64 - 1}
    assert (sheet.amount(reef, NOBODY[1]), sheet.amount(NOBODY[0], carol)) == (None, None)
    several = await read(chains, [reef, young, third], owners)
    assert [several.amount(third, owner) for owner in owners] == [0, 3, 0]
    assert [several.amount(reef, owner) for owner in owners] == [sheet.amount(reef, owner) for owner in owners]


async def test_what_was_spent_is_gone_and_a_later_slot_confirms_it(chains: SolanaChains, otters: Otters) -> None:
    reef, erin = (await otters.collection("reef-dollar"))["contract"], await otters.wallet("erin")
    done = await otters.act("burn", contract=reef, amount=str(20 * 10**6), **{"from": erin})
    for endpoint in (None, 0):
        sheet = await read(chains, [reef], [erin], ReadPoint(endpoint, done["block"]))
        assert sheet.amount(reef, erin) == 0
        assert sheet.block >= done["block"]


@pytest.mark.parametrize("kind", FAULTS)
async def test_no_fault_ever_reads_as_having_none(chains: SolanaChains, otters: Otters, kind: str) -> None:
    reef, carol = (await otters.collection("reef-dollar"))["contract"], await otters.wallet("carol")
    assert (await read(chains, [reef, NATIVE], [carol])).amount(reef, carol)
    await otters.fault(kind)
    for coin in (reef, NATIVE):
        for owner in (carol, NOBODY[0]):
            with pytest.raises(ProviderError):
                await read(chains, [coin], [owner])


async def test_an_owner_whose_accounts_cannot_be_read_is_unknown_alone(
    chains: SolanaChains, otters: Otters, monkeypatch: pytest.MonkeyPatch
) -> None:
    reef, carol, dave = (
        (await otters.collection("reef-dollar"))["contract"],
        await otters.wallet("carol"),
        await otters.wallet("dave"),
    )
    accounts = coins.CoinRead._accounts

    async def failing(self: coins.CoinRead, owner: str, wanted: dict[str, str]) -> list[tuple[str, int]]:
        if owner == dave:
            raise ProviderError("Solana", "too many accounts")
        return await accounts(self, owner, wanted)

    monkeypatch.setattr(coins.CoinRead, "_accounts", failing)
    sheet = await read(chains, [reef, NATIVE], [carol, dave])
    assert (sheet.amount(reef, carol), sheet.amount(reef, dave)) == (1_000 * 10**6, None)
    assert sheet.unknown(reef) == 1
    assert sheet.amount(NATIVE, dave) == AIRDROP


async def test_nobody_has_any_only_where_the_node_shows_somebody_who_does_or_a_supply_of_none(
    chains: SolanaChains, otters: Otters, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh, wallet = await deployed(otters, "SPL", decimals=6), await otters.wallet("carol")
    assert (await read(chains, [fresh], [NOBODY[0]])).amount(fresh, NOBODY[0]) == 0
    assert (await read(chains, [fresh], [NOBODY[0]], ReadPoint(0))).amount(fresh, NOBODY[0]) == 0
    with pytest.raises(ProviderError, match="could not find mint"):
        await read(chains, [wallet], [NOBODY[0]])
    monkeypatch.setitem(sandbox_rpc.DATA, "getMultipleAccounts", (refused, []))
    with pytest.raises(ProviderError, match="does not show"):
        await read(chains, [fresh], [NOBODY[0]])
    monkeypatch.undo()
    await otters.act("mint", contract=fresh, amount="1", to=STRANGER)
    monkeypatch.setitem(sandbox_rpc.DATA, "getTokenLargestAccounts", (refused, []))
    with pytest.raises(ProviderError, match="does not show"):
        await read(chains, [fresh], [NOBODY[0]])
    monkeypatch.undo()
    assert (await read(chains, [fresh], [NOBODY[0]])).amount(fresh, NOBODY[0]) == 0
    await otters.act("burn", contract=fresh, amount="1", **{"from": STRANGER})
    assert (await read(chains, [fresh], [STRANGER])).amount(fresh, STRANGER) == 0


def no_account(view: View, _params: list[Any]) -> Any:
    return {"context": {"slot": view.slot}, "value": []}


def refused(_view: View, _params: list[Any]) -> Any:
    raise RpcError(-32601, "Method not found")


async def test_a_coin_that_shows_no_holder_is_unknown_alone(
    chains: SolanaChains, otters: Otters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only this coin of a crowd's coins is read wallet by wallet, and the node does not say who holds it."""
    reef, carol = (await otters.collection("reef-dollar"))["contract"], await otters.wallet("carol")
    odd, empty = await deployed(otters, "SPL", decimals=0), await deployed(otters, "SPL2022", decimals=0)
    await otters.act("mint", contract=odd, amount="5", to=STRANGER)
    scan = sandbox_accounts.get_program_accounts

    def some(view: View, params: list[Any]) -> Any:
        if any(one.get("memcmp", {}).get("bytes") == odd for one in params[1]["filters"]):
            raise RpcError(-32600, "Too many accounts requested (10000001 pubkeys)")
        return scan(view, params)

    monkeypatch.setitem(sandbox_rpc.DATA, "getProgramAccounts", (some, []))
    monkeypatch.setitem(sandbox_rpc.DATA, "getTokenLargestAccounts", (refused, []))
    crowd = [carol, *(encode((number + 1).to_bytes(32, "big")) for number in range(30))]
    sheet = await read(chains, [reef, odd, empty, NATIVE], crowd)
    assert isinstance(sheet, SolanaBalances)
    assert (sheet.amount(reef, carol), sheet.unknown(reef), sheet.unknown(NATIVE)) == (1_000 * 10**6, 0, 0)
    assert (sheet.amount(odd, carol), sheet.unknown(odd)) == (None, len(crowd))
    assert coins.UNSHOWN in (sheet.doubt(odd, carol) or "")
    assert [sheet.amount(empty, owner) for owner in crowd] == [0] * len(crowd), "its mint says that there is none"
    monkeypatch.setitem(sandbox_rpc.DATA, "getTokenLargestAccounts", (sandbox_accounts.get_token_largest_accounts, []))
    assert (await read(chains, [odd, empty], crowd)).unknown(odd) == 0
    monkeypatch.setitem(sandbox_rpc.DATA, "getTokenAccountsByOwner", (no_account, []))
    sheet = await read(chains, [reef, odd], crowd)
    assert isinstance(sheet, SolanaBalances)
    assert (sheet.amount(reef, carol), sheet.unknown(odd)) == (1_000 * 10**6, len(crowd))
    assert coins.SILENT in (sheet.doubt(odd, carol) or "")
    with pytest.raises(ProviderError):
        await read(chains, [odd], crowd)


@pytest.mark.parametrize("owners", [1, 31])
async def test_a_coin_whose_mint_was_closed_is_nobodys_at_a_node_that_has_other_accounts(
    chains: SolanaChains, otters: Otters, monkeypatch: pytest.MonkeyPatch, owners: int
) -> None:
    """Without it, a rule on such a coin would never again say anything about anybody."""
    closed, crowd = NOBODY[3], [encode((number + 1).to_bytes(32, "big")) for number in range(owners)]
    accounts, gone = sandbox_accounts.get_multiple_accounts, {closed}

    def without_closed(view: View, params: list[Any]) -> Any:
        said = accounts(view, params)
        value = [None if one in gone else item for one, item in zip(params[0], said["value"], strict=True)]
        return said | {"value": value}

    monkeypatch.setitem(sandbox_rpc.DATA, "getMultipleAccounts", (without_closed, []))
    for at in (NEWEST, ReadPoint(0, settled=True)):
        sheet = await read(chains, [closed], crowd, at)
        assert [sheet.amount(closed, owner) for owner in crowd] == [0] * owners
    gone.add(coins.KNOWN_ACCOUNT)
    with pytest.raises(ProviderError):
        await read(chains, [closed], crowd)


async def test_a_coin_that_somebody_has_is_not_nobodys_although_its_mint_is_not_there(
    chains: SolanaChains, otters: Otters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service behind one address asks several nodes, and one of them may be behind."""
    reef, carol, dave = (
        (await otters.collection("reef-dollar"))["contract"],
        await otters.wallet("carol"),
        await otters.wallet("dave"),
    )
    accounts, lists = sandbox_accounts.get_multiple_accounts, sandbox_accounts.get_token_accounts_by_owner

    def without_mint(view: View, params: list[Any]) -> Any:
        said = accounts(view, params)
        value = [None if one == reef else item for one, item in zip(params[0], said["value"], strict=True)]
        return said | {"value": value}

    def without_dave(view: View, params: list[Any]) -> Any:
        return refused(view, params) if params[0] == dave else lists(view, params)

    monkeypatch.setitem(sandbox_rpc.DATA, "getMultipleAccounts", (without_mint, []))
    monkeypatch.setitem(sandbox_rpc.DATA, "getTokenAccountsByOwner", (without_dave, []))
    sheet = await read(chains, [reef], [carol, dave])
    assert (sheet.amount(reef, carol), sheet.amount(reef, dave)) == (1_000 * 10**6, None)


async def test_a_coin_is_read_only_for_those_who_are_asked_about_it(chains: SolanaChains, otters: Otters) -> None:
    reef, carol = (await otters.collection("reef-dollar"))["contract"], await otters.wallet("carol")
    other = await deployed(otters, "SPL", decimals=0)
    await otters.act("mint", contract=other, amount="5", to=STRANGER)
    crowd = [carol, *(encode((number + 1).to_bytes(32, "big")) for number in range(30))]
    since = (await otters.http.get("/control/requests")).json()["next"]
    mine, theirs, empty = await chains.balances(
        SOLANA,
        [
            Segment((reef,), tuple(crowd), frozenset({reef})),
            Segment((other,), (STRANGER, carol), frozenset({other})),
            Segment((NATIVE,), (), frozenset({NATIVE})),
        ],
    )
    assert [mine.amount(reef, owner) for owner in crowd] == [1_000 * 10**6] + [0] * 30
    assert [theirs.amount(other, owner) for owner in (STRANGER, carol, crowd[1])] == [5, 0, None]
    assert (theirs.amount(reef, carol), mine.amount(other, carol), empty.amount(NATIVE, carol)) == (None,) * 3
    told = (await otters.http.get("/control/requests", params={"since": since})).json()["requests"]
    asked = [one["rpc_method"] for one in told]
    assert (asked.count("getTokenAccountsByOwner"), asked.count("getProgramAccounts")) == (2, 1)


async def test_who_closed_the_account_has_none_at_a_node_that_does_not_say_who_holds_most(
    chains: SolanaChains, otters: Otters, monkeypatch: pytest.MonkeyPatch
) -> None:
    reef, carol, dave = (
        (await otters.collection("reef-dollar"))["contract"],
        await otters.wallet("carol"),
        await otters.wallet("dave"),
    )
    lists, works = sandbox_accounts.get_token_accounts_by_owner, True

    def without_closed(view: View, params: list[Any]) -> Any:
        return lists(view, params) if works and params[0] != carol else no_account(view, params)

    monkeypatch.setitem(sandbox_rpc.DATA, "getTokenLargestAccounts", (refused, []))
    assert (await read(chains, [reef], [carol, dave])).amount(reef, carol)
    monkeypatch.setitem(sandbox_rpc.DATA, "getTokenAccountsByOwner", (without_closed, []))
    for at in (NEWEST, ReadPoint(0)):
        assert (await read(chains, [reef], [carol], at)).amount(reef, carol) == 0
    monkeypatch.setitem(sandbox_rpc.DATA, "getTokenLargestAccounts", (sandbox_accounts.get_token_largest_accounts, []))
    with pytest.raises(ProviderError, match=coins.SILENT):  # the node itself says that she has most of it
        await read(chains, [reef], [carol])
    monkeypatch.setitem(sandbox_rpc.DATA, "getTokenLargestAccounts", (refused, []))
    works = False
    with pytest.raises(ProviderError, match="does not show"):
        await read(chains, [reef], [carol])


def as_wrapped_sol(monkeypatch: pytest.MonkeyPatch, mint: str, wrapped: str) -> None:
    """Show a coin under the address of wrapped SOL, and as its mint has it: with a supply of 0."""

    def renamed(one: Any, old: str, new: str) -> Any:
        return orjson.loads(orjson.dumps(one).replace(old.encode(), new.encode()))

    def method(ask: Any) -> Any:
        def answered(view: View, params: list[Any]) -> Any:
            answer = renamed(ask(view, renamed(params, wrapped, mint)), mint, wrapped)
            for place, asked in enumerate(params[0] if isinstance(params[0], list) else ()):
                if asked == wrapped:
                    data = answer["value"][place]["data"]
                    if isinstance(data, list):
                        data[0] = b64encode(bytes(8)).decode()
                    else:
                        data["parsed"]["info"]["supply"] = "0"
            return answer

        return answered

    for name in ("getMultipleAccounts", "getProgramAccounts", "getTokenAccountsByOwner"):
        ask, at = sandbox_rpc.DATA[name]
        monkeypatch.setitem(sandbox_rpc.DATA, name, (method(ask), at))


@pytest.mark.parametrize("wrapped", sorted(WRAPPED_SOL))
async def test_wrapped_sol_counts_although_its_mint_shows_no_supply(
    chains: SolanaChains, otters: Otters, monkeypatch: pytest.MonkeyPatch, wrapped: str
) -> None:
    coin = await deployed(otters, "SPL" if wrapped.startswith("So") else "SPL2022", decimals=9)
    await otters.act("mint", contract=coin, amount="7", to=STRANGER)
    as_wrapped_sol(monkeypatch, coin, wrapped)
    crowd = [encode((number + 1).to_bytes(32, "big")) for number in range(30)]
    with pytest.raises(ProviderError):
        await read(chains, [wrapped], crowd[:2])
    for at in (NEWEST, ReadPoint(0)):
        sheet = await read(chains, [wrapped], [STRANGER, *crowd], at)
        assert [sheet.amount(wrapped, owner) for owner in (STRANGER, crowd[0])] == [7, 0]


async def test_a_mint_says_what_it_is(chains: SolanaChains, otters: Otters) -> None:
    reef = (await otters.collection("reef-dollar"))["contract"]
    young = await deployed(otters, "SPL2022", decimals="30")
    assert await chains.coin(SOLANA, reef) == CoinFacts("Reef Dollar", "", 6)
    found = await chains.coin(SOLANA, young)
    assert found is not None
    assert (found.decimals, found.title) == (30, "Some Coin")
    own = await chains.coin(SOLANA, NATIVE)
    assert own is not None
    assert (own.decimals, own.title) == (9, "SOL")
    otter = await otters.collection(OTTERS)
    for nft in (otter["contract"], otter["tokens"][0]["id"]):
        found = await chains.coin(SOLANA, nft)
        assert found is not None
        assert found.decimals is None, "the mint of an NFT is not a coin"
    wallet = await chains.coin(SOLANA, NOBODY[0])
    assert wallet is None or wallet.decimals is None
