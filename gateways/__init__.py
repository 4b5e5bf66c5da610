"""Access to the outside world: one module for each provider, and the set of clients that this process uses."""

import logging
from dataclasses import dataclass

from gateways.chains import catalogue
from gateways.discord.oauth import DiscordOAuth
from gateways.discord.rest import Discord
from gateways.evm.client import Chains, EvmChains
from gateways.evm.delegate_registry import DelegateRegistry, own_rights
from gateways.evm.ens import EnsNames
from gateways.evm.node_probe import NodeProbe
from gateways.evm.rpc import node_limits
from gateways.evm.rpc.new_heads import NewHeads
from gateways.evm.rpc.pool import NodePool
from gateways.evm.tokens.token_records import EvmRecords
from gateways.evm.tokens.transfer_history import TransferHistory
from gateways.evm.transactions import EvmTransactions
from gateways.evm.transfer_logs import TransferLogs
from gateways.marketplaces.alchemy import Alchemy
from gateways.marketplaces.magiceden import MagicEden
from gateways.marketplaces.opensea import OpenSea
from gateways.metadata import TokenMetadata
from gateways.router import AllChains
from gateways.solana.client import SolanaChains
from gateways.solana.collection_owners import CollectionOwners
from gateways.solana.names import SolanaNames
from gateways.solana.node import SolanaNodes
from gateways.solana.token_records import SolanaRecords
from gateways.solana.transactions import SolanaTransactions
from gateways.transport.connections import agent
from gateways.transport.exchanges import end_all
from gateways.transport.safe_fetch import Fetcher
from settings import settings

log = logging.getLogger(f"holdfast.{__name__}")
# These libraries log every request's URL, and some nodes have their key in it.
for _chatty in ("httpx", "httpcore", "web3"):
    logging.getLogger(_chatty).setLevel(logging.WARNING)


@dataclass(frozen=True, slots=True)
class Gateways:
    """One client for each provider."""

    discord: Discord
    oauth: DiscordOAuth
    opensea: OpenSea
    magiceden: MagicEden
    chains: Chains
    mints: SolanaChains
    delegations: DelegateRegistry
    solana: SolanaTransactions
    fetching: Fetcher
    metadata: TokenMetadata
    transfers: TransferLogs
    histories: TransferHistory
    collection_owners: CollectionOwners
    heads: NewHeads
    transactions: EvmTransactions
    names: EnsNames
    solana_names: SolanaNames
    node_probe: NodeProbe
    listings: tuple[Alchemy, ...] = ()
    """Indexes of accounts' tokens other than OpenSea, used only through `chains`."""


_in_use: Gateways | None = None


def gateways() -> Gateways:
    """Return this process's gateways, made at the first call, which must come from inside the running event loop."""
    global _in_use
    if _in_use is None:
        _in_use = _connect()
    return _in_use


def use_gateways(chosen: Gateways | None) -> None:
    """Use these gateways from now on (None: make new ones at the next call). The caller closes the former ones."""
    global _in_use
    _in_use = chosen


async def close_gateways() -> None:
    """Close the connections of the gateways in use; the next `gateways()` makes new ones."""
    chosen = _in_use
    use_gateways(None)
    node_limits.forget()
    await end_all()
    if chosen is None:
        return
    for client in (
        chosen.discord, chosen.oauth, chosen.opensea, chosen.magiceden, chosen.chains, chosen.solana, chosen.fetching,
        *chosen.listings,
    ):  # fmt: skip
        await client.close()


def _connect() -> Gateways:
    catalogue.check()
    chosen = settings()
    key = chosen.opensea_api_key
    for chain, times in chosen.rpc_repeated.items():
        log.warning("dropped repeated node addresses chain=%s addresses=%d", chain, times)
    nodes, solana = NodePool(chosen.rpc), SolanaNodes(chosen.rpc.get("solana", ()))
    on_solana = SolanaChains(solana)
    opensea = OpenSea(chosen.opensea_api_url, chosen.opensea_url, key.get_secret_value() if key else None)
    listing = chosen.alchemy_api_key
    alchemy = (Alchemy(chosen.alchemy_nft_url, listing.get_secret_value()),) if listing else ()
    fetching = Fetcher(agent=agent(), trusted=chosen.own_links)
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
        opensea=opensea,
        magiceden=MagicEden(chosen.magiceden_api_url),
        chains=AllChains(EvmChains(nodes, opensea if key else None, alchemy), on_solana),
        mints=on_solana,
        delegations=DelegateRegistry(nodes, own_rights(chosen.product_name)),
        solana=SolanaTransactions(solana),
        fetching=fetching,
        metadata=TokenMetadata(
            {"evm": EvmRecords(nodes), "solana": SolanaRecords(solana)},
            fetching,
            ipfs_url=chosen.ipfs_gateway_url,
            arweave_url=chosen.arweave_gateway_url,
        ),
        transfers=TransferLogs(nodes),
        histories=TransferHistory(nodes),
        collection_owners=CollectionOwners(solana),
        heads=NewHeads(chosen.rpc_ws),
        transactions=EvmTransactions(nodes),
        names=EnsNames(nodes, fetching),
        solana_names=SolanaNames(chosen.solana_names_url, fetching),
        node_probe=NodeProbe(nodes),
        listings=alchemy,
    )
