"""A file of further chains: the values read from it, and refusals that name file, chain and field."""

import re
from pathlib import Path

import pytest

from gateways.chains.catalogue import CHAINS, OWN, ChainTable, evm_chains, form_order
from gateways.chains.chain_file import CHECKS, OPTIONAL, REQUIRED, ChainsRefused, added_chains
from gateways.chains.indexer import ChainNotListed, listing
from gateways.marketplaces.alchemy import Alchemy
from gateways.marketplaces.opensea import OpenSea

NINTH = {
    "title": '"Ninth Chain"',
    "chain_id": "424242",
    "coin": '"NIN"',
    "explorer": '"https://explorer.ninth.example/"',
    "block_seconds": "0.5",
    "confirmations": "2",
    "settled_after": "5",
}
EVERYTHING = NINTH | {
    "other_explorers": '["https://ninth.blockscout.example/", "https://scan.ninth.example"]',
    "multicall3": '"0xcA11bde05977b3631167028862bE2a173976CA11"',
    "delegates": '"0x00000000000000447e69651d841bD8D104Bed493"',
    "opensea": '"ninth_chain"',
    "alchemy": '"ninth-mainnet"',
    "l1_block_number": "true",
    "pauses": "true",
    "contracts_send": "true",
}
ETHER = "0x" + "00" * 20


def written(directory: Path, fields: dict[str, str], key: str = "ninth") -> Path:
    """Write a file with one chain and return its path."""
    file = directory / "more.toml"
    file.write_text(f"[{key}]\n" + "".join(f"{name} = {value}\n" for name, value in fields.items()))
    return file


def refusal(file: Path) -> str:
    """Return the error message for a file that cannot be used."""
    with pytest.raises(ChainsRefused) as refused:
        added_chains(file, OWN)
    assert str(refused.value).startswith(f"CHAINS_FILE {file}")
    return str(refused.value)


def test_the_products_own_chains_would_pass_as_an_operators() -> None:
    for chain in OWN.values():
        if chain.family == "evm":
            given = {name: getattr(chain, name) for name in CHECKS} | {"other_explorers": [*chain.other_explorers]}
            assert {
                name: said for name, value in given.items() if value is not None and (said := CHECKS[name](value))
            } == {}
    assert CHECKS.keys() == {*REQUIRED, *OPTIONAL}


def test_the_operators_page_has_a_row_for_each_field_and_says_which_are_needed() -> None:
    page = (Path(__file__).parents[3] / "docs" / "operating.md").read_text()
    (table,) = re.findall(r"^\| Field \| Needed \| What it is \|\n\|---.*\n((?:\|.+\n)+)", page, re.M)
    rows = re.findall(r"^\| (`.+?`) \| (yes|no) \|", table, re.M)
    needed = {name: word for names, word in rows for name in re.findall(r"`(\w+)`", names)}
    assert needed == dict.fromkeys(REQUIRED, "yes") | dict.fromkeys(OPTIONAL, "no")


def test_an_explorer_belongs_to_one_of_the_products_own_chains() -> None:
    hosts = [host for chain in OWN.values() for host in chain.explorer_hosts]
    assert len(hosts) == sum(1 + len(chain.other_explorers) for chain in OWN.values())
    assert [host for host in hosts if hosts.count(host) > 1] == []


def test_the_form_offers_the_eight_in_their_order_and_added_ones_after_them(monkeypatch: pytest.MonkeyPatch) -> None:
    eight = ("ethereum", "apechain", "polygon", "base", "abstract", "arbitrum", "optimism", "solana")
    assert form_order() == eight
    for key in ("ninth", "tenth"):
        monkeypatch.setitem(CHAINS, key, CHAINS[key])
    assert form_order() == (*eight, "ninth", "tenth")
    assert evm_chains()[-2:] == ("ninth", "tenth")


def test_a_chain_needs_no_more_than_what_identifies_and_times_it(tmp_path: Path) -> None:
    (ninth,) = added_chains(written(tmp_path, NINTH), OWN).values()
    assert (ninth.key, ninth.title, ninth.chain_id, ninth.coin) == ("ninth", "Ninth Chain", 424242, "NIN")
    assert (ninth.block_seconds, ninth.confirmations, ninth.settled_after) == (0.5, 2, 5)
    assert (ninth.explorer, ninth.other_explorers) == ("https://explorer.ninth.example", ())
    assert (ninth.multicall3, ninth.delegates, ninth.opensea, ninth.alchemy) == (None, None, None, None)
    assert (ninth.l1_block_number, ninth.pauses, ninth.contracts_send, ninth.family) == (False, False, False, "evm")


