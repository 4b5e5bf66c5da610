"""Poll members' wallets on Solana, which has no logs to follow, and report those whose list changed."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gateways import Gateways
from gateways.chains.balance_sheet import NATIVE, Segment
from gateways.chains.catalogue import CHAINS
from gateways.transport.chunks import chunks
from gateways.transport.errors import ProviderError
from models.db.session import AsyncSession
from services.rules.types.registry import COIN
from services.triggers.chain_cursor import ANY
from services.triggers.transfer_poller import UnreadableTransfers

SOLANA = CHAINS["solana"].key
OWNERS_AT_ONCE = 200
"""Maximum wallets per question: few enough for the time limit of a node that reads each wallet separately."""
MOST_JOINED = 40
"""Maximum questions that are asked together if the node lists the whole collection."""

ListKey = tuple[str, str]
"""A collection (or ANY) and a wallet."""


@dataclass(frozen=True, slots=True)
class AssetQuestion:
    """A request for these wallets' tokens of a collection, or with ANY whether they hold anything at all.

    With `coin` the collection is a coin's mint, and its amounts are asked for.
    """

    collection: str
    owners: tuple[str, ...]
    coin: bool = False


class QuestionTurn:
    """The questions left in one turn over all members; those about a short collection are asked together.

    A collection shorter than the list of wallets is read whole, which costs the same for any number of wallets.
    """

    def __init__(self) -> None:
        self._left: deque[AssetQuestion] = deque()
        self._short: set[str] = set()
        """The collections that the last answer read whole."""

    def __bool__(self) -> bool:
        return bool(self._left)

    def begin(self, questions: Iterable[AssetQuestion]) -> None:
        """Add the questions of a new turn, grouped by collection."""
        self._left.extend(questions)

    def next(self) -> list[AssetQuestion]:
        """Return the next questions, to be asked as one (`joined`)."""
        first = self._left.popleft()
        found = [first]
        while self._left and len(found) < MOST_JOINED and first.collection in self._short:
            if (self._left[0].collection, self._left[0].coin) != (first.collection, first.coin):
                break
            found.append(self._left.popleft())
        return found

    def answered(self, question: AssetQuestion, requests: int) -> None:
        """Record how many requests the answer took."""
        self.failed(question)
        if not question.coin and question.collection != ANY and requests < len(question.owners):
            self._short.add(question.collection)

    def failed(self, question: AssetQuestion) -> None:
        """Record that the question was not answered, so that the next one is about fewer wallets."""
        self._short.discard(question.collection)


def joined(parts: Sequence[AssetQuestion]) -> AssetQuestion:
    """Return these questions about one collection as one."""
    owners = tuple(owner for part in parts for owner in part.owners)
    return AssetQuestion(parts[0].collection, owners, parts[0].coin)


@dataclass(frozen=True, slots=True)
class Polled:
    """The answer as of a slot: which wallets were read for the first time, and whose list has changed."""

    slot: int
    fresh: tuple[str, ...]
    changed: tuple[str, ...]
    lists: Mapping[ListKey, int]


async def questions(db: AsyncSession) -> list[AssetQuestion]:
    """Return all requests of one pass: for each collection of a rule, the wallets of its servers' members."""
    result = await db.execute(
        """
        SELECT DISTINCT leaf ->> 'contract' AS collection, w.address, leaf ->> 'type' = :coin AS coin
        FROM rule r JOIN server s ON s.id = r.server_id AND s.bot_invited
        CROSS JOIN LATERAL jsonb_path_query(r.expression, '$.** ? (@.chain == "solana")') AS leaf
        JOIN member m ON m.server_id = s.id AND m.left_at IS NULL
        JOIN "user" u ON u.discord_id = m.discord_id
        JOIN wallet w ON w.user_id = u.id AND w.family = 'solana'
        WHERE r.deleted_at IS NULL AND NOT (leaf ->> 'type' = :coin AND leaf ->> 'contract' = :native)
        ORDER BY 1, 2
        """,
        {"coin": COIN, "native": NATIVE},
    )
    wanted: dict[tuple[str, bool], list[str]] = {}
    for collection, address, coin in result.all():
        wanted.setdefault((str(collection), bool(coin)), []).append(str(address))
    return [
        AssetQuestion(collection, tuple(owners), coin)
        for (collection, coin), addresses in wanted.items()
        for owners in chunks(addresses, OWNERS_AT_ONCE)
    ]


@dataclass
class Poll:
    """The last seen lists of wallets' tokens, each as one number: millions of tokens would not fit into memory."""

    lists: dict[ListKey, int] = field(default_factory=dict[ListKey, int])

    async def ask(self, outside: Gateways, question: AssetQuestion) -> Polled:
        """Ask once; `keep` stores the result. Raises UnreadableTransfers."""
        try:
            return await self._ask(outside, question)
        except ProviderError as fault:
            raise UnreadableTransfers(str(fault)) from fault

    async def _ask(self, outside: Gateways, question: AssetQuestion) -> Polled:
        owners = question.owners
        if question.coin:
            return await self._ask_coin(outside, question)
        if question.collection == ANY:
            sheet = await outside.chains.anything(SOLANA, owners)
            seen = {owner: int(bool(sheet.of(owner))) for owner in owners}
        else:
            sheet = await outside.chains.tokens(SOLANA, question.collection, owners)
            seen = {owner: hash(frozenset(sheet.of(owner))) for owner in owners}
        sure = {(question.collection, owner): now for owner, now in seen.items() if owner not in sheet.unsure}
        return self._polled(sheet.block, sure)

    async def _ask_coin(self, outside: Gateways, question: AssetQuestion) -> Polled:
        coin = question.collection
        (sheet,) = await outside.chains.balances(SOLANA, [Segment((coin,), question.owners, frozenset({coin}))])
        amounts = {owner: sheet.amount(coin, owner) for owner in question.owners}
        return self._polled(
            sheet.block, {(coin, owner): amount for owner, amount in amounts.items() if amount is not None}
        )

    def _polled(self, slot: int, sure: Mapping[ListKey, int]) -> Polled:
        return Polled(
            slot=slot,
            fresh=tuple(owner for (where, owner) in sure if (where, owner) not in self.lists),
            changed=tuple(owner for (where, owner), now in sure.items() if self.lists.get((where, owner), now) != now),
            lists=sure,
        )

    def keep(self, polled: Polled) -> None:
        """Remember these lists as known."""
        self.lists.update(polled.lists)

    def keep_only(self, asked: Iterable[AssetQuestion]) -> None:
        """Forget the lists of wallets that nobody asks for any more."""
        wanted = {(question.collection, owner) for question in asked for owner in question.owners}
        self.lists = {key: now for key, now in self.lists.items() if key in wanted}

    def forget(self) -> None:
        """Forget all lists, because another process polls from now on: if this one polls again, all lists are new."""
        self.lists.clear()
