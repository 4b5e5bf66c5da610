"""Replace the contract of a collection or coin, or a role, in all rules of a server at once."""

from app.api.requests.caller import Caller
from app.api.requests.routers import calls
from app.api.requests.shapes import Loose, PathId, Payload, TimeUntil
from app.api.server.moves import MovePreview, previewed
from gateways import gateways
from models import transaction
from services.engine.previews.proposals import MigrationEnd, NewContract, NewRole
from services.rules.replacements import contract_migrations, new_role, running_migrations
from services.rules.replacements.condition_successors import MigrationOrder
from services.rules.replacements.contract_migrations import MigrationView
from services.rules.replacements.new_role import RoleOrder, RoleReplacement
from services.rules.replacements.running_migrations import RunningMigration

router = calls("/servers/{server_id}/migrations", tags=["migrations"])


class MigrationPayload(Payload):
    """The old contract and the new one, which is on the same chain unless `newChain` names another.

    `sameIds` says that each token has the same ID in the new contract. With `both`, both contracts count `until` a date
    or, without one, until somebody ends the migration. Rules are changed only with `apply`.
    """

    chain: Loose = ""
    contract: Loose = ""
    new_chain: Loose = ""
    new_contract: Loose = ""
    same_ids: bool = False
    both: bool = False
    until: TimeUntil | None = None
    apply: bool = False

    def order(self) -> MigrationOrder:
        """Return the order for the services."""
        return MigrationOrder(
            chain=self.chain.strip().lower(), contract=self.contract, new_contract=self.new_contract,
            new_chain=self.new_chain.strip().lower(), same_ids=self.same_ids, both=self.both,
            until=self.until if self.both else None,
        )  # fmt: skip


@router.get("")
async def list_migrations(caller: Caller, server_id: PathId) -> tuple[RunningMigration, ...]:
    """Return the migrations of the server in which both contracts count at present."""
    async with transaction() as db:
        return await running_migrations.running(db, gateways(), caller, server_id)


@router.post("")
async def migrate_contract(caller: Caller, server_id: PathId, payload: MigrationPayload) -> MigrationView:
    """Return how each rule with the old contract changes, and why some rules stay; with `apply`, change them."""
    async with transaction() as db:
        work = contract_migrations.apply if payload.apply else contract_migrations.preview
        return await work(db, gateways(), caller, server_id, payload.order())


@router.post("/preview")
async def preview_migration(caller: Caller, server_id: PathId, payload: MigrationPayload) -> MovePreview:
    """Return what a migration would do to members; changes nothing."""
    return await previewed(caller, NewContract(server_id, payload.order()))


class RoleReplacementPayload(Payload):
    """The role `newRole` replaces the role `oldRole`, by their Discord IDs. Rules are changed only with `apply`."""

    old_role: Loose = ""
    new_role: Loose = ""
    apply: bool = False

    def order(self) -> RoleOrder:
        """Return the order for the services."""
        return RoleOrder(self.old_role.strip(), self.new_role.strip())


@router.post("/role")
async def replace_role(caller: Caller, server_id: PathId, payload: RoleReplacementPayload) -> RoleReplacement:
    """Return which rules would give the new role in place of the old one; with `apply`, change them."""
    async with transaction() as db:
        work = new_role.apply if payload.apply else new_role.preview
        return await work(db, gateways(), caller, server_id, payload.order())


@router.post("/role/preview")
async def preview_role_replacement(caller: Caller, server_id: PathId, payload: RoleReplacementPayload) -> MovePreview:
    """Return what replacing a role would do to members; changes nothing."""
    return await previewed(caller, NewRole(server_id, payload.order()))


@router.post("/{migration_id}/preview")
async def preview_migration_end(caller: Caller, server_id: PathId, migration_id: PathId) -> MovePreview:
    """Return what would happen to members if only the new contract counted; changes nothing."""
    return await previewed(caller, MigrationEnd(server_id, migration_id))


@router.post("/{migration_id}/end")
async def end_migration(caller: Caller, server_id: PathId, migration_id: PathId) -> MigrationView:
    """Let only the new contract count from now on."""
    async with transaction() as db:
        return await contract_migrations.end(db, gateways(), caller, server_id, migration_id)
