"""All holders' amounts of a coin on Solana in one call, instead of a call for each wallet.

A node may refuse such a call, or answer only in part. So the amounts count only if their sum is the coin's supply,
which is read right afterwards: then no account is missing. A call that a node refuses is not repeated there for a
while.
"""

import asyncio
import random
import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import NamedTuple, cast

from gateways.evm.rpc.errors import NodeTimedOut, TooMuch
from gateways.evm.rpc.node import Head
from gateways.solana.node import SolanaNode
from gateways.solana.token_accounts import CONFIRMED, TOKEN_PROGRAMS
from gateways.transport import question_time
from gateways.transport.base58 import encode
from gateways.transport.errors import ProviderBusy, ProviderConfused, ProviderError, ProviderRefused
from gateways.transport.json_shape import Shape

FEWEST_OWNERS = 20
"""The number of owners from which all accounts are read. Providers count such a call as ten calls
(docs/facts.md#solana-coins)."""
KEPT_SECONDS = 10.0
"""Seconds for which the amounts answer further questions about many owners, as a sweep asks them; never a
confirmation."""
SHARE_OF_TIME = 0.5
"""Share of the whole time for scans; the rest is for reading wallet by wallet."""
SHARE_OF_SCANS = 0.9
"""Share of that time for the accounts; the rest is for the supplies of the scans that end last."""
SCANS_AT_ONCE = 2
"""Calls of getProgramAccounts at a time in one read, so that the node has room for the supplies of finished coins."""
LEAST_SHARE = 2.0
"""Least seconds for one coin, however many others wait."""
TOGETHER_SECONDS = 0.1
"""Seconds that a finished coin waits for others, so that one request reads all their supplies."""
UNFIT_FOR, REFUSED_FOR, FAILED_FOR = 6 * 3600.0, 3600.0, 60.0
"""Seconds for which a coin that is too large, a program that the node does not scan, and a failed read are skipped."""
NOT_WHOLE_FOR = 600.0
"""The same for a coin whose amounts do not add up to its supply: it is being minted, or its accounts withhold fees."""
MOST_REMEMBERED = 10_000
A_STEP = 5_000
"""Accounts that are parsed in one step, so that a large answer does not block the event loop."""
MINTS_A_REQUEST = 100
MOST_LISTED = 10

IS_TOO_LARGE = re.compile(
    r"too many (accounts|pubkeys)|large number of (accounts|pubkeys)|getProgramAccountsV2|too (large|big)",
    re.IGNORECASE,
)
"""The error texts, with various codes, for a coin or an owner with more accounts than a node returns
(docs/facts.md#solana-coins)."""
TOKEN, TOKEN_2022 = TOKEN_PROGRAMS
ACCOUNT_SIZE = 165
_OWNER_AND_AMOUNT = {"offset": 32, "length": 40}
_SUPPLY = {"offset": 36, "length": 8}
_IS_ACCOUNT = encode(bytes([2]))
"""The byte that Token-2022 writes after the first ACCOUNT_SIZE bytes of an account with extensions."""


@dataclass(frozen=True, slots=True)
class CoinScan:
    """All holders' amounts of a coin: `amounts` has as keys the 32 bytes of each owner with a balance."""

    amounts: Mapping[bytes, int]
    slot: int
    """The slot of the oldest answer."""
    read_at: float
    """When the scan began, in monotonic seconds."""
    head: Head
    """The node's head before the amounts were read."""


class _Mint(NamedTuple):
    program: str
    supply: int
    slot: int


