"""Wallets' amounts of coins on Solana: lamports, and tokens of both token programs over all accounts of a wallet.

Amounts are in the coin's smallest unit. A frozen or delegated account still belongs to its owner, and coins in an
escrow belong to the escrow. Amounts that Token-2022 keeps confidential are not included.
"""

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from gateways.chains.balance_sheet import NATIVE
from gateways.chains.coin_facts import CoinFacts
from gateways.evm.rpc.errors import RpcRefused
from gateways.evm.rpc.node import Head
from gateways.solana.coin_scans import FEWEST_OWNERS, CoinScan, CoinScans
from gateways.solana.das_assets import LONGEST_NAME, Kind, asset
from gateways.solana.node import SOLANA, SolanaNode
from gateways.solana.token_accounts import CONFIRMED, PARSED, TOKEN_PROGRAMS, WRAPPED_SOL, Filter, token_accounts
from gateways.transport import question_time
from gateways.transport.base58 import decode
from gateways.transport.errors import ProviderConfused, ProviderDown, ProviderError
from gateways.transport.json_shape import Shape
from gateways.transport.plain_text import plain

A_REQUEST = 100
"""Accounts in one getMultipleAccounts: the most that nodes accept (docs/facts.md#solana-coins)."""
LAMPORT_DECIMALS = 9
KNOWN_ACCOUNT = TOKEN_PROGRAMS[0]
"""An account that has lamports on every working node."""
FOR_DOUBTS = 0.8
"""Seconds after a read's deadline for checking doubtful lists; callers keep more time than that."""
MOST_CHECKED = 3
"""The most accounts listed before that are read again, until one is shown, and the most coins for which the largest
holder's list is read."""
NOT_IN_TIME = "its coins were not read in time"
SILENT = "the node shows nobody's coins"
UNSHOWN = "the node does not show that it knows who holds the coin"


class _ListsSilent(ProviderConfused):
    """The node lists no account of somebody who has one, according to the node itself."""


