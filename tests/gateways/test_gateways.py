"""The set of gateways: created on first use, replaceable, closed once."""

from unittest.mock import MagicMock

import aiohttp
import httpcore
import httpx
import pytest

import gateways
from gateways import Gateways, close_gateways, use_gateways
from gateways.chains.catalogue import CHAINS
from gateways.discord.oauth import DiscordOAuth
from gateways.discord.rest import Discord
from gateways.evm.client import EvmChains
from gateways.evm.delegate_registry import DelegateRegistry, own_rights
from gateways.evm.ens import EnsNames
from gateways.evm.node_probe import NodeProbe
from gateways.evm.rpc.errors import rpc_error
from gateways.evm.rpc.new_heads import NewHeads
from gateways.evm.rpc.pool import NodePool
from gateways.evm.tokens.transfer_history import TransferHistory
from gateways.evm.transactions import EvmTransactions
from gateways.evm.transfer_logs import TransferLogs
from gateways.marketplaces.magiceden import MagicEden
from gateways.marketplaces.opensea import OpenSea
from gateways.metadata import TokenMetadata
from gateways.router import AllChains
from gateways.solana.client import SolanaChains
from gateways.solana.collection_owners import CollectionOwners
from gateways.solana.names import SolanaNames
from gateways.solana.node import SolanaNodes
from gateways.solana.transactions import SolanaTransactions
from gateways.transport.errors import (
    ProviderConfused,
    ProviderDown,
    ProviderError,
    no_answer,
    seconds_to_wait,
    without_links,
)
from gateways.transport.json_shape import Shape
from gateways.transport.safe_fetch import Fetcher


async def test_the_set_is_made_once_and_made_again_after_closing() -> None:
    use_gateways(None)
    first = gateways.gateways()
    assert gateways.gateways() is first
    assert isinstance(first.discord, Discord)
    await close_gateways()
    second = gateways.gateways()
    assert second is not first
    await close_gateways()
    await close_gateways()


async def test_tests_may_bring_their_own() -> None:
    nodes = NodePool({})
    own = Gateways(
        discord=Discord("http://x", "t", "http://y"),
        oauth=DiscordOAuth(
            client_id="1",
            client_secret="2",
            authorize_url="http://x",
            token_url="http://x",
            revoke_url="http://x",
            api_url="http://x",
            public_url="http://y",
        ),
        opensea=OpenSea("http://x", "http://y", None),
        magiceden=MagicEden("http://x"),
        chains=EvmChains(nodes),
        mints=SolanaChains(SolanaNodes(())),
        delegations=DelegateRegistry(nodes, own_rights("Holdfast")),
        solana=SolanaTransactions(SolanaNodes(())),
        transfers=TransferLogs(nodes),
        histories=TransferHistory(nodes),
        collection_owners=CollectionOwners(SolanaNodes(())),
        heads=NewHeads({}),
        fetching=(fetching := Fetcher(agent="x")),
        metadata=TokenMetadata({}, fetching, ipfs_url="https://x", arweave_url="https://x"),
        transactions=EvmTransactions(nodes),
        names=EnsNames(nodes, fetching),
        solana_names=SolanaNames("", fetching),
        node_probe=NodeProbe(nodes),
    )
    use_gateways(own)
    assert gateways.gateways() is own
    await close_gateways()


async def test_each_chain_has_its_familys_client() -> None:
    solana = SolanaNodes(["http://x"])
    chains = AllChains(EvmChains(NodePool({"base": ["http://x", "http://y"]})), SolanaChains(solana))
    assert [chains.endpoints(chain) for chain in ("base", "polygon", "solana", "moon")] == [2, 0, 1, 0]
    with pytest.raises(ProviderError, match="Moon: no node is set for it"):
        await chains.head("moon")
    with pytest.raises(ValueError, match="Solana address"):
        await chains.contract_name("solana", "0x" + "5e" * 20)
    with pytest.raises(ValueError, match="EVM address"):
        await chains.contract_name("base", "So11111111111111111111111111111111111111112")
    with pytest.raises(ProviderError):
        await chains.anything("polygon", ["0x" + "5e" * 20])
    await chains.close()


def test_the_table_has_the_seven_evm_chains_and_solana() -> None:
    assert [(chain.key, chain.chain_id) for chain in CHAINS.values() if chain.family == "evm"] == [
        ("ethereum", 1),
        ("polygon", 137),
        ("arbitrum", 42161),
        ("optimism", 10),
        ("base", 8453),
        ("apechain", 33139),
        ("abstract", 2741),
    ]
    assert CHAINS["apechain"].opensea == "ape_chain"
    assert CHAINS["solana"].family == "solana"


@pytest.mark.parametrize("odd", ["9" * 5_000, "-1", "1e3", "0x1", 1.0, True, None])
def test_what_is_no_number_is_no_answer(odd: object) -> None:
    with pytest.raises(ProviderConfused):
        Shape({"amount": odd}, "a balance", "Solana (node 1)").number("amount")


@pytest.mark.parametrize(
    "wallet", ["9WzDXwBbmkg8ZTbNMqUxvQRAyrZzDsGYdLVL9zYtAWWM", "0x" + "aB" * 20, "0x" + "0" * 24 + "cd" * 20]
)
def test_no_error_of_a_node_names_a_wallet(wallet: str) -> None:
    # Admins read why a member's wallet could not be read, whether or not the member shares it.
    told = f"{wallet} excluded from account secondary indexes; this RPC method unavailable for key"
    for fault in (rpc_error("Solana (node 1)", -32010, told), ProviderDown("Solana (node 1)", told)):
        assert wallet not in str(fault)
        assert "[account] excluded from account secondary indexes" in str(fault)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (httpx.ReadTimeout(""), "no answer in time"),
        (httpcore.ConnectTimeout(), "no answer in time"),
        (TimeoutError(), "no answer in time"),
        (aiohttp.ServerTimeoutError(), "no answer in time"),
        (httpx.ConnectError(""), "no connection"),
        (httpx.ProxyError(""), "no connection"),
        (aiohttp.ClientConnectorError(MagicMock(), OSError()), "no connection"),
        (httpx.RemoteProtocolError(""), "the connection was lost"),
        (httpcore.ReadError(), "the connection was lost"),
        (aiohttp.ServerDisconnectedError(), "the connection was lost"),
        (httpx.DecodingError(""), "its answer could not be decoded"),
    ],
)
def test_what_members_read_of_a_missing_answer_names_no_class_of_a_library(fault: Exception, said: str) -> None:
    assert no_answer(fault) == said


def test_errors_carry_no_address_and_read_both_forms_of_retry_after() -> None:
    assert without_links("see https://node.example/v2/key, it is down") == "see [address] it is down"
    assert seconds_to_wait("1.5") == 1.5
    assert seconds_to_wait("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert seconds_to_wait("soon") is None
    assert seconds_to_wait("nan") is None
    assert seconds_to_wait("inf") is None
    assert seconds_to_wait("1796000000") == seconds_to_wait("Fri, 31 Dec 9999 23:59:59 GMT") == 3_600
    assert seconds_to_wait(None) is None
