"""The accounts of the marketplaces: who calls themselves what, and what their bio says."""

import re
import time
from dataclasses import dataclass, replace
from pathlib import Path

from sandbox.journal import Journal
from sandbox.people import Person
from sandbox.refusal import Refusal

BIO_CHARACTERS = 500
_EVM = re.compile(r"0x[0-9a-fA-F]{40}")
_SOLANA = re.compile(r"[1-9A-HJ-NP-Za-km-z]{32,44}")
_USERNAME = re.compile(r"[A-Za-z0-9_.-]{1,50}")


@dataclass(frozen=True)
class Account:
    """One address at one marketplace."""

    address: str
    username: str
    bio: str


def normal(address: str) -> str:
    """The address as accounts are kept: EVM lower-case, Solana as given. Raises Refusal(400)."""
    if _EVM.fullmatch(address):
        return address.lower()
    if _SOLANA.fullmatch(address):
        return address
    raise Refusal(400, f"{address!r} is no EVM and no Solana address.")


class Accounts:
    """All accounts of one marketplace, kept in a journal. `open` before anything else."""

    def __init__(self, path: Path, people: tuple[Person, ...]) -> None:
        self._path = path
        self._journal: Journal | None = None
        self._people = people
        # address → (monotonic time, account as it was from then on); the first entry holds since ever
        self._history: dict[str, list[tuple[float, Account]]] = {}

    @property
    def journal(self) -> Journal:
        """The open journal."""
        if self._journal is None:
            raise RuntimeError("The accounts are not open.")
        return self._journal

    def open(self) -> None:
        """Read everything that the journal knows."""
        self._journal = Journal(self._path)
        self._seed()
        for record in self._journal.records():
            self._set(0.0, Account(record["address"], record["username"], record["bio"]))

    def _seed(self) -> None:
        self._history = {}
        for one in self._people:
            for address in (one.wallets.evm.lower(), one.wallets.solana):
                self._set(0.0, Account(address, one.username, ""))

    def _set(self, moment: float, account: Account) -> None:
        self._history.setdefault(account.address, []).append((moment, account))

    def reset(self) -> None:
        """The people's accounts with empty bios, nothing else."""
        self.journal.rewrite([])
        self._seed()

    def close(self) -> None:
        """Give the journal back."""
        self.journal.close()
        self._journal = None

    def known(self) -> list[Account]:
        """Every account as it is now."""
        return [states[-1][1] for states in self._history.values()]

    def find(self, address_or_username: str, at: float | None = None) -> Account | None:
        """The account, as it was at a moment of the monotonic clock if one is given."""
        asked = address_or_username.lower() if _EVM.fullmatch(address_or_username) else address_or_username
        for address, states in self._history.items():
            shown = [account for moment, account in states if at is None or moment <= at]
            if shown and (address == asked or shown[-1].username.lower() == asked.lower()):
                return shown[-1]
        return None

    def change(self, address: str, bio: str | None = None, username: str | None = None) -> Account:
        """Set what is given, opening the account if need be. Raises Refusal (400, 409)."""
        address = normal(address)
        before = self.find(address) or Account(address, "", "")
        if bio is not None and len(bio) > BIO_CHARACTERS:
            raise Refusal(400, f"A bio has at most {BIO_CHARACTERS} characters.")
        if username and not _USERNAME.fullmatch(username):
            raise Refusal(400, "A username has up to 50 letters, digits, dots, hyphens and underscores.")
        holder = self.find(username) if username else None
        if holder and holder.address != address and not self._same_person(holder.address, address):
            raise Refusal(409, f"The username {username} belongs to {holder.address}.")
        after = replace(
            before,
            bio=before.bio if bio is None else bio,
            username=before.username if username is None else username,
        )
        self.journal.append({"address": address, "username": after.username, "bio": after.bio})
        self._set(time.monotonic(), after)
        return after

    def _same_person(self, one: str, other: str) -> bool:
        return any({one, other} == {who.wallets.evm.lower(), who.wallets.solana} for who in self._people)