@dataclass(slots=True)
class CoinRead:
    """The owners' amounts of some coins (mints or NATIVE), as far as one endpoint returns them.

    `owners` maps coin → the owners in question, so that no call is made for any other owner of the coin. `held` maps
    coin → owner → amount, without the owners whose amount is unknown. `doubts` maps coin → owner → the reason why the
    amount is unknown, where a node gave one. `slot` is the earliest of the answers. With `again`, for a confirmation,
    nothing from an earlier read is used.
    """

    node: SolanaNode
    owners: Mapping[str, Sequence[str]]
    scans: CoinScans
    not_before: int = 0
    again: bool = False
    held: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    doubts: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    slot: int | None = None
    _lists_work: bool = False
    """Whether any owner's list showed a token account."""
    _whole: set[str] = field(default_factory=set[str])
    """The coins that were read for all holders at once."""

    def kept(self) -> Head | None:
        """Use the kept scans if they cover all coins, and return the node's head before them; else return None."""
        if self.again or NATIVE in self.owners or not all(map(self._is_crowded, self.owners)):
            return None
        found = self.scans.kept(self.node, list(self.owners), self.not_before)
        if len(found) < len(self.owners):
            return None
        self._take(found)
        return min((scan.head for scan in found.values()), key=lambda head: head.block)

    async def run(self, head: Head, deadline: float) -> None:
        """Read the amounts. Raises ProviderError when nothing could be read or believed.

        `head` is the node's. `deadline` is loop time; checks of doubtful lists take at most FOR_DOUBTS seconds longer.
        """
        self.held = {coin: {} for coin in self.owners}
        faults: list[ProviderError] = []
        mints = [coin for coin in self.owners if coin != NATIVE]
        try:
            async with question_time.timeout_at(deadline):
                if NATIVE in self.held:
                    await self._lamports(faults)
                if crowded := [mint for mint in mints if self._is_crowded(mint)]:
                    await self._scan(crowded, head, deadline)
                if left := [mint for mint in mints if mint not in self._whole]:
                    await self._tokens(left, faults)
                    await self._take_empty([mint for mint in left if self._may_be_empty(mint)])
        except TimeoutError:
            faults.append(ProviderDown(self.node.name, NOT_IN_TIME))
        if not self._lists_work and (listed := [mint for mint in mints if self.held[mint] and mint not in self._whole]):
            await self._doubt_lists(listed, faults, deadline + FOR_DOUBTS)
        if faults and not any(self.held.values()):
            raise faults[0]

    async def _lamports(self, faults: list[ProviderError]) -> None:
        order = random.sample(self.owners[NATIVE], len(self.owners[NATIVE]))
        for start in range(0, len(order), A_REQUEST - 1):
            owners = order[start : start + A_REQUEST - 1]
            accounts = [*owners, KNOWN_ACCOUNT]
            options = {"encoding": "base64", "dataSlice": {"offset": 0, "length": 0}, **CONFIRMED}
            try:
                said = self._contextual(await self.node.ask("getMultipleAccounts", [accounts, options]))
                amounts = [_lamports_of(self.node, item) for item in said.items("value")]
            except ProviderError as fault:
                faults.append(fault)
                self.doubts.setdefault(NATIVE, {}).update(dict.fromkeys(owners, str(fault)))
                continue
            if len(amounts) != len(accounts):
                raise ProviderConfused(self.node.name, f"{len(amounts)} accounts in place of {len(accounts)}")
            if not amounts[-1]:
                raise ProviderConfused(self.node.name, SILENT)
            self.held[NATIVE].update(zip(owners, amounts, strict=False))

    def _is_crowded(self, coin: str) -> bool:
        """Return whether a coin may be read for all holders at once, and is asked about for many."""
        return len(self.owners[coin]) >= FEWEST_OWNERS and coin not in WRAPPED_SOL

    def _may_be_empty(self, coin: str) -> bool:
        """Return whether an owner's amount is missing, and no owner has any: the mint's account may then answer."""
        held = self.held[coin]
        return len(held) < len(self.owners[coin]) and not any(held.values())

    async def _scan(self, mints: Sequence[str], head: Head, deadline: float) -> None:
        """Read coins for all holders at once, as far as the node allows that."""
        found = await self.scans.read(
            self.node, mints, head, deadline=deadline, not_before=self.not_before, again=self.again
        )
        self._take(found)
        await self._take_empty([mint for mint in mints if mint not in found])

    def _take(self, scans: Mapping[str, CoinScan]) -> None:
        names = {owner: decode(owner) or b"" for owner in {one for mint in scans for one in self.owners[mint]}}
        for mint, scan in scans.items():
            self.held[mint] = {owner: scan.amounts.get(names[owner], 0) for owner in self.owners[mint]}
            self.slot = scan.slot if self.slot is None else min(scan.slot, self.slot)
        self._whole.update(scans)

    async def _take_empty(self, mints: Sequence[str]) -> None:
        """Note 0 for all owners of the coins whose mints show a supply of 0, or were closed. Ignore a failed request.

        Only a mint without any supply can be closed (docs/facts.md#solana-coins). A missing account counts only beside
        one that every working node has.
        """
        mints = [mint for mint in mints if mint not in WRAPPED_SOL]
        for start in range(0, len(mints), A_REQUEST - 1):
            asked = [*mints[start : start + A_REQUEST - 1], KNOWN_ACCOUNT]
            try:
                said = Shape(await self.node.ask("getMultipleAccounts", [asked, PARSED]), "the answer", self.node.name)
                accounts = said.items("value")
                if len(accounts) != len(asked) or not _lamports_of(self.node, accounts[-1]):
                    continue
                found = [mint for mint, item in zip(asked, accounts[:-1], strict=False) if _is_empty(self.node, item)]
                if found:
                    self._note_slot(said)
                    for mint in found:
                        self.held[mint] = dict.fromkeys(self.owners[mint], 0)
                        self.doubts.pop(mint, None)
                    self._whole.update(found)
            except ProviderError:
                continue

    async def _tokens(self, mints: Sequence[str], faults: list[ProviderError]) -> None:
        """Read the owners' accounts by mint, or by token program where that takes fewer requests."""
        wanted_of: dict[str, list[str]] = {}
        for mint in mints:
            for owner in self.owners[mint]:
                wanted_of.setdefault(owner, []).append(mint)

        async def one(owner: str) -> None:
            mints = wanted_of[owner]
            by_mint = len(mints) <= len(TOKEN_PROGRAMS)
            filters: list[Filter] = (
                [{"mint": one} for one in mints] if by_mint else [{"programId": one} for one in TOKEN_PROGRAMS]
            )
            amounts, unknown = dict.fromkeys(mints, 0), set[str]()
            for wanted in filters:
                try:
                    found = await self._accounts(owner, wanted)
                except ProviderError as fault:
                    faults.append(fault)
                    unasked = [wanted["mint"]] if by_mint else mints
                    unknown.update(unasked)
                    for mint in unasked:
                        self.doubts.setdefault(mint, {})[owner] = str(fault)
                    continue
                self._lists_work = self._lists_work or bool(found)
                if found:
                    self.scans.note_listed(self.node, owner, found[0][0])
                for mint, amount in found:
                    if mint in amounts:
                        amounts[mint] += amount
            for mint in amounts.keys() - unknown:
                self.held[mint][owner] = amounts[mint]

        # In random order, so that slow owners do not delay the same others each time.
        order = random.sample(list(wanted_of), len(wanted_of))
        await asyncio.gather(*(one(owner) for owner in order))

    async def _accounts(self, owner: str, wanted: Filter) -> list[tuple[str, int]]:
        """Return an owner's token accounts, as mints and amounts. Raises ProviderError."""
        answer, accounts = await token_accounts(self.node, owner, wanted)
        self._note_slot(answer)
        return [(info.text("mint"), info.inner("tokenAmount").number("amount")) for info in accounts]

    async def _doubt_lists(self, mints: Sequence[str], faults: list[ProviderError], deadline: float) -> None:
        """Make amounts unknown that come from lists without any account, unless the node proves that its lists work.

        A coin without supply is no reason for doubt, nor is a mint that shows no holders if another mint shows some.
        """
        fault: ProviderError = ProviderDown(self.node.name, NOT_IN_TIME)
        works = False
        try:
            async with question_time.timeout_at(deadline):
                await self._take_empty(mints)
                mints = [mint for mint in mints if mint not in self._whole]
                works = bool(mints) and await self._lists_known()
                for mint in random.sample(mints, min(len(mints), MOST_CHECKED)):
                    try:
                        await self._check_lists(mint)
                    except ProviderError as doubt:
                        fault, works = doubt, works and not isinstance(doubt, _ListsSilent)
                    else:
                        return
        except TimeoutError:
            pass
        if works:
            return
        for mint in mints:
            self.doubts.setdefault(mint, {}).update(dict.fromkeys(self.held[mint], str(fault)))
            self.held[mint] = {}
        if mints:
            faults.append(fault)

    async def _lists_known(self) -> bool:
        """Return whether the node again lists an account of somebody else that it has listed before.

        Many nodes do not say who holds most of a coin. Without this, somebody who closes the account after a sale would
        stay unknown there.
        """
        asked = {owner for owners in self.owners.values() for owner in owners}
        known = [one for one in reversed(self.scans.listed.get(self.node.index, {})) if one[0] not in asked]
        for owner, mint in known[:MOST_CHECKED]:
            try:
                if any(found == mint for found, _ in await self._accounts(owner, {"mint": mint})):
                    return True
            except ProviderError:
                continue
        return False

    async def _check_lists(self, mint: str) -> None:
        """Raise ProviderConfused for a node that lists no account of the coin's largest holder, or does not name one.

        Only a node that lists one is believed when it shows no coin for any of the owners.
        """
        try:
            said = self._contextual(await self.node.ask("getTokenLargestAccounts", [mint, CONFIRMED]))
            largest = [Shape(item, "an account", self.node.name).text("address") for item in said.items("value")]
            if not largest:
                raise ProviderConfused(self.node.name, UNSHOWN)
            account = self._contextual(await self.node.ask("getAccountInfo", [largest[0], PARSED])).inner("value")
            owner = account.inner("data").inner("parsed").inner("info").text("owner")
        except RpcRefused:
            raise ProviderConfused(self.node.name, UNSHOWN) from None
        if not any(found == mint for found, _ in await self._accounts(owner, {"mint": mint})):
            raise _ListsSilent(self.node.name, SILENT)

    def _contextual(self, said: object) -> Shape:
        """Return an answer as a Shape, and note its slot."""
        shape = Shape(said, "the answer", self.node.name)
        self._note_slot(shape)
        return shape

    def _note_slot(self, answer: Shape) -> None:
        slot = answer.inner("context").number("slot")
        self.slot = slot if self.slot is None else min(slot, self.slot)


