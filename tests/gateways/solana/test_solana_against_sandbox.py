"""Solana's gateways with the sandbox's Solana: who holds what, under every fault."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateways.chains.metadata_traits import Trait
from gateways.chains.read_point import ReadPoint
from gateways.chains.token_sheet import TokenHints
from gateways.solana.client import FEWEST_FOR_A_SCAN, SolanaChains
from gateways.solana.collection_owners import CollectionOwners
from gateways.solana.node import SolanaNodes
from gateways.solana.token_records import SolanaRecords
from gateways.solana.transactions import SolanaTransactions
from gateways.transport.errors import ProviderError
from tests.sandbox.chains.otters import OTTERS, STRANGER, Otters
from tests.support.balances import balances

SOLANA = "solana"
NOBODY = ["1" * 31 + letter for letter in "23456789"]
FAULTS = ["down", "500", "empty", "zero", "malformed"]


@pytest.fixture
async def nodes(otters: Otters) -> AsyncIterator[SolanaNodes]:
    made = SolanaNodes([f"{str(otters.http.base_url).rstrip('/')}/solana"], request_seconds=2, deadline=9)
    yield made
    await made.close()


@pytest.fixture
def chains(nodes: SolanaNodes) -> SolanaChains:
    return SolanaChains(nodes)


async def owned(otters: Otters) -> dict[str, dict[str, int]]:
    """Return the sandbox world's holdings as owner → asset → 1."""
    found: dict[str, dict[str, int]] = {}
    for token in (await otters.collection())["tokens"]:
        found.setdefault(next(iter(token["owners"])), {})[token["id"]] = 1
    return found


@pytest.mark.parametrize("crowd", [0, FEWEST_FOR_A_SCAN], ids=["by wallets", "by the whole collection"])
async def test_everybodys_tokens_are_what_the_world_says(chains: SolanaChains, otters: Otters, crowd: int) -> None:
    world, contract = await owned(otters), (await otters.collection())["contract"]
    owners = [*list(world)[:3], *NOBODY[:crowd], STRANGER]
    sheet = await chains.tokens(SOLANA, contract, owners)
    assert sheet.held == {owner: world[owner] for owner in owners if owner in world}
    assert sheet.unsure == {}
    assert (sheet.chain, sheet.contract, sheet.endpoint, sheet.source) == (SOLANA, contract, 0, "Solana node 1")
    amounts = await balances(chains, SOLANA, [contract], owners)
    assert {owner: amounts.amount(contract, owner) for owner in owners} == {
        owner: len(world.get(owner, {})) for owner in owners
    }
    assert (amounts.amount(contract, "1" * 32), amounts.unknown(contract)) == (None, 0)
    assert dict(amounts.holders(contract)) == {owner: len(world[owner]) for owner in owners if owner in world}
    logged = (await otters.http.get("/control/requests")).json()["requests"]
    assert any(one["rpc_method"] == "getAssetsByOwner" for one in logged) is (crowd == 0)


async def test_the_pages_of_a_collection_name_everybody_or_fail(nodes: SolanaNodes, otters: Otters) -> None:
    world, contract = await owned(otters), (await otters.collection())["contract"]
    held = {token: owner for owner, tokens in world.items() for token in tokens}
    reader = CollectionOwners(nodes)
    page = await reader.page(contract)
    assert (page.owners, page.unclear) == (held, 0)
    assert (await reader.page(contract, page.after))[:3] == ({}, 0, None)
    for kind in FAULTS:
        await otters.fault(kind)
        if kind == "zero":  # lists contain no balances
            assert (await reader.page(contract)).owners == held
            continue
        for after in (None, page.after):
            with pytest.raises(ProviderError):
                await reader.page(contract, after)