@dataclass(slots=True)
class _Turns:
    """The turns of the coins in one read, which begins at the node's `head` and must end at `ends` (question time)."""

    head: Head
    ends: float
    unfinished: int = 0
    """Coins that have not ended."""
    _places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SCANS_AT_ONCE))
    _entry: asyncio.Lock = field(default_factory=asyncio.Lock)

    @asynccontextmanager
    async def taken(self, places: int) -> AsyncGenerator[float]:
        """Wait for a coin's turn; the value is the time at which the turn has to end.

        A coin's share is the time that is left, divided by the number of unfinished coins.
        """
        async with self._entry:
            for _ in range(places):
                await self._places.acquire()
        try:
            left = self.ends - question_time.now()
            share = max(LEAST_SHARE, left * SCANS_AT_ONCE / (places * self.unfinished))
            yield question_time.now() + min(left, share)
        finally:
            self.unfinished -= 1
            for _ in range(places):
                self._places.release()


@dataclass(slots=True)
class CoinScans:
    """A reader of whole coins, which remembers which of a client's nodes refuse which coins.

    `listed` maps a node to at most MOST_LISTED token accounts (owner and mint) that its lists of owners showed last.
    """

    listed: dict[int, dict[tuple[str, str], None]] = field(default_factory=dict[int, dict[tuple[str, str], None]])

    _left_until: dict[tuple[int, str], float] = field(default_factory=dict[tuple[int, str], float])
    """Node and mint or token program → until when it is skipped, in monotonic seconds."""
    _programs: dict[str, str] = field(default_factory=dict[str, str])
    _kept: dict[tuple[int, str], CoinScan] = field(default_factory=dict[tuple[int, str], CoinScan])
    _reading: dict[int, asyncio.Lock] = field(default_factory=dict[int, asyncio.Lock])

    def note_listed(self, node: SolanaNode, owner: str, mint: str) -> None:
        """Remember that the node's list of an owner showed an account of a mint."""
        listed = self.listed.setdefault(node.index, {})
        listed.pop((owner, mint), None)
        listed[owner, mint] = None
        if len(listed) > MOST_LISTED:
            del listed[next(iter(listed))]

    def kept(self, node: SolanaNode, mints: Sequence[str], not_before: int) -> dict[str, CoinScan]:
        """Return the scans of these mints from the last KEPT_SECONDS, at or after a slot."""
        now = monotonic()
        self._kept = {place: one for place, one in self._kept.items() if now - one.read_at < KEPT_SECONDS}
        found = {mint: self._kept.get((node.index, mint)) for mint in mints}
        return {mint: one for mint, one in found.items() if one is not None and one.slot >= not_before}

    async def read(
        self, node: SolanaNode, mints: Sequence[str], head: Head, *, deadline: float, not_before: int, again: bool
    ) -> dict[str, CoinScan]:
        """Return the scans of the mints that can be read as a whole; the others must be read wallet by wallet.

        With `again`, no kept scan is used. `head` is the node's; `deadline` is loop time.
        """
        if again:
            return await self._in_time(node, mints, head, deadline)
        begun = question_time.now()
        try:
            # Callers that come at the same time use the scan of the first one.
            async with question_time.timeout_at(begun + (deadline - begun) * SHARE_OF_TIME):
                await self._reading.setdefault(node.index, asyncio.Lock()).acquire()
        except TimeoutError:
            return self.kept(node, mints, not_before)
        try:
            found = self.kept(node, mints, not_before)
            left = [mint for mint in mints if mint not in found]
            return found | await self._in_time(node, left, head, deadline)
        finally:
            self._reading[node.index].release()

    async def _in_time(
        self, node: SolanaNode, mints: Sequence[str], head: Head, deadline: float
    ) -> dict[str, CoinScan]:
        """Read the coins that are not skipped, and return those that were read before the time ended."""
        left, begun = [mint for mint in mints if not self._is_left(node, mint)], question_time.now()
        found, seconds = dict[str, CoinScan](), (deadline - begun) * SHARE_OF_TIME
        if left:
            with suppress(TimeoutError):
                async with question_time.timeout_at(begun + seconds):
                    await self._all(node, left, _Turns(head, begun + seconds * SHARE_OF_SCANS), found)
        return found

    async def _all(self, node: SolanaNode, mints: Sequence[str], turns: "_Turns", found: dict[str, CoinScan]) -> None:
        """Read coins concurrently, each within its share of the time, and put complete ones into `found`."""
        with suppress(ProviderError):
            if unknown := [mint for mint in mints if mint not in self._programs]:
                await self._mints(node, unknown)
        programs = {mint: self._programs[mint] for mint in mints if mint in self._programs}
        # In random order, so that slow coins do not delay the same others each time.
        order = random.sample(list(programs), len(programs))
        turns.unfinished = len(order)
        running = {asyncio.create_task(self._in_turn(node, mint, programs[mint], turns)) for mint in order}
        try:
            while running:
                ended, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                if running:
                    more, running = await asyncio.wait(running, timeout=TOGETHER_SECONDS)
                    ended |= more
                read = [one for task in ended if (one := task.result()) is not None]
                if read:
                    await self._compare(node, dict(read), found)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _in_turn(self, node: SolanaNode, mint: str, program: str, turns: "_Turns") -> tuple[str, CoinScan] | None:
        """Read one coin when its turn comes; a coin that takes longer than its share is skipped for a while."""
        async with turns.taken(len(_filters(program))) as until:
            if self._is_left(node, mint) or question_time.now() >= until:
                return None
            try:
                async with question_time.timeout_at(until):
                    scan = await self._holders(node, mint, program, turns.head)
            except TimeoutError:
                self._leave(node, mint, NOT_WHOLE_FOR)
                return None
        return None if scan is None else (mint, scan)

    async def _compare(self, node: SolanaNode, scans: Mapping[str, CoinScan], found: dict[str, CoinScan]) -> None:
        """Put the scans whose amounts add up to the present supply into `found`."""
        try:
            after = await self._mints(node, list(scans))
        except ProviderError:
            return
        for mint, scan in scans.items():
            supply = after.get(mint)
            # For a coin that nobody holds, a right answer without accounts looks like a failure.
            if supply is None or not supply.supply or sum(scan.amounts.values()) != supply.supply:
                self._leave(node, mint, NOT_WHOLE_FOR)
                continue
            found[mint] = replace(scan, slot=min(scan.slot, supply.slot))
            self._kept[node.index, mint] = found[mint]

    async def _mints(self, node: SolanaNode, mints: Sequence[str]) -> dict[str, _Mint]:
        """Return the program and the supply of mints, without those that are not coins, which are skipped for a while.

        Raises ProviderError.
        """
        found = dict[str, _Mint]()
        for start in range(0, len(mints), MINTS_A_REQUEST):
            asked = mints[start : start + MINTS_A_REQUEST]
            options = {"encoding": "base64", "dataSlice": _SUPPLY, **CONFIRMED}
            answer = Shape(await node.ask("getMultipleAccounts", [asked, options]), "the answer", node.name)
            slot, accounts = answer.inner("context").number("slot"), answer.items("value")
            if len(accounts) != len(asked):
                raise ProviderConfused(node.name, f"{len(accounts)} accounts in place of {len(asked)}")
            for mint, item in zip(asked, accounts, strict=True):
                try:
                    one = _mint(node, item, slot)
                except ProviderError:
                    # Its data may be too short, for example. The other mints are still read.
                    self._leave(node, mint, FAILED_FOR)
                    continue
                if one is None:
                    self._leave(node, mint, NOT_WHOLE_FOR)
                    continue
                if len(self._programs) >= MOST_REMEMBERED:
                    self._programs.clear()
                self._programs[mint] = one.program
                found[mint] = one
        return found

    async def _holders(self, node: SolanaNode, mint: str, program: str, head: Head) -> CoinScan | None:
        """Return the amounts in all accounts of a coin; None where the node refuses them, which is remembered."""
        read_at = monotonic()
        try:
            answers = await asyncio.gather(*(self._accounts(node, mint, program, one) for one in _filters(program)))
        except ProviderError as fault:
            self._leave_for(node, mint, program, fault)
            return None
        amounts = dict[bytes, int]()
        for _, found in answers:
            for owner, amount in found.items():
                amounts[owner] = amounts.get(owner, 0) + amount
        return CoinScan(amounts, min(slot for slot, _ in answers), read_at, head)

    def _leave_for(self, node: SolanaNode, mint: str, program: str, fault: ProviderError) -> None:
        """Skip the coin for a while, or its whole program if the error does not depend on the coin."""
        if isinstance(fault, TooMuch | NodeTimedOut) or IS_TOO_LARGE.search(str(fault)):
            self._leave(node, mint, UNFIT_FOR)
        elif isinstance(fault, ProviderBusy):
            self._leave(node, program, FAILED_FOR)
        elif isinstance(fault, ProviderRefused):
            self._leave(node, program, REFUSED_FOR)
        else:
            self._leave(node, mint, FAILED_FOR)

    async def _accounts(
        self, node: SolanaNode, mint: str, program: str, only: Mapping[str, object]
    ) -> tuple[int, Mapping[bytes, int]]:
        options = {
            "encoding": "base64",
            "dataSlice": _OWNER_AND_AMOUNT,
            "filters": [only, {"memcmp": {"offset": 0, "bytes": mint}}],
            "withContext": True,
            **CONFIRMED,
        }
        answer = Shape(await node.ask("getProgramAccounts", [program, options]), "the answer", node.name)
        accounts, amounts = answer.items("value"), dict[bytes, int]()
        for start in range(0, len(accounts), A_STEP):
            for item in accounts[start : start + A_STEP]:
                data = _data(node, Shape(item, "an account", node.name).inner("account"), 40)
                if amount := int.from_bytes(data[32:], "little"):
                    amounts[data[:32]] = amounts.get(data[:32], 0) + amount
            await asyncio.sleep(0)
        return answer.inner("context").number("slot"), amounts

    def _is_left(self, node: SolanaNode, mint: str) -> bool:
        """Return whether a coin is skipped at the node now, because of the coin or of its token program."""
        now, names = monotonic(), (mint, self._programs.get(mint, ""))
        return any(self._left_until.get((node.index, name), 0.0) > now for name in names)

    def _leave(self, node: SolanaNode, name: str, seconds: float) -> None:
        if len(self._left_until) >= MOST_REMEMBERED:
            self._left_until.clear()
        self._left_until[node.index, name] = monotonic() + seconds


