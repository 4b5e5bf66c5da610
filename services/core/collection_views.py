"""A collection as screens and programs see it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CollectionView:
    """A collection on one chain; `slug` is OpenSea's, None while that is not known."""

    name: str
    contract_address: str
    blockchain: str
    slug: str | None = None
