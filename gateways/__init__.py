"""The outside world: one module a provider, and the set of them that this process uses."""

import logging
from dataclasses import dataclass

from gateways.chains import Chains, EvmChains
from gateways.discord import Discord, DiscordGateway
from gateways.discord_oauth import DiscordOAuth, DiscordSignIn
from gateways.marketplaces import Marketplace, OpenSea
from settings import settings

# These write every request's URL to the log, and some nodes have their key in it.
for _chatty in ("httpx", "httpcore", "web3"):
    logging.getLogger(_chatty).setLevel(logging.WARNING)


@dataclass(frozen=True, slots=True)
class Gateways:
    """One client for each provider."""

    discord: DiscordGateway
    oauth: DiscordSignIn
    opensea: Marketplace
    chains: Chains


_in_use: Gateways | None = None


def gateways() -> Gateways:
    """This process's gateways, made at the first call, which must come from inside the running event loop."""
    global _in_use
    if _in_use is None:
        _in_use = _connect()
    return _in_use


def use_gateways(chosen: Gateways | None) -> None:
    """Use these from now on (None: make new ones when next asked). Who had the old ones closes them."""
    global _in_use
    _in_use = chosen


async def close_gateways() -> None:
    """Close the connections of the gateways in use; the next `gateways()` makes new ones."""
    chosen = _in_use
    use_gateways(None)
    if chosen is None:
        return
    for client in (chosen.discord, chosen.oauth, chosen.opensea, chosen.chains):
        if isinstance(client, Discord | DiscordOAuth | OpenSea | EvmChains):
            await client.close()


def _connect() -> Gateways:
    chosen = settings()
    key = chosen.opensea_api_key
    return Gateways(
        discord=Discord(chosen.discord_api_url, chosen.discord_bot_token.get_secret_value(), chosen.public_url),
        oauth=DiscordOAuth(
            client_id=chosen.discord_client_id,
            client_secret=chosen.discord_client_secret.get_secret_value(),
            authorize_url=chosen.discord_authorize_url,
            token_url=chosen.discord_token_url,
            revoke_url=chosen.discord_revoke_url,
            api_url=chosen.discord_api_url,
            public_url=chosen.public_url,
        ),
        opensea=OpenSea(chosen.opensea_api_url, chosen.opensea_url, key.get_secret_value() if key else None),
        chains=EvmChains(chosen.rpc),
    )
