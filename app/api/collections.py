"""Collections: found by address or marketplace page, and the traits that their tokens have."""

from fastapi import APIRouter

from app.api.requests.caller import Caller
from app.api.requests.shapes import ApiAnswer, Loose, Payload, Text
from gateways import gateways
from models import transaction
from services.collections import catalog
from services.collections.catalog import CollectionView

router = APIRouter(prefix="/collection", tags=["collections"])


class CollectionPayload(Payload):
    """A contract's address on a chain, or a collection's page on OpenSea or Magic Eden."""

    input: Loose = ""
    blockchain: Loose = ""


class TraitTypesAnswer(ApiAnswer):
    """The kinds of traits."""

    trait_types: list[str]


class TraitValuesAnswer(ApiAnswer):
    """The values of one kind of trait; none where they are numbers."""

    trait_values: list[str]


@router.post("/parse")
async def parse(caller: Caller, payload: CollectionPayload) -> CollectionView:
    """Which collection an address or a page means; a token's page means the token's collection.

    Where another is meant than can be told, or it is on another chain, the error carries `offers`: collections that
    can be taken over as they stand.
    """
    async with transaction() as db:
        return await catalog.parse(db, gateways(), payload.input, payload.blockchain)


@router.get("/{contract}/traits")
async def trait_types(caller: Caller, contract: Text, blockchain: Text = "") -> TraitTypesAnswer:
    """The kinds of traits that a collection's tokens have: as OpenSea lists them, else as some tokens tell."""
    async with transaction() as db:
        return TraitTypesAnswer(trait_types=await catalog.trait_types(db, gateways(), contract, blockchain))


@router.get("/{contract}/traits/{trait_type:path}")
async def trait_values(caller: Caller, contract: Text, trait_type: Text, blockchain: Text = "") -> TraitValuesAnswer:
    """The values of one kind of trait; for numbers OpenSea tells only bounds, and then there are none."""
    async with transaction() as db:
        values = await catalog.trait_values(db, gateways(), contract, blockchain, trait_type)
    return TraitValuesAnswer(trait_values=values)
