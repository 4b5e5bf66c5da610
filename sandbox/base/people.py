"""The six people of the sandbox, the same in every world."""

import hashlib
from dataclasses import dataclass
from functools import cache

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from eth_hash.auto import keccak

from sandbox.base.refusal import Refusal

BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


@dataclass(frozen=True)
class Wallets:
    """One checksummed EVM address and one Solana address.

    The private key of both is the SHA-256 of "sandbox wallet of <username>": a secp256k1 key, and an Ed25519 seed.
    """

    evm: str
    solana: str


@dataclass(frozen=True)
class Person:
    """A person with a Discord account and two wallets. `id` is a snowflake as text."""

    id: str
    username: str
    global_name: str
    avatar: str | None
    wallets: Wallets


PEOPLE = (
    Person(
        "1150000000000000101",
        "ada",
        "Ada",
        "a1d4c0ffee00000000000000000000a1",
        Wallets("0x71d9E0D8f7644Ec9D5aea7c2D03fCd1642A1FD1e", "HykiZV4TfiCEa7ME75b38BiEjJoQrKimu3W4DaacJJYW"),
    ),
    Person(
        "1150000000000000202",
        "bob",
        "Bob",
        "b0b4c0ffee00000000000000000000b0",
        Wallets("0xE925C83f92dE60B69A9aA4154605Bb3ec1b59177", "C7KWsoSS6qNa8ufmx33BoWP6ADsrrZzsL83yLcBKXQHp"),
    ),
    Person(
        "1150000000000000303",
        "carol",
        "Carol",
        "ca401c0ffee000000000000000000ca4",
        Wallets("0x1403Fd2fBed66CAD03D0b200B463721e5d2883a6", "3tF45NttFL4K8smZuqzPD61awTEToSph6dfCWhCc5MGR"),
    ),
    Person(
        "1150000000000000404",
        "dave",
        "Dave",
        None,
        Wallets("0xf93D2987D45f940400993fBD4387F6D7227CA495", "KTUtRWeurs69CjJfLadFS77cXx1t5DKLxkSDeePetZL"),
    ),
    Person(
        "1150000000000000505",
        "erin",
        "Erin",
        "e41c0ffee0000000000000000000e414",
        Wallets("0xeb7265bBBe329E4d988Dd39c95c66AE32DA054dB", "6vVJpz3QeWhY8rjywRJojvV9Mc2zPcBToa1th5NFodUQ"),
    ),
    Person(
        "1150000000000000606",
        "mallory",
        "Mallory",
        None,
        Wallets("0x38791fCe54Bc7f3b368AA5Ef870b3695dcbe51f8", "FybwDPHRZQAWDiweMtWyMNBJqcfYcSYReyGJrhoiTCaY"),
    ),
)


def person(who: str) -> Person:
    """Return the person with this id or username. Raises Refusal(404)."""
    for candidate in PEOPLE:
        if who in (candidate.id, candidate.username):
            return candidate
    raise Refusal(404, f"There is no person {who!r}. The people are: {', '.join(p.username for p in PEOPLE)}.")


@cache
def wallets_of(name: str) -> Wallets:
    """Return the wallets derived from a name: a username for the six people, an id for people added later.

    The result is cached: deriving a public key takes milliseconds, and every read of the whole world asks for
    everybody's wallets.
    """
    key = hashlib.sha256(f"sandbox wallet of {name}".encode()).digest()
    public = Ed25519PrivateKey.from_private_bytes(key).public_key().public_bytes_raw()
    return Wallets(_address(key), base58(public))


def _address(key: bytes) -> str:
    """Return the checksummed EVM address of a secp256k1 key, without eth_account, whose import takes a second."""
    public = ec.derive_private_key(int.from_bytes(key), ec.SECP256K1()).public_key()
    point = public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return _checksummed(keccak(point[1:])[-20:].hex())


def _checksummed(digits: str) -> str:
    """Return an address with the letter case of ERC-55, without eth_utils, whose import takes a sixth of a start."""
    marks = keccak(digits.encode()).hex()
    return "0x" + "".join(one.upper() if int(mark, 16) > 7 else one for one, mark in zip(digits, marks, strict=False))


def base58(content: bytes) -> str:
    """Return the bytes in base58, with Solana's alphabet."""
    number, digits = int.from_bytes(content), ""
    while number:
        number, digit = divmod(number, 58)
        digits = BASE58[digit] + digits
    return "1" * (len(content) - len(content.lstrip(b"\0"))) + digits