async def coin_facts(node: SolanaNode, mint: str) -> CoinFacts | None:
    """Return a coin's facts from its mint, with its name from the index; None when there is no such account."""
    said = await node.ask("getAccountInfo", [mint, PARSED])
    shape = Shape(said, "the answer", node.name)
    if shape.has("value") and cast("Mapping[str, object]", said)["value"] is None:
        return None
    account = shape.inner("value")
    if account.text("owner") not in TOKEN_PROGRAMS or not _is_parsed(said):
        return CoinFacts("", "", None)
    parsed = account.inner("data").inner("parsed")
    if parsed.text("type") != "mint":
        return CoinFacts("", "", None)
    found = await asset(node, mint)
    # The mint of an NFT, or of a collection's own NFT, is one of a coin without decimals to the token program.
    decimals = None if found and found.kind is Kind.NFT else parsed.inner("info").number("decimals")
    return CoinFacts(plain(found.name, LONGEST_NAME) if found else "", "", decimals)


def _is_parsed(said: object) -> bool:
    """Return whether the node parsed an account's data; otherwise it returns bytes and their encoding."""
    value = cast("Mapping[str, Mapping[str, object]]", said)["value"]
    return not isinstance(value.get("data"), list)


def native_facts() -> CoinFacts:
    """Return the facts of Solana's own coin."""
    return CoinFacts(SOLANA.coin, SOLANA.coin, LAMPORT_DECIMALS)


def _lamports_of(node: SolanaNode, item: object) -> int:
    """Return an account's lamports; 0 for a missing account."""
    return 0 if item is None else Shape(item, "an account", node.name).number("lamports")


def _is_empty(node: SolanaNode, item: object) -> bool:
    """Return whether an account is a mint whose supply is 0, or is missing; False for any other account."""
    if item is None:
        return True
    try:
        account = Shape(item, "a mint", node.name)
        if account.text("owner") not in TOKEN_PROGRAMS:
            return False
        parsed = account.inner("data").inner("parsed")
        info = parsed.inner("info")
        return parsed.text("type") == "mint" and info.flag("isInitialized") and info.text("supply") == "0"
    except ProviderError:
        return False
