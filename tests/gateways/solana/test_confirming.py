"""What a confirming read asks the node: the token accounts of members who would lose something."""

from typing import Any

import pytest

from gateways.chains.read_point import ReadPoint
from gateways.chains.token_sheet import TokenHints
from gateways.solana import holders
from gateways.solana.client import SolanaChains
from gateways.solana.token_accounts import TOKEN_PROGRAMS
from tests.gateways.solana.asset_index import COLLECTION, OTHER, OWNER, SOLANA, TOKENS, Index, asset, key
from tests.gateways.solana.asset_index import chains as chains
from tests.gateways.solana.asset_index import no_waiting as no_waiting
from tests.gateways.solana.asset_index import node as node
from tests.gateways.solana_stand_in import StandIn, busy
from tests.support.balances import balances


async def test_the_nodes_accounts_are_asked_of_any_number_of_losers_in_parts(
    node: StandIn, chains: SolanaChains, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holders, "OWNERS_A_PART", 20)
    Index(node, asset(TOKENS[1], OTHER))
    losers = [key(2**190 + number) for number in range(70)]
    asked = set[str]()

    def accounts(params: Any) -> Any:
        asked.add(params[0])
        return {"context": {"slot": 1}, "value": []}

    node.says["getTokenAccountsByOwner"] = accounts
    assert (await chains.tokens(SOLANA, COLLECTION, losers, at=ReadPoint(endpoint=0))).unsure == {}
    assert asked == set(losers)

    asked.clear()
    node.says["getTokenAccountsByOwner"] = lambda params: accounts(params) if len(asked) < 30 else busy("60")(None)
    sheet = await chains.tokens(SOLANA, COLLECTION, losers, at=ReadPoint(endpoint=0))
    assert set(losers) - set(sheet.unsure) <= asked, "a loser that the node was not asked about is not believed"
    assert len(sheet.unsure) >= len(losers) - 40


async def test_a_confirming_read_asks_the_nodes_own_token_accounts(node: StandIn, chains: SolanaChains) -> None:
    index = Index(node, asset(TOKENS[1], OTHER))
    amount = {"amount": "1", "decimals": 0}
    info = {"mint": TOKENS[0], "owner": OWNER, "tokenAmount": amount}
    account = {"pubkey": key(5), "account": {"data": {"parsed": {"info": info}}}}
    node.says["getTokenAccountsByOwner"] = {"context": {"slot": 1}, "value": [account]}

    async def confirmed() -> bool:
        return OWNER not in (await chains.tokens(SOLANA, COLLECTION, [OWNER], at=ReadPoint(endpoint=0))).unsure

    assert OWNER not in (await chains.tokens(SOLANA, COLLECTION, [OWNER])).unsure
    assert not await confirmed()  # the index does not know the mint
    index.known = {TOKENS[0]: asset(TOKENS[0])}
    assert not await confirmed()  # the index knows it, and does not list it
    index.known = {TOKENS[0]: asset(TOKENS[0], grouping=[])}
    assert await confirmed()  # it is of another collection
    info["tokenAmount"] = {"amount": "1", "decimals": 6}
    index.known = {}
    assert await confirmed()  # it is a coin
    node.says["getTokenAccountsByOwner"] = {"error": {"code": -32601, "message": "Method not found"}}
    assert await confirmed()
    node.says["getTokenAccountsByOwner"] = {"error": {"code": -32000, "message": "broken"}}
    assert not await confirmed()


def shows(node: StandIn, *mints: str) -> None:
    """Put these tokens into OWNER's own token accounts on the node."""
    amount = {"amount": "1", "decimals": 0}
    infos = [{"mint": mint, "owner": OWNER, "tokenAmount": amount} for mint in mints]
    value = [{"pubkey": key(5), "account": {"data": {"parsed": {"info": info}}}} for info in infos]
    node.says["getTokenAccountsByOwner"] = {"context": {"slot": 1}, "value": value}


