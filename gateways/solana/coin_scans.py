"""Everybody's amounts of a coin on Solana in one call, instead of a call for each wallet.

A node may refuse such a call, or answer it in part. So the amounts count only if they add up to the coin's supply, as
it is read right afterwards: then no account is missing. What a node refuses is not asked of it again for a while.
"""

import asyncio
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping, Sequence
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
"""From so many owners on all accounts are read. Providers count such a call as ten (docs/facts.md#solana-coins)."""
KEPT_SECONDS = 10.0
"""For how long the amounts serve further questions about many owners, as those of a round are; never a confirmation."""
SHARE_OF_TIME = 0.5
"""Of the whole time; the rest is for asking wallet by wallet."""
UNFIT_FOR, REFUSED_FOR, FAILED_FOR = 6 * 3600.0, 3600.0, 60.0
"""Seconds for which a coin that is too large, a program that the node does not scan, and what failed are left."""
NOT_WHOLE_FOR = 600.0
"""The same for a coin whose amounts are not its supply: it is being minted, or its accounts withhold fees."""
MOST_REMEMBERED = 10_000
A_STEP = 5_000
"""Accounts that are read in one go, so that a large answer does not hold up everything else."""
MINTS_A_REQUEST = 100

TOKEN, TOKEN_2022 = TOKEN_PROGRAMS
ACCOUNT_SIZE = 165
_OWNER_AND_AMOUNT = {"offset": 32, "length": 40}
_SUPPLY = {"offset": 36, "length": 8}
_IS_ACCOUNT = encode(bytes([2]))
"""What Token-2022 writes behind the first ACCOUNT_SIZE bytes of an account with extensions."""


@dataclass(frozen=True, slots=True)
class CoinScan:
    """Everybody's amounts of a coin: `amounts` has the 32 bytes of each owner who has some."""

    amounts: Mapping[bytes, int]
    slot: int
    """The slot of the oldest answer."""
    read_at: float
    """In monotonic seconds."""
    head: Head
    """The node's head before they were read."""


class _Mint(NamedTuple):
    program: str
    supply: int
    slot: int


