"""DAS, the index of Solana's assets: the form of an asset, and reads of single assets by address."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import cast

from gateways.evm.rpc.errors import RpcRefused, Unsupported
from gateways.solana.node import SolanaNode
from gateways.transport.errors import ProviderConfused
from gateways.transport.json_shape import Shape, listed
from gateways.transport.plain_text import plain

A_PAGE = 1_000
"""Assets in a page or a batch, the allowed maximum (docs/facts.md#solana-das)."""
LONGEST_NAME = 200
CORE_COLLECTION = "MplCoreCollection"
UNKNOWN_METHOD = -32601


class Kind(Enum):
    """The kind of an asset, by its `interface` (docs/facts.md#solana-das)."""

    NFT = "nft"
    OTHER = "other"
    """Coins, collections and accounts."""
    UNCLEAR = "unclear"


_NFTS = frozenset({"V1_NFT", "V1_PRINT", "V2_NFT", "LEGACY_NFT", "ProgrammableNFT", "MplCoreAsset", "MplBubblegumV2"})
_OTHERS = frozenset({"FungibleAsset", "FungibleToken", CORE_COLLECTION, "MplCoreGroup", "Identity", "Executable"})


@dataclass(frozen=True, slots=True)
class Asset:
    """One asset in the index. A frozen, delegated or listed asset still belongs to its `owner`.

    `owner` is empty where the index names none, `collection` where no collection has confirmed the asset as its own.
    `size` is the number of assets that a Core collection states; None for anything else.
    """

    id: str
    interface: str
    kind: Kind
    owner: str
    collection: str
    burnt: bool
    name: str
    size: int | None = None
    named: frozenset[str] = frozenset()
    """Every collection that the answer names for the asset, confirmed or not."""
    link: str = ""
    attributes: object = None
    """Where the metadata is, and its attributes, unchanged from the answer; None if the index has not read them.

    Only where they are asked for: the asset's author chooses their size, and a list may have 100,000 assets.
    """

    @property
    def counts(self) -> bool:
        """Whether somebody may hold the asset; lists also contain burnt assets and coins."""
        return not self.burnt and self.kind is not Kind.OTHER


async def asset(node: SolanaNode, id_: str) -> Asset | None:
    """Return one asset; None when the index knows none with this address."""
    try:
        found = await node.ask("getAsset", {"id": id_})
    except RpcRefused as refused:
        if "not found" in str(refused).lower():
            return None
        raise
    if found is None:
        return None
    read = read_asset(node.name, found)
    if read.id != id_:
        raise ProviderConfused(node.name, "the answer is another asset")
    return read


async def assets(node: SolanaNode, ids: Sequence[str], *, with_metadata: bool = False) -> dict[str, Asset | None]:
    """Return many assets by id, on request with what they say about metadata; None for each unknown one."""
    found: dict[str, Asset | None] = dict.fromkeys(ids)
    for start in range(0, len(ids), A_PAGE):
        part = list(ids[start : start + A_PAGE])
        try:
            said = await node.ask("getAssetBatch", {"ids": part})
        except Unsupported as refused:
            if refused.code != UNKNOWN_METHOD:
                raise
            # Metaplex's name for the method.
            said = await node.ask("getAssets", {"ids": part})
        for item in listed(said, "the assets", node.name):
            if item is not None:
                read = read_asset(node.name, item, with_metadata=with_metadata)
                if read.id in found:
                    found[read.id] = read
    return found


def read_asset(provider: str, item: object, *, with_metadata: bool = False) -> Asset:
    """Parse an asset in DAS's form. Raises ProviderConfused when a field that decides who holds it is missing."""
    shape = Shape(item, "an asset", provider)
    interface = shape.text("interface")
    kind = Kind.NFT if interface in _NFTS else Kind.OTHER if interface in _OTHERS else Kind.UNCLEAR
    content = _fields(cast("Mapping[str, object]", item).get("content"))
    metadata = _fields(content.get("metadata"))
    name, link = metadata.get("name"), content.get("json_uri")
    groups = _collections(provider, shape)
    return Asset(
        id=shape.text("id"),
        interface=interface,
        kind=kind,
        owner=shape.inner("ownership").text_or_none("owner") or "",
        collection=next((one for one, confirmed in groups if confirmed), ""),
        burnt=shape.flag("burnt"),
        name=plain(name, LONGEST_NAME) if isinstance(name, str) else "",
        size=_size(item) if interface == CORE_COLLECTION else None,
        named=frozenset(one for one, _ in groups),
        link=link if with_metadata and isinstance(link, str) else "",
        attributes=metadata.get("attributes") if with_metadata else None,
    )


def _size(item: object) -> int | None:
    size = _fields(_fields(item).get("mpl_core_info")).get("current_size")
    return size if isinstance(size, int) and not isinstance(size, bool) else None


def _collections(provider: str, shape: Shape) -> list[tuple[str, bool]]:
    """Return the collections that an asset names, each with whether it has confirmed the asset as its own.

    DAS lists unconfirmed ones only on request. See docs/facts.md#solana-das.
    """
    found = list[tuple[str, bool]]()
    for item in shape.items("grouping"):
        group = Shape(item, "a group", provider)
        if group.text("group_key") != "collection":
            continue
        confirmed = _fields(item).get("verified") is not False
        # An asset that anybody made, without a collection, must not make the whole list unreadable.
        name = group.text("group_value") if confirmed else group.text_or_none("group_value")
        if name is not None:
            found.append((name, confirmed))
    return found


def _fields(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}
