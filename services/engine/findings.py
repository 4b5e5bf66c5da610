"""Keeping what a round found out: balances, tokens and where to look for them, traits, and what each wallet held."""

from models.db.session import AsyncSession
from services.collections import token_traits
from services.engine.outcome import Round
from services.holdings import delegations, fetch, last_seen


async def remember(db: AsyncSession, done: Round) -> None:
    """Write down what became known; what is unknown overwrites nothing, nor does what is older."""
    await fetch.remember(db, done.asked)
    await token_traits.remember(db, done.traits)
    await delegations.remember(db, done.delegations)
    await last_seen.remember(db, [reading for item in done.looked for reading in item.readings_made()])
