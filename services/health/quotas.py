"""The marketplaces' limits on Health: how many reads are left, for which use, and when all of them are back."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from sqlmodel import col, select

from gateways.marketplaces.magiceden import MAGIC_EDEN
from gateways.marketplaces.opensea import OPENSEA
from gateways.marketplaces.quota import Use, allowances
from locales import N_, _, number, sentences, series
from models import MarketLimit
from models.db.session import AsyncSession
from services.health.views import GOOD, WARNING, QuotaHealth, QuotaShare
from services.runtime.marketplace_limit_sharing import standing_of

FORGOTTEN_AFTER = timedelta(days=1)
"""A limit that no answer has named for this long is not shown, because it may be that of an earlier key."""
NAMES = {
    Use.PROOF: N_("verifying wallets by bio"),
    Use.AGAIN: N_("checking bios again"),
    Use.RULES: N_("rules about traits and any NFT"),
    Use.LOOKUP: N_("looking up collections"),
}
_USES = {OPENSEA: tuple(NAMES), MAGIC_EDEN: (Use.LOOKUP,)}
_MEND = N_("The person who runs the bot can take an API key that reads more.")
_OTHER_WAY = N_("Wallets can be verified by a transaction meanwhile.")


async def view(db: AsyncSession, moment: datetime) -> tuple[QuotaHealth, ...]:
    """Return the marketplaces' limits as our processes last shared them, those of OpenSea first."""
    query = select(MarketLimit).where(col(MarketLimit.told_at) > moment - FORGOTTEN_AFTER)
    rows = (await db.exec(query.order_by(col(MarketLimit.provider).desc(), col(MarketLimit.reads)))).all()
    return tuple(_health(row, moment) for row in rows)


def _health(row: MarketLimit, moment: datetime) -> QuotaHealth:
    now = moment.timestamp()
    found = allowances(standing_of(row), now)
    shares = tuple(
        QuotaShare(
            use.name.lower(), _(NAMES[use]), found[use].reads,
            None if found[use].reads else datetime.fromtimestamp(now + found[use].wait, UTC),
        )
        for use in _USES.get(row.provider, tuple(NAMES))
    )  # fmt: skip
    over = row.resets_at <= moment
    left = row.reads if over else int(row.remaining)
    numbers = {"left": number(left), "all": number(row.reads)}
    if over:
        text = _("{left} of {all} reads are left.").format(**numbers)
    else:
        text = _("{left} of {all} reads are left; all are back at {time}.").format(**numbers, time=_time(row.resets_at))
    state, mend = GOOD, None
    if spent := [share for share in shares if share.back_at is not None]:
        state, mend = WARNING, _(_MEND) if row.provider == OPENSEA else None
        text = sentences(text, *_waits(spent))
    elif len(shares) > 1:
        # Translators: {use} is such as "looking up collections".
        each = _("{use} up to {count}")
        most = series(each.format(use=share.name, count=number(share.left)) for share in shares)
        text = sentences(text, _("From these may be spent: {uses}.").format(uses=most))
    return QuotaHealth(
        state=state, text=text, mend=mend, provider=row.provider.lower(),
        name=_("{provider}'s limit").format(provider=row.provider),
        reads=row.reads, left=left, back_at=None if over else row.resets_at, shares=shares,
    )  # fmt: skip


def _waits(spent: Iterable[QuotaShare]) -> Iterable[str]:
    for share in spent:
        said = f"{share.name[0].upper()}{share.name[1:]}"
        yield _("{use}: none until {time}.").format(use=said, time=_time(share.back_at))
        if share.use == Use.PROOF.name.lower():
            yield _(_OTHER_WAY)


def _time(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment.astimezone(UTC):%H:%M} UTC"
