"""Collections, found by address or marketplace page, their traits, and their migration to another contract."""

from app.api.protection import MovePreview, Until
from app.api.requests.caller import Caller
from app.api.requests.routers import calls
from app.api.requests.shapes import ApiAnswer, Loose, PathId, Payload, Text
from gateways import gateways
from models import transaction
from services.collections import catalogue
from services.collections.catalogue import CollectionView
from services.engine import preview as impact
from services.engine.preview import Proposal
from services.guilds import permissions
from services.rules.replacements import contract_migrations, new_role, running_migrations
from services.rules.replacements.contract_migrations import MigrationView
from services.rules.replacements.new_role import RoleOrder, RoleReplacement
from services.rules.replacements.running_migrations import RunningMigration
from services.rules.replacements.successors import MigrationOrder

router = calls("/collection", tags=["collections"])
migrating = calls("/servers/{server_id}/migrations", tags=["migrations"])


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
async def parse(caller: Caller, payload: CollectionPayload) -> CollectionView:
    """Return the collection of an address or a page; a token's page leads to the token's collection.

    Where another is meant than can be told, or it is on another chain, the error carries `offers`: collections that
    can be taken over as they stand.
    """
    async with transaction() as db:
        await permissions.check_token(db, gateways(), caller)
        return await catalogue.parse(db, gateways(), payload.input, payload.blockchain)


@router.get("/{contract}/traits")
async def trait_types(caller: Caller, contract: Text, blockchain: Text = "") -> TraitTypesAnswer:
    """Return the kinds of traits of a collection's tokens: from OpenSea, or else from some of the tokens."""
    async with transaction() as db:
        await permissions.check_token(db, gateways(), caller)
        return TraitTypesAnswer(trait_types=await catalogue.trait_types(db, gateways(), contract, blockchain))


@router.get("/{contract}/traits/{trait_type:path}")
async def trait_values(caller: Caller, contract: Text, trait_type: Text, blockchain: Text = "") -> TraitValuesAnswer:
    """Return the values of one kind of trait; none for numbers, of which OpenSea has only bounds."""
    async with transaction() as db:
        await permissions.check_token(db, gateways(), caller)
        values = await catalogue.trait_values(db, gateways(), contract, blockchain, trait_type)
    return TraitValuesAnswer(trait_values=values)


class MigrationPayload(Payload):
    """This contract became that one, on the same chain unless `newChain` names another.

    `sameIds` says that each token has the same ID there. With `both`, each contract counts, `until` a date or, without
    one, until somebody ends that. With `apply` the rules are changed; without it nothing is.
    """

    chain: Loose = ""
    contract: Loose = ""
    new_chain: Loose = ""
    new_contract: Loose = ""
    same_ids: bool = False
    both: bool = False
    until: Until | None = None
    apply: bool = False

    def order(self) -> MigrationOrder:
        """Return the order for the services."""
        return MigrationOrder(
            chain=self.chain.strip().lower(), contract=self.contract, new_contract=self.new_contract,
            new_chain=self.new_chain.strip().lower(), same_ids=self.same_ids, both=self.both,
            until=self.until if self.both else None,
        )  # fmt: skip


@migrating.get("")
async def both_counting(caller: Caller, server_id: PathId) -> tuple[RunningMigration, ...]:
    """Return the migrations of the server in which both contracts count at present."""
    async with transaction() as db:
        return await running_migrations.running(db, gateways(), caller, server_id)


@migrating.post("")
async def migrate(caller: Caller, server_id: PathId, payload: MigrationPayload) -> MigrationView:
    """Return what each rule that names the old contract becomes, and why some stay; with `apply`, change them."""
    async with transaction() as db:
        work = contract_migrations.apply if payload.apply else contract_migrations.preview
        return await work(db, gateways(), caller, server_id, payload.order())


@migrating.post("/preview")
async def preview_migration(caller: Caller, server_id: PathId, payload: MigrationPayload) -> MovePreview:
    """Return what a migration would do to members; changes nothing."""
    return await _previewed(caller, Proposal(server_id=server_id, migrates=payload.order()))


class RoleReplacementPayload(Payload):
    """The role `oldRole` became the role `newRole`, by their Discord IDs. With `apply` the rules are changed."""

    old_role: Loose = ""
    new_role: Loose = ""
    apply: bool = False

    def order(self) -> RoleOrder:
        """Return the order for the services."""
        return RoleOrder(self.old_role.strip(), self.new_role.strip())


@migrating.post("/role")
async def replace_role(caller: Caller, server_id: PathId, payload: RoleReplacementPayload) -> RoleReplacement:
    """Return which rules give the new role in place of the old one; with `apply`, let them do so from now on."""
    async with transaction() as db:
        work = new_role.apply if payload.apply else new_role.preview
        return await work(db, gateways(), caller, server_id, payload.order())


@migrating.post("/role/preview")
async def preview_replaced_role(caller: Caller, server_id: PathId, payload: RoleReplacementPayload) -> MovePreview:
    """Return what replacing a role would do to members; changes nothing."""
    return await _previewed(caller, Proposal(server_id=server_id, replaces=payload.order()))


@migrating.post("/{migration_id}/preview")
async def preview_migration_end(caller: Caller, server_id: PathId, migration_id: PathId) -> MovePreview:
    """Return what letting only the new contract count would do to members; changes nothing."""
    return await _previewed(caller, Proposal(server_id=server_id, ends_migration=migration_id))


@migrating.post("/{migration_id}/end")
async def end_migration(caller: Caller, server_id: PathId, migration_id: PathId) -> MigrationView:
    """Let only the new contract count from now on."""
    async with transaction() as db:
        return await contract_migrations.end(db, gateways(), caller, server_id, migration_id)


async def _previewed(caller: Caller, proposal: Proposal) -> MovePreview:
    async with transaction() as db:
        plan = await impact.plan(db, gateways(), caller, proposal)
    found = await impact.whole(gateways(), plan)
    counts = {outcome: found.count(outcome) for outcome in impact.OUTCOMES}
    return MovePreview(members=found.members, looked=found.looked, concerned=found.concerned, **counts)
