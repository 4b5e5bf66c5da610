"""Solana's ledger: everything that happened, kept in a journal, and the state at any slot.

Slots advance with the time of day, and leap when something happens.
"""

import time
from bisect import bisect_right
from pathlib import Path
from typing import Any

from sandbox.base.journal import Journal
from sandbox.base.refusal import Refusal
from sandbox.chains.seeds import Collection, called
from sandbox.solana.assets import Asset, Holdings, Record, Transaction, mint_named, seeds
from sandbox.solana.coins import SplCoin
from sandbox.solana.keys import signature_of

GENESIS = 1_584_332_940
"""The time of slot 0 in Unix seconds: mainnet's own beginning, so that numbers have their usual size."""
SECONDS = 0.4
TO_FINAL = 32
"""A slot is final once this many slots exist, itself included."""


class Slots:
    """The present slot: what the clock says plus all leaps so far. It never decreases, not even over a restart."""

    def __init__(self) -> None:
        # (Unix seconds, sum of the leaps from then on)
        self._leaps: list[tuple[float, int]] = [(float(GENESIS), 0)]
        self._newest = 0

    @property
    def leap(self) -> int:
        """The sum of all leaps, to be recorded with the cause of the last one."""
        return self._leaps[-1][1]

    def restore(self, moment: float, leap: int) -> None:
        """Restore the value of `leap` from a moment on; to be called oldest first."""
        if leap > self.leap:
            self._leaps.append((max(moment, self._leaps[-1][0]), leap))

    def now(self) -> int:
        """Return the present slot."""
        self._newest = max(self._newest, self.at(time.time()))
        return self._newest

    def at(self, moment: float) -> int:
        """Return the slot at a past moment, in Unix seconds."""
        place = bisect_right(self._leaps, moment, key=lambda leap: leap[0]) - 1
        return _plain(moment) + self._leaps[max(0, place)][1]

    def forward(self, slots: int) -> int:
        """Leap this many slots ahead, and return the present slot afterwards."""
        self.restore(time.time(), self.leap + slots)
        return self.now()

    def time_of(self, slot: int) -> int:
        """Return when a slot was, in Unix seconds; slots that were leapt over share the moment of the leap."""
        later = time.time()
        for moment, leap in reversed(self._leaps):
            first = _plain(moment) + leap
            if slot >= first:
                return int(min(moment + (slot - first) * SECONDS, later))
            later = moment
        return GENESIS


def _plain(moment: float) -> int:
    return int((moment - GENESIS) / SECONDS)


def wall_clock(moment: float) -> float:
    """Return a moment of the monotonic clock in Unix seconds."""
    return time.time() - (time.monotonic() - moment)


class Ledger:
    """`present` is what there is now; `transactions` is everything that was sent, oldest first."""

    def __init__(self, path: Path) -> None:
        self.slots = Slots()
        self.present = seeds()
        self.transactions: list[Transaction] = []
        self._journal = Journal(path)
        self._records: list[Record] = []
        known = self._journal.records()
        resets = [at for at, record in enumerate(known) if record["kind"] == "reset"]
        if resets and resets[-1] > 0:
            # What the last reset undid is dropped when the process that saw it has ended.
            known = known[resets[-1] :]
            self._journal.rewrite(known)
        for record in known:
            self.slots.restore(record["time"], record["leap"])
            self._apply(record)

    def close(self) -> None:
        """Close the journal."""
        self._journal.close()

    def keep(self, record: Record, *, final: bool = True) -> Record:
        """Write a record in a slot of its own, after every slot that anybody saw, and apply it.

        Adds `slot`, `time`, `leap` and `signature`. With `final`, as many slots follow as make it final.
        """
        slot = self.slots.now() + 1
        self.slots.forward(1 + (TO_FINAL if final else 0))
        record |= {"slot": slot, "time": time.time(), "leap": self.slots.leap}
        record["signature"] = signature_of(f"{slot} {record}")
        self._journal.append(record)
        self._apply(record)
        return record

    def pass_by(self, slots: int) -> None:
        """Let slots pass in which nothing happens."""
        self.slots.forward(slots)
        self._journal.append({"kind": "pass", "slot": self.slots.now(), "time": time.time(), "leap": self.slots.leap})

    def reset(self) -> None:
        """Restore the state of the start, in a later slot."""
        self.keep({"kind": "reset"})

    def _apply(self, record: Record) -> None:
        self._records.append(record)
        addresses = (*record.get("signers", ()), *record.get("others", ()))
        before = {address: self.present.lamports.get(address, 0) for address in addresses}
        self.present.take(record)
        if "signers" in record:
            self.transactions.append(
                Transaction(
                    record["signature"],
                    record["slot"],
                    int(record["time"]),
                    tuple(record["signers"]),
                    tuple(record.get("others", ())),
                    tuple(record.get("memos", ())),
                    record.get("lamports", 0),
                    record.get("failed", False),
                    before,
                    {address: self.present.lamports.get(address, 0) for address in addresses},
                )
            )

    def holdings(self, slot: int | None = None) -> Holdings:
        """Return the holdings at a slot; None means now."""
        if slot is None or not self._records or self._records[-1]["slot"] <= slot:
            return self.present
        then = seeds()
        for record in self._records:
            if record["slot"] <= slot:
                then.take(record)
        return then

    def transaction(self, signature: str) -> Transaction | None:
        """Return the transaction with this signature, or None."""
        return next((sent for sent in self.transactions if sent.signature == signature), None)

    def collection(self, named: str) -> Collection:
        """Return a listed collection by address, slug or name. Raises Refusal(404)."""
        if (found := called(self.present.collections.values(), named)) is None:
            raise Refusal(404, f"There is no collection {named} on solana.")
        return found

    def asset(self, collection: Collection, token: str) -> Asset:
        """Return an asset that is not burnt, by its address or its number in the collection. Raises Refusal(404)."""
        found = self.present.assets.get(mint_named(collection.contract, token) or "")
        if found is None or found.burnt or found.collection != collection.contract:
            raise Refusal(404, f"Nobody has token {token} of {collection.name}.")
        return found

    def coin(self, named: str) -> SplCoin | None:
        """Return a coin by its mint, slug, symbol or name, or None; a collection's slug means the collection."""
        if any(named.lower() == one.slug for one in self.present.collections.values()):
            return None
        return called(self.present.coins.values(), named)

    def owners(self, slot: int | None = None) -> dict[str, dict[str, dict[str, int]]]:
        """Return listed collection → asset id → owner → 1, now or at a slot.

        Burnt, fungible and unverified assets are left out.
        """
        then = self.holdings(slot)
        found: dict[str, dict[str, dict[str, int]]] = {contract: {} for contract in then.collections}
        for asset in then.assets.values():
            if asset.collection in found and asset.verified and not (asset.burnt or asset.fungible):
                found[asset.collection][asset.id] = {asset.owner: 1}
        return found

    def collections_shown(self) -> list[dict[str, Any]]:
        """Return the `collections` of GET /control/world."""
        owners = self.owners()
        listed = [one.entry(owners[one.contract]) for one in self.present.collections.values()]
        return listed + [coin.entry() for coin in self.present.coins.values()]