def test_a_chain_may_have_everything_that_the_products_own_have(tmp_path: Path) -> None:
    (ninth,) = added_chains(written(tmp_path, EVERYTHING), OWN).values()
    assert ninth.multicall3 == "0xca11bde05977b3631167028862be2a173976ca11"
    assert ninth.delegates == "0x00000000000000447e69651d841bd8d104bed493"
    assert (ninth.opensea, ninth.alchemy) == ("ninth_chain", "ninth-mainnet")
    assert (ninth.l1_block_number, ninth.pauses, ninth.contracts_send) == (True, True, True)
    assert ninth.other_explorers == ("https://ninth.blockscout.example", "https://scan.ninth.example")
    assert ninth.explorer_hosts == {"explorer.ninth.example", "ninth.blockscout.example", "scan.ninth.example"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("title", '""'), ("title", "7"), ("title", '" Ninth"'), ("title", '"Ni\\nnth"'), ("title", f'"{"n" * 41}"'),
        ("title", '"base"'), ("chain_id", "0"), ("chain_id", "-1"), ("chain_id", '"1"'), ("chain_id", "true"),
        ("chain_id", "1.0"), ("chain_id", "8453"), ("coin", '""'), ("coin", '"a coin"'), ("coin", "1"),
        ("explorer", '"http://explorer.example"'), ("explorer", '"explorer.example"'), ("explorer", "1"),
        ("explorer", '"https://"'), ("explorer", '"https://e.example/?a=b"'), ("explorer", '"https://BaseScan.org/x"'),
        ("explorer", '"https://[x"'), ("explorer", '"https://base.blockscout.com"'), ("other_explorers", '"https://e.example"'),
        ("other_explorers", "[1]"), ("other_explorers", '["https://e.example", "http://f.example"]'),
        ("other_explorers", '["https://BaseScan.org"]'), ("other_explorers", '["https://base.blockscout.com/x"]'),
        ("block_seconds", "0"), ("block_seconds", "-2"), ("block_seconds", "nan"), ("block_seconds", "inf"),
        ("block_seconds", "3601"), ("block_seconds", '"2"'), ("block_seconds", "true"), ("confirmations", "0"),
        ("confirmations", "2.5"), ("confirmations", "128"), ("settled_after", "128"), ("settled_after", "1"),
        ("multicall3", '"0x12"'), ("multicall3", f'"{ETHER}"'), ("delegates", "true"), ("opensea", '"a/b"'),
        ("opensea", '"ape_chain"'), ("alchemy", '""'), ("alchemy", '"base-mainnet"'), ("l1_block_number", "1"),
        ("pauses", '"yes"'), ("contracts_send", "1"),
        ("finality", "3"), ("family", '"solana"'), ("form_place", "1"), ("key", '"ninth"'),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_chain_and_field(tmp_path: Path, field: str, value: str) -> None:
    assert f"[ninth] {field}: " in refusal(written(tmp_path, EVERYTHING | {field: value}))


@pytest.mark.parametrize("field", REQUIRED)
def test_what_is_missing_is_named(tmp_path: Path, field: str) -> None:
    left = {name: value for name, value in EVERYTHING.items() if name != field}
    assert refusal(written(tmp_path, left)).endswith(f": [ninth] {field}: it is missing.")


@pytest.mark.parametrize("key", sorted(OWN))
def test_a_file_changes_none_of_the_products_own_chains(tmp_path: Path, key: str) -> None:
    assert f"[{key}]: the product has this chain" in refusal(written(tmp_path, NINTH, key))


@pytest.mark.parametrize("key", ["n", "Ninth", "9th", "ninth_chain", '"ninth chain"', "n" * 21])
def test_a_key_is_one_that_settings_can_be_named_by(tmp_path: Path, key: str) -> None:
    assert "a chain's key is 2 to 20 lower-case letters and digits" in refusal(written(tmp_path, NINTH, key))


def test_two_chains_of_a_file_are_two_chains(tmp_path: Path) -> None:
    file = written(tmp_path, NINTH)
    file.write_text(file.read_text() + file.read_text().replace("[ninth]", "[tenth]"))
    said = refusal(file)
    assert [f"[tenth] {field}: " in said for field in ("title", "chain_id", "explorer")] == [True, True, True]
    assert "[ninth]" not in said


def test_an_explorer_of_a_file_belongs_to_one_of_its_chains(tmp_path: Path) -> None:
    file = written(tmp_path, NINTH)
    tenth = NINTH | {"title": '"Tenth"', "chain_id": "10101", "explorer": '"https://tenth.example"'}
    others = {"other_explorers": '["https://ninth.example", "https://Explorer.Ninth.example"]'}
    file.write_text(file.read_text() + written(tmp_path, tenth | others, "tenth").read_text())
    assert refusal(file).endswith(": [tenth] other_explorers: explorer.ninth.example is ninth's.")


def test_every_fault_of_a_file_is_said_at_once(tmp_path: Path) -> None:
    file = written(tmp_path, EVERYTHING | {"coin": "1", "pauses": "1"})
    file.write_text(f'answer = 42\n{file.read_text()}[base]\ntitle = "Base"\n')
    said = refusal(file)
    assert [part in said for part in ("answer: ", "[ninth] coin: ", "[ninth] pauses: ", "[base]: ")] == [True] * 4


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in refusal(tmp_path / "nowhere.toml")
    (tmp_path / "odd.toml").write_bytes(b"[ninth")
    assert "is not TOML: " in refusal(tmp_path / "odd.toml")
    (tmp_path / "odd.toml").write_bytes(b"\xff")
    assert "is not TOML: " in refusal(tmp_path / "odd.toml")


def test_a_chain_that_is_gone_has_a_name_and_is_in_no_list() -> None:
    table = ChainTable(OWN)
    gone = table["ninth"]
    assert (gone.title, gone.family, gone.delegates) == ("Ninth", "evm", None)
    assert "ninth" not in table
    assert table.get("ninth") is None


async def test_marketplaces_that_do_not_have_a_chain_are_no_lists_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, chain in added_chains(written(tmp_path, NINTH), OWN).items():
        monkeypatch.setitem(CHAINS, key, chain)
    opensea, alchemy = OpenSea("http://localhost:1", "http://localhost:1", "key"), Alchemy("http://localhost:1", "key")
    owner = "0x" + "5e" * 20
    for one in (opensea, alchemy):
        with pytest.raises(ChainNotListed, match="it does not have Ninth Chain"):
            await one.account_nfts("ninth", owner)
    with pytest.raises(ChainNotListed):
        await opensea.contract("ninth", owner)
    said = await listing((opensea, alchemy), "ninth", owner)
    assert said == "no indexer has this chain, and without one nobody can list every collection"
    await opensea.close()
    await alchemy.close()
