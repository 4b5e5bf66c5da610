"""The accounts of the marketplaces: their usernames and what their bios say."""

import re
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from sandbox.base.journal import Journal
from sandbox.base.people import Person
from sandbox.base.refusal import Refusal
from sandbox.solana import keys

BIO_CHARACTERS = 500
NAMED = "carol"
"""The person whose EVM address has an ENS name at the start."""
_EVM = re.compile(r"0x[0-9a-fA-F]{40}")
_SOLANA = re.compile(r"[1-9A-HJ-NP-Za-km-z]{32,44}")
_USERNAME = re.compile(r"[A-Za-z0-9_.-]{1,50}")


@dataclass(frozen=True)
class Account:
    """One address at one marketplace. `linked_to` is the address whose profile shows this wallet, if not its own."""

    address: str
    username: str
    bio: str
    ens_name: str = ""
    linked_to: str = ""


def is_address(text: str) -> bool:
    """Return whether it is the address of an account, and not the name of one."""
    return bool(_EVM.fullmatch(text) or _SOLANA.fullmatch(text))


def normal(address: str) -> str:
    """Return the address in the form that accounts have: EVM lower-case, Solana as given. Raises Refusal(400)."""
    if _EVM.fullmatch(address):
        return address.lower()
    if _SOLANA.fullmatch(address):
        return address
    raise Refusal(400, f"{address!r} is neither an EVM nor a Solana address.")


class Accounts:
    """All accounts of one marketplace, kept in a journal. Call `open` before anything else."""

    def __init__(self, path: Path, people: tuple[Person, ...]) -> None:
        self._path = path
        self._journal: Journal | None = None
        self._people = people
        # address → (monotonic time, account as it was from then on); the first entry also holds for all earlier times
        self._history: dict[str, list[tuple[float, Account]]] = {}

    @property
    def journal(self) -> Journal:
        """The open journal."""
        if self._journal is None:
            raise RuntimeError("The accounts are not open.")
        return self._journal

    def open(self) -> None:
        """Open the journal and read everything in it."""
        self._journal = Journal(self._path)
        self._seed()
        for record in self._journal.records():
            self._set(0.0, Account(**record))

    def _seed(self) -> None:
        self._history = {}
        for one in self._people:
            for address in (one.wallets.evm.lower(), one.wallets.solana):
                has_name = one.username == NAMED and address.startswith("0x")
                self._set(0.0, Account(address, one.username, "", f"{one.username}.eth" if has_name else ""))

    def _set(self, moment: float, account: Account) -> None:
        self._history.setdefault(account.address, []).append((moment, account))

    def reset(self) -> None:
        """Restore the people's accounts with empty bios, and drop all others."""
        self.journal.rewrite([])
        self._seed()

    def close(self) -> None:
        """Close the journal."""
        self.journal.close()
        self._journal = None

    def known(self) -> list[Account]:
        """Return every account as it is now."""
        return [states[-1][1] for states in self._history.values()]

    def find(self, address_or_username: str, at: float | None = None) -> Account | None:
        """Return the account, as of a moment of the monotonic clock if one is given; None if there is none."""
        asked = address_or_username.lower() if _EVM.fullmatch(address_or_username) else address_or_username
        for address, states in self._history.items():
            shown = [account for moment, account in states if at is None or moment <= at]
            if shown and (address == asked or shown[-1].username.lower() == asked.lower()):
                return shown[-1]
        return None

    def profile(self, address_or_username: str, at: float | None = None) -> Account | None:
        """Return the account whose profile is shown for an address: its own, or the one that it is linked to."""
        account = self.find(address_or_username, at)
        return self.find(account.linked_to, at) if account and account.linked_to else account

    def named(self, ens_name: str, at: float | None = None) -> Account | None:
        """Return the account with this ENS name; None if there is none."""
        found = (self.find(account.address, at) for account in self.known())
        return next((one for one in found if one and one.ens_name and one.ens_name.lower() == ens_name.lower()), None)

    def change(
        self,
        address: str,
        bio: str | None = None,
        username: str | None = None,
        ens_name: str | None = None,
        linked_to: str | None = None,
    ) -> Account:
        """Set the given values, opening the account if need be; an empty `linked_to` shows the account's own profile.

        Raises Refusal (400, 409), and then nothing has changed.
        """
        address = normal(address)
        before = self.find(address) or Account(address, "", "")
        if bio is not None and len(bio) > BIO_CHARACTERS:
            raise Refusal(400, f"A bio has at most {BIO_CHARACTERS} characters.")
        if username and (not _USERNAME.fullmatch(username) or _EVM.fullmatch(username) or keys.is_address(username)):
            raise Refusal(400, "A username has up to 50 letters, digits, dots, hyphens and underscores.")
        holder = self.find(username) if username else None
        if holder and holder.address != address and not self._same_person(holder.address, address):
            raise Refusal(409, f"The username {username} belongs to {holder.address}.")
        target = normal(linked_to) if linked_to else linked_to
        if target:
            shown = self.find(target)
            if target == address or (shown and shown.linked_to):
                raise Refusal(400, "A wallet is linked to a profile that is not linked itself.")
            if shown is None:
                self._keep(Account(target, "", ""))
        given = {"bio": bio, "username": username, "ens_name": ens_name, "linked_to": target}
        return self._keep(replace(before, **{name: value for name, value in given.items() if value is not None}))

    def _keep(self, account: Account) -> Account:
        self.journal.append(asdict(account))
        self._set(time.monotonic(), account)
        return account

    def _same_person(self, one: str, other: str) -> bool:
        return any({one, other} == {who.wallets.evm.lower(), who.wallets.solana} for who in self._people)