@pytest.mark.parametrize("unknown", TOKEN_PROGRAMS)
async def test_a_token_program_that_the_node_does_not_know_hides_nothing_of_the_other(
    node: StandIn, chains: SolanaChains, unknown: str
) -> None:
    index = Index(node, asset(TOKENS[1], OTHER))
    index.known = {TOKENS[0]: asset(TOKENS[0])}
    shows(node, TOKENS[0])
    shown = node.says["getTokenAccountsByOwner"]
    refused = {"error": {"code": -32602, "message": "Invalid param: unrecognized Token program id"}}
    node.says["getTokenAccountsByOwner"] = lambda params: refused if params[1]["programId"] == unknown else shown
    sheet = await chains.tokens(SOLANA, COLLECTION, [OWNER], at=ReadPoint(endpoint=0))
    assert sheet.unsure.keys() == {OWNER}


async def test_an_owner_with_more_accounts_than_the_node_returns_is_unsure(node: StandIn, chains: SolanaChains) -> None:
    Index(node, asset(TOKENS[1], OTHER))
    told = "Too many accounts requested (10000001 pubkeys), Please use getProgramAccountsV2"
    node.says["getTokenAccountsByOwner"] = {"error": {"code": -32600, "message": told}}
    sheet = await chains.tokens(SOLANA, COLLECTION, [OWNER], at=ReadPoint(endpoint=0))
    assert told in sheet.unsure[OWNER]


@pytest.mark.parametrize("ids", [(), (TOKENS[0],)], ids=["any of the collection", "a certain token"])
async def test_a_token_that_the_node_still_shows_is_not_burnt_whatever_the_index_says(
    node: StandIn, chains: SolanaChains, ids: tuple[str, ...]
) -> None:
    index = Index(node, asset(TOKENS[1], OTHER))
    foreign = [{"group_key": "collection", "group_value": OTHER}]
    index.known = {TOKENS[0]: asset(TOKENS[0], burnt=True), TOKENS[2]: asset(TOKENS[2], burnt=True, grouping=foreign)}
    trails = {OWNER: TokenHints(frozenset({TOKENS[0]}))}

    async def unsure() -> bool:
        at = ReadPoint(endpoint=0)
        read = await chains.tokens(SOLANA, COLLECTION, [OWNER], token_ids=ids, trails=trails, at=at)
        return OWNER in read.unsure

    assert not await unsure()
    shows(node, TOKENS[2])
    assert not await unsure(), "it is of another collection"
    shows(node, TOKENS[0])
    assert await unsure()


async def test_a_confirming_read_of_certain_tokens_asks_the_nodes_own_token_accounts(
    node: StandIn, chains: SolanaChains
) -> None:
    index = Index(node)
    index.known = {token: asset(token, OTHER) for token in TOKENS[:2]}

    async def confirmed() -> bool:
        ids = [TOKENS[0]]
        return (
            OWNER
            not in (await chains.tokens(SOLANA, COLLECTION, [OWNER], token_ids=ids, at=ReadPoint(endpoint=0))).unsure
        )

    assert await confirmed()
    shows(node, TOKENS[1])
    assert await confirmed(), "of another token nobody asked"
    shows(node, TOKENS[0])
    assert not await confirmed(), "the index says that it is somebody else's"
    assert OWNER not in (await chains.tokens(SOLANA, COLLECTION, [OWNER], token_ids=[TOKENS[0]])).unsure


async def test_a_confirming_read_asks_the_node_about_those_too_of_whom_the_index_lists_some(
    node: StandIn, chains: SolanaChains
) -> None:
    index = Index(node, asset(TOKENS[0]))
    index.known = {token: asset(token) for token in TOKENS[:2]}
    shows(node, TOKENS[0])
    read = await balances(chains, SOLANA, [COLLECTION], [OWNER], at=ReadPoint(endpoint=0))
    assert read.amount(COLLECTION, OWNER) == 1
    shows(node, *TOKENS[:2])
    assert (await balances(chains, SOLANA, [COLLECTION], [OWNER], at=ReadPoint(endpoint=0))).amount(
        COLLECTION, OWNER
    ) is None
    assert (await balances(chains, SOLANA, [COLLECTION], [OWNER])).amount(COLLECTION, OWNER) == 1