def _filters(program: str) -> list[Mapping[str, object]]:
    """Return the filters that separate a program's token accounts from its mints; nodes index only these accounts.

    Token-2022 has accounts of the plain size, and longer ones with extensions.
    """
    plain: Mapping[str, object] = {"dataSize": ACCOUNT_SIZE}
    extended = {"memcmp": {"offset": ACCOUNT_SIZE, "bytes": _IS_ACCOUNT}}
    return [plain] if program == TOKEN else [plain, extended]


def _mint(node: SolanaNode, item: object, slot: int) -> _Mint | None:
    """Return a mint; None for a missing account or one of another program. Raises ProviderConfused."""
    if item is None:
        return None
    account = Shape(item, "a mint", node.name)
    program = account.text("owner")
    if program not in TOKEN_PROGRAMS:
        return None
    return _Mint(program, int.from_bytes(_data(node, account, 8), "little"), slot)


def _data(node: SolanaNode, account: Shape, size: int) -> bytes:
    """Return an account's data, of which `size` bytes were requested. Raises ProviderConfused for any other number."""
    try:
        content, encoding = cast("tuple[str, str]", account.items("data"))
        data = b64decode(content, validate=True) if encoding == "base64" else b""
    except (ValueError, TypeError, NotBase64):
        data = b""
    if len(data) != size:
        raise ProviderConfused(node.name, "an account's data are not what was asked for")
    return data
