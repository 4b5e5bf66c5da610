"""Collections, found by address or marketplace page, and their traits."""

from app.api.requests.caller import Caller
from app.api.requests.routers import calls
from app.api.requests.shapes import ApiAnswer, Loose, Payload, Text
from gateways import gateways
from models import transaction
from services.collections import collections
from services.collections.collections import CollectionView
from services.guilds import permissions

router = calls("/collection", tags=["collections"])


class CollectionPayload(Payload):
    """A contract's address on a chain, or a collection's page on OpenSea or Magic Eden."""

    input: Loose = ""
    blockchain: Loose = ""


class TraitTypesAnswer(ApiAnswer):
    """The kinds of traits."""

    trait_types: list[str]


class TraitValuesAnswer(ApiAnswer):
    """The values of one kind of trait; none if they are numbers."""

    trait_values: list[str]


@router.post("/parse")
async def find_collection(caller: Caller, payload: CollectionPayload) -> CollectionView:
    """Return the collection at an address or a marketplace page; the page of a token gives the token's collection.

    If several collections match, or the collection is on another chain, the error has `offers`: collections that a
    client can use unchanged.
    """
    async with transaction() as db:
        await permissions.check_token(db, gateways(), caller)
        with collections.asked_by(caller):
            return await collections.parse(db, gateways(), payload.input, payload.blockchain)


@router.get("/{contract}/traits")
async def list_trait_types(caller: Caller, contract: Text, blockchain: Text = "") -> TraitTypesAnswer:
    """Return the kinds of traits of a collection's tokens: from OpenSea, otherwise from some of the tokens."""
    async with transaction() as db:
        await permissions.check_token(db, gateways(), caller)
        with collections.asked_by(caller):
            return TraitTypesAnswer(trait_types=await collections.trait_types(db, gateways(), contract, blockchain))


@router.get("/{contract}/traits/{trait_type:path}")
async def list_trait_values(
    caller: Caller, contract: Text, trait_type: Text, blockchain: Text = ""
) -> TraitValuesAnswer:
    """Return the values of one kind of trait; none for numbers, for which OpenSea has only bounds."""
    async with transaction() as db:
        await permissions.check_token(db, gateways(), caller)
        with collections.asked_by(caller):
            values = await collections.trait_values(db, gateways(), contract, blockchain, trait_type)
    return TraitValuesAnswer(trait_values=values)
