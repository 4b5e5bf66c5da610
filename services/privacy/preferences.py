"""A person's preferences: in which servers their wallets count, and who sees them."""

from dataclasses import dataclass

from sqlalchemy.dialects.postgresql import insert
from sqlmodel import col, select

from models import Member, MemberChoice, Server, Wallet
from models.db.session import AsyncSession
from services.core import audit, queue
from services.core.actors import Actor
from services.core.errors import ServerNotFound
from services.core.json_view import Internal, json_view
from services.privacy import payouts
from services.privacy.payouts import PayoutDownload
from services.rules import pausing
from services.runtime import rate_limits
from services.servers.servers import icon_url


@json_view
class ChoiceView:
    """A server that the person is a member of, and their choice there; `roles` are the names of their roles."""

    server_id: int
    discord_id: str
    name: str
    icon_url: Internal[str | None]
    use_wallets: bool
    share_wallets: bool
    roles: tuple[str, ...]
    payout_wallet_id: int | None
    """The wallet on the server's airdrop list, if the person chose one."""
    payout_downloads: tuple[PayoutDownload, ...]
    """The downloads of lists with it, the newest first."""


@dataclass(frozen=True, slots=True)
class PayoutChoice:
    """The wallet for payouts in a server; None withdraws it."""

    wallet_id: int | None


async def choices(db: AsyncSession, actor: Actor) -> list[ChoiceView]:
    """Return the person's choice in each server that both they and the bot are in, ordered by the server's name."""
    rows = await db.exec(
        select(Server, MemberChoice)
        .join(Member, col(Member.server_id) == col(Server.id))
        .outerjoin(
            MemberChoice, (col(MemberChoice.server_id) == col(Server.id)) & (col(MemberChoice.user_id) == actor.user_id)
        )
        .where(Member.discord_id == actor.discord_id, col(Member.left_at).is_(None), col(Server.bot_invited).is_(True))
        .order_by(col(Server.name), col(Server.id))
    )
    roles = await _roles(db, actor)
    downloaded = await payouts.downloads(db, actor)
    return [
        ChoiceView(
            server_id=server.id or 0,
            discord_id=server.discord_id,
            name=server.name,
            icon_url=icon_url(server.discord_id, server.icon),
            use_wallets=choice.use_wallets if choice else True,
            share_wallets=choice.share_wallets if choice else False,
            roles=roles.get(server.id or 0, ()),
            payout_wallet_id=choice.payout_wallet_id if choice else None,
            payout_downloads=downloaded.get(server.id or 0, ()),
        )
        for server, choice in rows.all()
    ]


async def _roles(db: AsyncSession, actor: Actor) -> dict[int, tuple[str, ...]]:
    """Return, by server, the names of the roles that we gave the person and they still have."""
    result = await db.execute(
        """
        SELECT g.server_id, array_agg(DISTINCT r.role_name ORDER BY r.role_name)
        FROM "grant" g JOIN rule r ON r.server_id = g.server_id AND r.role_id = g.role_id
        WHERE g.discord_id = :who AND g.state IN ('held', 'taking') GROUP BY g.server_id
        """,
        {"who": actor.discord_id},
    )
    return {int(server_id): tuple(map(str, names)) for server_id, names in result.all()}


async def choose(
    db: AsyncSession,
    actor: Actor,
    server_id: int,
    *,
    use_wallets: bool | None = None,
    share_wallets: bool | None = None,
    payout: PayoutChoice | None = None,
) -> ChoiceView:
    """Store whether the person's wallets count in a server, whether its admins may see them, and the payout address.

    None leaves a choice as it is. Roles follow: those earned only by wallets end by their rules' removal policy. Raises
    ServerNotFound unless the person is a member of that server and the bot is in it, WalletNotFound, FieldRefused, and
    TooMany for somebody who agrees too often to what they withdrew: each time the server's log grows, and roles follow.
    Withdrawing is always possible.
    """
    # One call at a time: each writes both choices, and would put back what another one has just changed.
    await db.lock(f"choices {server_id} {actor.user_id}")
    before = next((one for one in await choices(db, actor) if one.server_id == server_id), None)
    if before is None:
        raise ServerNotFound
    use = before.use_wallets if use_wallets is None else use_wallets
    share = before.share_wallets if share_wallets is None else share_wallets
    decided = {"use_wallets": use, "share_wallets": share}
    paid_to = before.payout_wallet_id if payout is None else payout.wallet_id
    is_paid_elsewhere = paid_to is not None and paid_to != before.payout_wallet_id
    if use > before.use_wallets or share > before.share_wallets or is_paid_elsewhere:
        await rate_limits.spend_choice(server_id, actor.user_id)
    if use != before.use_wallets:
        wallets = await db.exec(select(Wallet.address).where(Wallet.user_id == actor.user_id))
        await queue.mark_people(db, [actor.discord_id], wallets.all(), servers=[server_id])
        if use:
            await pausing.call_off_removals(db, server_id, of=actor.discord_id)
    row = insert(MemberChoice).values(server_id=server_id, user_id=actor.user_id, **decided)
    await db.execute(row.on_conflict_do_update(index_elements=["server_id", "user_id"], set_=decided))
    if (use, share) != (before.use_wallets, before.share_wallets):
        said = {"useWallets": use, "shareWallets": share}
        await audit.record(
            db,
            audit.line(
                "member.chose", server_id=server_id, actor=actor.discord_id, subject=actor.discord_id, data=said
            ),
        )
    if payout is not None:
        await payouts.choose(db, actor, server_id, payout.wallet_id)
    return next(one for one in await choices(db, actor) if one.server_id == server_id)