async def test_any_nft_is_one_nft(chains: SolanaChains, otters: Otters) -> None:
    carol, contract = await otters.wallet("carol"), (await otters.collection())["contract"]
    coin = await otters.act("mint", contract=OTTERS, to=NOBODY[0], interface="FungibleToken")
    sheet = await chains.anything(SOLANA, [carol, STRANGER, NOBODY[0], NOBODY[1]])
    assert sheet.held.keys() == {carol, STRANGER}
    assert next(iter(sheet.of(carol))).startswith(f"{contract}:")
    assert sheet.unsure == {}
    assert coin["token_id"] not in str(sheet)
    assert (await chains.anything(SOLANA, NOBODY[:2])).held == {}


@pytest.mark.parametrize(
    ("special", "counts"),
    [
        ({"frozen": True, "delegate": STRANGER}, True),
        ({"compressed": True}, True),
        ({"interface": "MplCoreAsset"}, True),
        ({"verified": False}, False),
        ({"interface": "FungibleAsset"}, False),
    ],
    ids=["listed", "compressed", "core", "unverified", "semi-fungible"],
)
@pytest.mark.parametrize("crowd", [0, FEWEST_FOR_A_SCAN], ids=["by wallets", "by the whole collection"])
async def test_what_counts_of_special_assets(
    chains: SolanaChains, otters: Otters, special: dict[str, Any], counts: bool, crowd: int
) -> None:
    contract = (await otters.collection())["contract"]
    token = (await otters.act("mint", contract=OTTERS, to=NOBODY[0], **special))["token_id"]
    owners = NOBODY[: crowd + 1]
    sheet = await chains.tokens(SOLANA, contract, owners)
    assert (sheet.held, sheet.unsure) == ({NOBODY[0]: {token: 1}} if counts else {}, {})
    single = await chains.tokens(SOLANA, contract, owners, token_ids=[token])
    # An index that shows no unverified collection looks like one that has lost the token's collection.
    unsure = {NOBODY[0]} if "verified" in special else set[str]()
    assert (single.held, single.unsure.keys()) == (sheet.held, unsure)


@pytest.mark.parametrize("end", ["sold", "burnt", "in escrow"])
async def test_what_is_gone_is_gone_and_a_later_slot_confirms_it(
    chains: SolanaChains, otters: Otters, end: str
) -> None:
    contract, bob = (await otters.collection())["contract"], await otters.wallet("bob")
    token = next(iter((await owned(otters))[bob]))
    first = await chains.tokens(SOLANA, contract, [bob])
    assert first.of(bob) == {token: 1}
    assert first.trails[bob].ids == {token}
    action = "burn" if end == "burnt" else "transfer"
    done = await otters.act(action, contract=OTTERS, token_id=token, **({} if end == "burnt" else {"to": NOBODY[3]}))
    for endpoint in (None, 0):
        sheet = await chains.tokens(SOLANA, contract, [bob], trails=first.trails, at=ReadPoint(endpoint, done["block"]))
        assert (sheet.held, sheet.unsure, set(sheet.trails[bob].gone)) == ({}, {}, {token})
        assert sheet.block >= done["block"] > first.block
        assert sheet.block_time >= first.block_time