@dataclass(slots=True)
class CoinScans:
    """Reads coins as a whole, and remembers which of a client's nodes refuse what."""

    _left_until: dict[tuple[int, str], float] = field(default_factory=dict[tuple[int, str], float])
    """Node and mint or token program → until when, in monotonic seconds."""
    _programs: dict[str, str] = field(default_factory=dict[str, str])
    _kept: dict[tuple[int, str], CoinScan] = field(default_factory=dict[tuple[int, str], CoinScan])
    _reading: dict[int, asyncio.Lock] = field(default_factory=dict[int, asyncio.Lock])

    def kept(self, node: SolanaNode, mints: Sequence[str], not_before: int) -> dict[str, CoinScan]:
        """Return what was read of these mints a moment ago, at or after a slot."""
        now = monotonic()
        self._kept = {place: one for place, one in self._kept.items() if now - one.read_at < KEPT_SECONDS}
        found = {mint: self._kept.get((node.index, mint)) for mint in mints}
        return {mint: one for mint, one in found.items() if one is not None and one.slot >= not_before}

    async def read(
        self, node: SolanaNode, mints: Sequence[str], head: Head, *, deadline: float, not_before: int, again: bool
    ) -> dict[str, CoinScan]:
        """Return the scans of those mints that can be read so; the others have to be asked for wallet by wallet.

        `again` takes nothing that was read a moment ago. `head` is the node's, `deadline` loop time.
        """
        if again:
            return await self._in_time(node, mints, head, deadline)
        begun = question_time.now()
        try:
            # Those who come at the same time take what the first one reads.
            async with question_time.timeout_at(begun + (deadline - begun) * SHARE_OF_TIME):
                await self._reading.setdefault(node.index, asyncio.Lock()).acquire()
        except TimeoutError:
            return {}
        try:
            found = self.kept(node, mints, not_before)
            left = [mint for mint in mints if mint not in found]
            return found | await self._in_time(node, left, head, deadline)
        finally:
            self._reading[node.index].release()

    async def _in_time(
        self, node: SolanaNode, mints: Sequence[str], head: Head, deadline: float
    ) -> dict[str, CoinScan]:
        left, begun = [mint for mint in mints if not self._is_left(node, mint)], question_time.now()
        try:
            async with question_time.timeout_at(begun + (deadline - begun) * SHARE_OF_TIME):
                return await self._all(node, left, head) if left else {}
        except TimeoutError:
            for mint in left:
                self._leave(node, mint, NOT_WHOLE_FOR)
            return {}

    async def _all(self, node: SolanaNode, mints: Sequence[str], head: Head) -> dict[str, CoinScan]:
        try:
            if unknown := [mint for mint in mints if mint not in self._programs]:
                await self._mints(node, unknown)
            wanted = [mint for mint in mints if mint in self._programs and not self._is_left(node, mint)]
            read = await asyncio.gather(*(self._holders(node, mint, head) for mint in wanted))
            scans = {mint: scan for mint, scan in zip(wanted, read, strict=True) if scan is not None}
            after = await self._mints(node, list(scans)) if scans else {}
        except ProviderError:
            return {}
        found = dict[str, CoinScan]()
        for mint, scan in scans.items():
            supply = after.get(mint)
            # Where nobody has any, an answer without accounts is no different from a failure.
            if supply is None or not supply.supply or sum(scan.amounts.values()) != supply.supply:
                self._leave(node, mint, NOT_WHOLE_FOR)
                continue
            found[mint] = replace(scan, slot=min(scan.slot, supply.slot))
            self._kept[node.index, mint] = found[mint]
        return found

    async def _mints(self, node: SolanaNode, mints: Sequence[str]) -> dict[str, _Mint]:
        """Return the program and the supply of mints, without those that are no coins. Raises ProviderError."""
        found = dict[str, _Mint]()
        for start in range(0, len(mints), MINTS_A_REQUEST):
            asked = mints[start : start + MINTS_A_REQUEST]
            options = {"encoding": "base64", "dataSlice": _SUPPLY, **CONFIRMED}
            answer = Shape(await node.ask("getMultipleAccounts", [asked, options]), "the answer", node.name)
            slot, accounts = answer.inner("context").number("slot"), answer.items("value")
            if len(accounts) != len(asked):
                raise ProviderConfused(node.name, f"{len(accounts)} accounts in place of {len(asked)}")
            for mint, item in zip(asked, accounts, strict=True):
                shape = Shape(item, "a mint", node.name) if item is not None else None
                program = shape.text("owner") if shape else ""
                if shape is None or program not in TOKEN_PROGRAMS:
                    self._leave(node, mint, NOT_WHOLE_FOR)
                    continue
                if len(self._programs) >= MOST_REMEMBERED:
                    self._programs.clear()
                self._programs[mint] = program
                found[mint] = _Mint(program, int.from_bytes(_data(node, shape, 8), "little"), slot)
        return found

    async def _holders(self, node: SolanaNode, mint: str, head: Head) -> CoinScan | None:
        """Return what the accounts of a coin have; None, which is remembered, where the node does not give them."""
        program, read_at = self._programs[mint], monotonic()
        try:
            answers = await asyncio.gather(*(self._accounts(node, mint, one) for one in _filters(program)))
        except ProviderBusy:
            self._leave(node, program, FAILED_FOR)
        except (TooMuch, NodeTimedOut):
            self._leave(node, mint, UNFIT_FOR)
        except ProviderRefused:
            self._leave(node, program, REFUSED_FOR)
        except ProviderError:
            self._leave(node, mint, FAILED_FOR)
        else:
            amounts = dict[bytes, int]()
            for _, found in answers:
                for owner, amount in found.items():
                    amounts[owner] = amounts.get(owner, 0) + amount
            return CoinScan(amounts, min(slot for slot, _ in answers), read_at, head)
        return None

    async def _accounts(
        self, node: SolanaNode, mint: str, only: Mapping[str, object]
    ) -> tuple[int, Mapping[bytes, int]]:
        program = self._programs[mint]
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
        """Return whether the node is not asked for a coin now, because of it or of its token program."""
        now, names = monotonic(), (mint, self._programs.get(mint, ""))
        return any(self._left_until.get((node.index, name), 0.0) > now for name in names)

    def _leave(self, node: SolanaNode, name: str, seconds: float) -> None:
        if len(self._left_until) >= MOST_REMEMBERED:
            self._left_until.clear()
        self._left_until[node.index, name] = monotonic() + seconds


def _filters(program: str) -> list[Mapping[str, object]]:
    """Return what separates a program's token accounts from its mints; nodes have an index only for these.

    Token-2022 has accounts of the plain size, and longer ones with extensions.
    """
    plain: Mapping[str, object] = {"dataSize": ACCOUNT_SIZE}
    extended = {"memcmp": {"offset": ACCOUNT_SIZE, "bytes": _IS_ACCOUNT}}
    return [plain] if program == TOKEN else [plain, extended]


def _data(node: SolanaNode, account: Shape, size: int) -> bytes:
    """Return the bytes of an account of which `size` were asked for. Raises ProviderConfused for any other number."""
    try:
        content, encoding = cast("tuple[str, str]", account.items("data"))
        data = b64decode(content, validate=True) if encoding == "base64" else b""
    except (ValueError, TypeError, NotBase64):
        data = b""
    if len(data) != size:
        raise ProviderConfused(node.name, "an account's data are not what was asked for")
    return data
