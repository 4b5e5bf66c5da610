"""Assets, collections and transactions on Solana, and how each record changes them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sandbox.base.body import is_whole
from sandbox.base.people import PEOPLE, person
from sandbox.chains.seeds import Collection, seeded_traits
from sandbox.solana import coins
from sandbox.solana.coins import SplCoin
from sandbox.solana.keys import address_of, is_address

AIRDROP = 10_000_000_000
"""The lamports that each of the people begins with; fees and transfers are subtracted from them."""
FEE = 5_000
STANDARD = "Solana"
NFT_INTERFACES = ("V1_NFT", "ProgrammableNFT", "MplCoreAsset", "V2_NFT", "LEGACY_NFT", "V1_PRINT", "Custom")
FUNGIBLE_INTERFACES = ("FungibleAsset", "FungibleToken")
INTERFACES = NFT_INTERFACES + FUNGIBLE_INTERFACES
AUTHORITY = address_of("authority")
"""The creator of the collections, which also owns their parent assets."""
MARKET = address_of("marketplace")
"""The delegate of listed assets."""

# The seeded collection: name, slug, and token number → (owner, what is special about it).
NAME, SLUG = "Tidepool Otters", "tidepool-otters"
HOLDINGS: dict[int, tuple[str, dict[str, Any]]] = {
    1: ("carol", {}),
    2: ("carol", {"interface": "V1_NFT", "compressed": True}),
    3: ("carol", {}),
    4: ("dave", {"frozen": True, "delegate": MARKET}),
    5: ("dave", {}),
    6: ("erin", {"interface": "V1_NFT", "compressed": True}),
    7: ("bob", {}),
    8: ("erin", {"frozen": True, "delegate": MARKET}),
}
# A collection that mainnet has had for years, like Multicall3 on the EVM chains; the world does not list it.
MAD_LADS = "J1S9H3QjnRtBbbuD4HjPV6RpRhwuk4zKbxsnCHuTgh9w"
MAD_LAD = "F9Lw3ki3hJ7PF9HQXsBzoY8GyE6sPoEZZdXJBsTTD2rk"
MAD_OWNER = "86xCnPeV69n6t3DnyGvkKobf9FdN2H9oiVDdaMpo2MMY"

Record = dict[str, Any]


@dataclass(frozen=True)
class Asset:
    """One asset. `collection` is empty where it belongs to none; `verified` says that the collection agrees.

    A burnt asset keeps its last owner, as indexers show it.
    """

    id: str
    name: str
    owner: str
    collection: str = ""
    interface: str = "ProgrammableNFT"
    verified: bool = True
    compressed: bool = False
    frozen: bool = False
    delegate: str | None = None
    burnt: bool = False
    created: int = 0
    updated: int = 0

    @property
    def fungible(self) -> bool:
        """Whether it is a coin rather than an NFT."""
        return self.interface in FUNGIBLE_INTERFACES

    @property
    def has_mint(self) -> bool:
        """Whether it is a mint of the token program, which stays when its token is burned."""
        return not (self.compressed or self.interface.startswith("MplCore"))


@dataclass(frozen=True)
class Transaction:
    """One transaction: its signers (the first pays), the other addresses that it mentions, its memos, its outcome."""

    signature: str
    slot: int
    time: int
    signers: tuple[str, ...]
    others: tuple[str, ...] = ()
    memos: tuple[str, ...] = ()
    lamports: int = 0
    failed: bool = False
    before: Mapping[str, int] = field(default_factory=dict)
    """Address → lamports of its signers and the other addresses; `after` is the same after it."""
    after: Mapping[str, int] = field(default_factory=dict)

    @property
    def err(self) -> dict[str, Any] | None:
        """Why it failed, in a node's form: its second instruction, the payment, was refused."""
        return {"InstructionError": [1, {"Custom": 1}]} if self.failed else None

    def mentions(self, address: str) -> bool:
        """Return whether the address is among its accounts."""
        return address in self.signers or address in self.others