async def test_certain_tokens_are_asked_for_one_by_one(chains: SolanaChains, otters: Otters) -> None:
    world, contract = await owned(otters), (await otters.collection())["contract"]
    bob, carol = await otters.wallet("bob"), await otters.wallet("carol")
    bobs, carols = next(iter(world[bob])), next(iter(world[carol]))
    sheet = await chains.tokens(SOLANA, contract, [bob, carol], token_ids=[bobs, carols, bobs])
    assert (sheet.held, sheet.unsure) == ({bob: {bobs: 1}, carol: {carols: 1}}, {})
    other = (await otters.act("deploy", standard="Solana", name="Others", slug="others"))["contract"]
    assert (await chains.tokens(SOLANA, other, [bob], token_ids=[bobs])).held == {}
    unknown = await chains.tokens(SOLANA, contract, [bob, carol], token_ids=[bobs, NOBODY[0]])
    assert (unknown.held, unknown.unsure.keys()) == ({bob: {bobs: 1}}, {bob, carol})
    with pytest.raises(ValueError, match="not a Solana address"):
        await chains.tokens(SOLANA, contract, [bob], token_ids=["100-200"])


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("known", [False, True], ids=["unknown node", "known node"])
async def test_no_fault_ever_reads_as_holding_none(
    chains: SolanaChains, otters: Otters, kind: str, known: bool
) -> None:
    carol, contract = await otters.wallet("carol"), (await otters.collection())["contract"]
    token = next(iter((await owned(otters))[carol]))
    if known:
        assert (await chains.tokens(SOLANA, contract, [carol])).of(carol)
    await otters.fault(kind)
    for owners in ([carol], [NOBODY[0]]):
        with pytest.raises(ProviderError):
            await chains.tokens(SOLANA, contract, owners)
        with pytest.raises(ProviderError):
            await chains.anything(SOLANA, owners)
        with pytest.raises(ProviderError):
            await balances(chains, SOLANA, [contract], owners)
    if kind == "zero":  # a failed listing of a collection does not hide an account's own list
        assert (await chains.tokens(SOLANA, contract, [carol, *NOBODY])).of(carol)
        assert (await chains.tokens(SOLANA, contract, [carol], token_ids=[token])).of(carol) == {token: 1}
    elif kind == "empty":
        with pytest.raises(ProviderError):
            await chains.tokens(SOLANA, contract, [carol, *NOBODY])
        assert carol in (await chains.tokens(SOLANA, contract, [carol], token_ids=[token])).unsure
        with pytest.raises(ProviderError):
            await chains.contract_standard(SOLANA, contract)
    if kind in ("empty", "zero"):
        return
    for ask in (chains.contract_standard, chains.contract_name):
        with pytest.raises(ProviderError):
            await ask(SOLANA, contract)


async def test_an_endpoint_that_limits_us_says_for_how_long(chains: SolanaChains, otters: Otters) -> None:
    await otters.fault("429")
    with pytest.raises(ProviderError) as told:
        await chains.head(SOLANA)
    assert told.value.retry_after == 1


async def test_a_stale_endpoint_cannot_confirm_at_a_later_slot(chains: SolanaChains, otters: Otters) -> None:
    contract, bob = (await otters.collection())["contract"], await otters.wallet("bob")
    await otters.fault("stale")
    before = await chains.tokens(SOLANA, contract, [bob])
    sold = await otters.act("transfer", contract=OTTERS, token_id=next(iter(before.of(bob))), to=STRANGER)
    assert (await chains.tokens(SOLANA, contract, [bob])).block == before.block
    with pytest.raises(ProviderError, match="before slot"):
        await chains.tokens(SOLANA, contract, [bob], at=ReadPoint(not_before_block=sold["block"]))


async def test_a_collection_without_members_yet_is_unknown_to_the_index(chains: SolanaChains, otters: Otters) -> None:
    made = (await otters.act("deploy", standard="Solana", name="Early Birds", slug="early-birds"))["contract"]
    assert await chains.contract_standard(SOLANA, made) == "Solana"
    assert await chains.contract_name(SOLANA, made) == "Early Birds"
    with pytest.raises(ProviderError, match="nothing of this collection"):
        await chains.tokens(SOLANA, made, NOBODY[:1])
    await otters.act("mint", contract=made, to=STRANGER)
    assert (await chains.tokens(SOLANA, made, NOBODY[:1])).unsure == {}


@pytest.mark.parametrize("owners", [1, len(NOBODY)], ids=["by wallets", "by the collection"])
async def test_a_core_collection_that_says_it_is_empty_is_held_by_nobody(
    chains: SolanaChains, otters: Otters, owners: int
) -> None:
    slug = f"early-cores-{owners}"
    made = await otters.act("deploy", standard="Solana", name="Early Cores", slug=slug, interface="MplCoreAsset")
    sheet = await chains.tokens(SOLANA, made["contract"], NOBODY[:owners])
    assert (sheet.held, sheet.unsure) == ({}, {})
    for kind in ("empty", "zero"):
        await otters.fault(kind)
        with pytest.raises(ProviderError):
            await chains.tokens(SOLANA, made["contract"], NOBODY[:owners])
        await otters.http.delete("/control/faults")


