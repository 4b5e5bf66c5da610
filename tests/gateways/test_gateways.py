"""The set of gateways: made when first asked for, replaceable, closed once."""

import gateways
from gateways import Gateways, close_gateways, use_gateways
from gateways.chain_table import CHAINS
from gateways.chains import EvmChains
from gateways.discord import Discord
from gateways.discord_oauth import DiscordOAuth
from gateways.errors import seconds_to_wait, without_links
from gateways.marketplaces import OpenSea


async def test_the_set_is_made_once_and_made_anew_after_closing() -> None:
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
        chains=EvmChains({}),
    )
    use_gateways(own)
    assert gateways.gateways() is own
    await close_gateways()


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


def test_errors_carry_no_address_and_read_both_forms_of_retry_after() -> None:
    assert without_links("see https://node.example/v2/key, it is down") == "see [address] it is down"
    assert seconds_to_wait("1.5") == 1.5
    assert seconds_to_wait("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert seconds_to_wait("soon") is None
    assert seconds_to_wait("nan") is None
    assert seconds_to_wait(None) is None
