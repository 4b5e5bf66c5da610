"""Addresses as people write them."""

import pytest

from services.core.addresses import AddressRefused, is_solana, is_whole, parse, shorten, solana_signature
from services.wallets import names

CHECKSUMMED = "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045"


def test_an_evm_address_is_kept_in_lower_case() -> None:
    assert parse(f"  {CHECKSUMMED} ") == ("evm", CHECKSUMMED.lower())
    assert parse(CHECKSUMMED.lower()) == ("evm", CHECKSUMMED.lower())
    assert parse("0x" + CHECKSUMMED[2:].upper()) == ("evm", CHECKSUMMED.lower())


def test_a_solana_address_is_kept_as_given() -> None:
    given = "So11111111111111111111111111111111111111112"
    assert parse(given) == ("solana", given)


@pytest.mark.parametrize("mark", ["\u200b", "\u200e", "\ufeff", "\u2068", "\u2069 ", "\xa0\u202c"])
def test_invisible_characters_that_chat_apps_put_around_a_copied_address_do_not_matter(mark: str) -> None:
    solana = "So11111111111111111111111111111111111111112"
    assert parse(f"{mark}{CHECKSUMMED}{mark}") == ("evm", CHECKSUMMED.lower())
    assert parse(f"{mark}{solana}{mark}") == ("solana", solana)
    assert is_whole(f"{mark}{CHECKSUMMED}")
    assert not is_whole(f"{mark}{CHECKSUMMED[:-1]}{mark}")
    assert names.is_name(f"{mark}vitalik.eth{mark}")


@pytest.mark.parametrize(
    "text",
    [
        "", "0x", "0x123", CHECKSUMMED[:-1], CHECKSUMMED + "0", CHECKSUMMED.replace("dA6", "Da6"), "0x" + "g" * 40,
        "vitalik.eth", "hello", "O" * 40, "１" * 42, "So1111111111111111111111111111111111111111",
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(AddressRefused, match=r"\w+.*\."):
        parse(text)


def test_base58_must_be_exactly_32_bytes() -> None:
    assert is_solana("1" * 32)
    assert not is_solana("1" * 33)
    assert not is_solana("z" * 44)


def test_shortening_keeps_the_first_6_and_the_last_4_characters() -> None:
    assert shorten(CHECKSUMMED) == "0xd8dA...6045"


SIGNATURE = "5h6xBEauJ3PK6SWCZ1PGjBvj8vDdWG3KpwATGy1ARAXFSDwt8GFXM7W5Ncn16wmqokgpiKRLuS83KUxyZyv2sUYv"


@pytest.mark.parametrize(
    "text",
    [
        SIGNATURE, f"  {SIGNATURE}\n", f"https://solscan.io/tx/{SIGNATURE}", f"https://solana.fm/tx/{SIGNATURE}?cluster=x",
        f"https://explorer.solana.com/tx/{SIGNATURE}?cluster=mainnet-beta", "1" * 64,
    ],
)  # fmt: skip
def test_a_signature_is_found_alone_and_in_an_explorers_link(text: str) -> None:
    assert solana_signature(text) == (SIGNATURE if SIGNATURE in text else text)


@pytest.mark.parametrize(
    "text", ["", "0x" + "ab" * 32, SIGNATURE[:-4], SIGNATURE + "1", "z" * 88, "https://solscan.io/account/" + "1" * 32]
)
def test_nothing_else_is_taken_for_a_signature(text: str) -> None:
    assert solana_signature(text) is None
