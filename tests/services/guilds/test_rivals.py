"""A member who shares a vault with somebody is reconciled when that person joins or leaves, and is never starved."""

import pytest
from sqlmodel import select

from models import Delegation, Due, Member, Server, User, transaction
from services.core import queue
from services.core.actors import Actor
from services.guilds import members
from services.privacy import preferences
from tests.support.builders import a_member, a_server, address

pytestmark = pytest.mark.usefixtures("database")

VAULT = "0x" + "ab" * 20


class Shared:
    """A victim and a stranger to whom the same vault has delegated; both are members of two servers."""

    def __init__(self, victim: Member, stranger: Member, wallets: list[str], here: Server, there: Server) -> None:
        self.victim, self.stranger, self.wallets = victim, stranger, wallets
        self.here, self.there = here.id or 0, there.id or 0


@pytest.fixture
async def shared(database: None) -> Shared:
    async with transaction() as db:
        here, there = await a_server(db), await a_server(db)
        wallets = [address(), address()]
        victim = await a_member(db, here, wallet=wallets[0])
        stranger = await a_member(db, there, wallet=wallets[1])
        for member, server in ((victim, there), (stranger, here)):
            db.add(Member(server_id=server.id or 0, discord_id=member.discord_id, name="somebody"))
        for wallet in wallets:
            db.add(Delegation(chain="base", delegate=wallet, vault=VAULT, contract="", token_id=""))
    return Shared(victim, stranger, wallets, here, there)


async def marked() -> dict[str, tuple[int, int]]:
    """Return, by key, the version of each due member and how many of its marks were mere sightings."""
    async with transaction() as db:
        return {row.key: (row.version, row.seen) for row in (await db.exec(select(Due))).all()}


async def test_who_leaves_a_server_disturbs_nobody_in_another_one(shared: Shared) -> None:
    async with transaction() as db:
        await members.left_many(db, [(shared.there, shared.stranger.discord_id)])
    assert list(await marked()) == [f"{shared.there}:{shared.victim.discord_id}"]


async def test_a_choice_about_a_server_disturbs_nobody_in_another_one(shared: Shared) -> None:
    async with transaction() as db:
        user = (await db.exec(select(User).where(User.discord_id == shared.stranger.discord_id))).one()
        actor = Actor(user.id or 0, user.discord_id, user.username)
        await preferences.choose(db, actor, shared.there, use_wallets=False)
    assert sorted(await marked()) == sorted(
        f"{shared.there}:{member.discord_id}" for member in (shared.victim, shared.stranger)
    )


async def test_what_somebody_else_does_with_a_shared_vault_ends_no_look_in_vain(shared: Shared) -> None:
    key = f"{shared.here}:{shared.victim.discord_id}"
    async with transaction() as db:
        await queue.mark_member(db, shared.here, shared.victim.discord_id, queue.WAITING)
        claims = await queue.claim(db, "w1", 10)
    for doing in (
        lambda db: queue.mark_other_delegates(db, [shared.wallets[1]], queue.CHANGED),
        lambda db: queue.mark_claimants(db, [VAULT], queue.SEEN, without=[shared.wallets[1]]),
    ):
        async with transaction() as db:
            await doing(db)
    assert (await marked())[key] == (claims[0].version + 2, claims[0].seen + 2)
    async with transaction() as db:
        (((ours, merely_seen),),) = await db.together(queue.still_ours("w1", claims))
    assert (list(ours), list(merely_seen)) == ([], [key])