@dataclass
class Holdings:
    """Everything as of one moment. `collections` are the listed ones; their traits are by asset id."""

    assets: dict[str, Asset] = field(default_factory=dict)
    collections: dict[str, Collection] = field(default_factory=dict)
    coins: dict[str, SplCoin] = field(default_factory=dict)
    lamports: dict[str, int] = field(default_factory=dict)
    """Address → what it has, of everybody who was paid."""

    def take(self, record: Record) -> None:
        """Apply one record."""
        if "signers" in record:
            self._pay(record)
        match record["kind"]:
            case "reset":
                vars(self).update(vars(seeds()))
            case "coin":
                self._list_coin(SplCoin(**record["coin"]), record["slot"])
            case "amounts":
                self.coins[record["contract"]].change({owner: int(units) for owner, units in record["changes"].items()})
            case "deploy":
                self._list(record["contract"], record["name"], record["slug"], record["interface"], record["slot"])
            case "mint":
                given = {**record["asset"], "created": record["slot"], "updated": record["slot"]}
                self.assets[given["id"]] = Asset(**given)
            case "change":
                asset = self.assets[record["asset"]]
                self.assets[asset.id] = replace(asset, **record["to"], updated=record["slot"])
            case "traits":
                self.collections[record["contract"]].traits[record["asset"]] = record["traits"]
            case _:
                pass  # payments and memos move no asset

    def _pay(self, record: Record) -> None:
        """Move lamports. A sender who has too little was funded before."""
        payer, moved = record["signers"][0], 0 if record.get("failed") else record.get("lamports", 0)
        self.lamports[payer] = max(0, self.lamports.get(payer, 0) - FEE - moved)
        if moved:
            to = record["others"][0]
            self.lamports[to] = self.lamports.get(to, 0) + moved

    def mint(self, address: str) -> SplCoin | None:
        """Return the coin with this mint, or None. An NFT of the token program is a coin of which there is one."""
        asset = self.assets.get(address)
        if address in self.coins or asset is None or not asset.has_mint:
            return self.coins.get(address)
        return SplCoin(address, asset.name, "", "", "SPL", 0, {} if asset.burnt else {asset.owner: 1})

    def mints(self) -> Iterator[SplCoin]:
        """Yield what all mints stand for, coins last."""
        for address in (*(one for one in self.assets if one not in self.coins), *self.coins):
            if (found := self.mint(address)) is not None:
                yield found

    def _list(self, contract: str, name: str, slug: str, interface: str, slot: int, seeded: bool = False) -> None:
        self.collections[contract] = Collection(contract, name, slug, STANDARD, seeded)
        self.assets[contract] = Asset(contract, name, AUTHORITY, interface=interface, created=slot, updated=slot)

    def _list_coin(self, coin: SplCoin, slot: int) -> None:
        self.coins[coin.contract] = coin
        self.assets[coin.contract] = Asset(
            coin.contract, coin.name, AUTHORITY, interface="FungibleToken", created=slot, updated=slot
        )

    def add_seeds(self) -> None:
        """Add what exists at the start."""
        self.lamports = {one.wallets.solana: AIRDROP for one in PEOPLE}
        for coin in coins.seeded().values():
            self._list_coin(coin, 0)
        contract = address_of(f"collection {SLUG}")
        self._list(contract, NAME, SLUG, "V1_NFT", 0, seeded=True)
        traits = seeded_traits(SLUG, 0)
        for number, (owner, special) in HOLDINGS.items():
            mint = mint_of(contract, number)
            self.assets[mint] = Asset(mint, f"{NAME} #{number}", person(owner).wallets.solana, contract, **special)
            self.collections[contract].traits[mint] = traits[str(number)]
        self.assets[MAD_LAD] = Asset(MAD_LAD, "Mad Lads #8420", MAD_OWNER, MAD_LADS)

    def traits_of(self, asset: Asset) -> dict[str, str | int | float]:
        """Return the traits of an asset in a listed collection."""
        listed = self.collections.get(asset.collection)
        return listed.traits.get(asset.id, {}) if listed else {}


def seeds() -> Holdings:
    """Return what exists at the start."""
    made = Holdings()
    made.add_seeds()
    return made


def mint_of(contract: str, number: int) -> str:
    """Return the address of the asset with this number in a collection."""
    return address_of(f"{contract} #{number}")


def mint_named(contract: str, token: str) -> str | None:
    """Return the address that a text means: an address, or that of a number in a collection; otherwise None."""
    if is_address(token):
        return token
    return mint_of(contract, int(token)) if is_whole(token) else None