async def test_collections_are_told_from_tokens_coins_and_wallets(chains: SolanaChains, otters: Otters) -> None:
    contract, bob = (await otters.collection())["contract"], await otters.wallet("bob")
    core = await otters.act("deploy", standard="Solana", name="Core", slug="core", interface="MplCoreAsset")
    token = next(iter((await owned(otters))[bob]))
    coin = (await otters.act("mint", contract=OTTERS, to=bob, interface="FungibleToken"))["token_id"]
    standards = [await chains.contract_standard(SOLANA, one) for one in (contract, core["contract"], token, coin, bob)]
    assert standards == ["Solana", "Solana", None, None, "none"]
    assert (await chains.collection_of(token), await chains.collection_of(bob)) == (contract, None)
    with pytest.raises(ValueError, match="not a Solana address"):
        await chains.contract_standard(SOLANA, "0x" + "5e" * 20)
    with pytest.raises(ValueError, match="not Solana"):
        await chains.head("base")
    assert (chains.endpoints(SOLANA), chains.endpoints("base")) == (1, 0)


async def test_traits_are_those_that_the_index_has_read(nodes: SolanaNodes, otters: Otters) -> None:
    records = SolanaRecords(nodes)
    contract, bob = (await otters.collection())["contract"], await otters.wallet("bob")
    token = next(iter((await owned(otters))[bob]))
    await otters.act("traits", contract=OTTERS, token_id=token, traits={"Level": 7, "Hat": "Crown"})
    bare = (await otters.act("mint", contract=OTTERS, to=bob))["token_id"]
    found = await records.records(SOLANA, contract, [token, bare, NOBODY[0], "7"])
    assert found.keys() == {token, bare}
    traits = found[token].traits
    assert traits is not None
    assert set(traits.found) == {Trait("Level", 7), Trait("Hat", "Crown")}
    assert (found[bare].traits, found[bare].link.endswith(bare)) == (None, True)
    assert len(await records.sample(SOLANA, contract, 4)) == 4
    await otters.fault("empty")
    assert await records.records(SOLANA, contract, [token]) == {}


async def test_a_memo_proves_who_signed_it(nodes: SolanaNodes, chains: SolanaChains, otters: Otters) -> None:
    proof, carol = SolanaTransactions(nodes), await otters.wallet("carol")
    await otters.act("send", **{"from": carol}, memo="an old one")
    since = (await chains.head(SOLANA)).block
    assert (await proof.newer_signatures(carol, since)).newest == []
    await otters.act("send", **{"from": STRANGER}, to=carol, memo="holdfast-abcdefghjk")
    await otters.act("send", **{"from": carol}, memo="holdfast-abcdefghjk", fail=True)
    sent = await otters.act("send", **{"from": carol}, memo="holdfast-abcdefghjk")
    early = await otters.act("send", **{"from": carol}, memo="too early", final=False)
    found = (await proof.newer_signatures(carol, since)).newest
    told = [await proof.memo_transaction(one.signature) for one in found]
    assert [(one.signers, one.memos, one.ok) for one in told if one] == [
        ((STRANGER,), ("holdfast-abcdefghjk",), True),
        ((carol,), ("holdfast-abcdefghjk",), False),
        ((carol,), ("holdfast-abcdefghjk",), True),
    ]
    assert found[-1].signature == sent["hash"]
    assert found[-1].memo == "[19] holdfast-abcdefghjk"
    assert await proof.memo_transaction(early["hash"]) is None


async def test_a_token_that_was_seen_and_is_nowhere_leaves_its_owner_unsure(
    chains: SolanaChains, otters: Otters
) -> None:
    contract, bob = (await otters.collection())["contract"], await otters.wallet("bob")
    token = next(iter((await owned(otters))[bob]))
    trail = TokenHints(frozenset({token, NOBODY[0]}))
    sheet = await chains.tokens(SOLANA, contract, [bob], trails={bob: trail})
    assert (sheet.of(bob), "no longer knows" in sheet.unsure[bob]) == ({token: 1}, True)
    assert sheet.trails[bob].ids == trail.ids
