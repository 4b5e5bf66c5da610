"""What a rule says about conditions that only one source can judge, depending on the product's settings."""

from collections.abc import Callable, Iterator

import pytest

from services.rules.expression import AtLeast, Not, Requirement
from services.rules.single_source import of_condition, one_node, single_sources
from settings import settings

Setting = Callable[..., None]
CATS = "0x" + "ca" * 20


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Setting]:
    """A function that changes settings; the default is two nodes each for Base and Solana, and both NFT lists."""

    def changed(**values: str) -> None:
        for name, value in values.items():
            monkeypatch.setenv(name, value)
        settings.cache_clear()

    changed(
        RPC_BASE="http://one http://two", RPC_SOLANA="http://one http://two", OPENSEA_API_KEY="x", ALCHEMY_API_KEY="y"
    )
    yield changed
    settings.cache_clear()


def leaf(kind: str, chain: str = "base") -> Requirement:
    return Requirement(kind, chain, "any" if kind == "any_nft" else CATS)


TYPES = ("basic", "trait", "token_id", "any_nft")


def test_with_two_of_everything_nothing_is_said(setting: Setting) -> None:
    for chain in ("base", "solana"):
        assert [of_condition(leaf(kind, chain)) for kind in TYPES] == [()] * 4
        assert one_node(chain) is None
    assert of_condition(leaf("basic", "nowhere")) == ()


@pytest.mark.parametrize("urls", ["http://one", "http://one http://one"])
def test_one_node_is_said_of_every_type_with_the_bound_and_the_setting(setting: Setting, urls: str) -> None:
    setting(RPC_BASE=urls, RPC_SOLANA=urls)
    for chain in ("base", "solana"):
        for kind in TYPES:
            (alone,) = of_condition(leaf(kind, chain))
            assert (alone.chain, alone.verification_type) == (chain, kind)
            assert "one node" in alone.text
            assert "At most 5 members a day" in alone.text
            assert alone.remedy.endswith(f"to RPC_{chain.upper()}.")


def test_nodes_of_one_provider_are_one_source(setting: Setting) -> None:
    urls = "https://mainnet.one.example/?key=a https://rpc.one.example/?key=b"
    setting(RPC_BASE=urls, RPC_SOLANA=urls)
    for chain in ("base", "solana"):
        (alone,) = of_condition(leaf("basic", chain))
        assert "belong to one provider" in alone.text
        assert "At most 5 members a day" in alone.text
        assert alone.remedy.endswith(f"to RPC_{chain.upper()}.")
    setting(RPC_BASE=f"{urls} https://two.example", RPC_SOLANA=f"{urls} http://10.0.0.1:8899")
    assert (one_node("base"), one_node("solana")) == (None, None)


def test_a_chain_that_is_off_has_no_node_to_be_alone(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(settings().__dict__, "rpc_base", "")
    assert one_node("base") is None


@pytest.mark.parametrize(
    ("opensea", "alchemy", "kind", "said", "helps"),
    [
        (False, True, "trait", "metadata alone", "OPENSEA_API_KEY."),
        (True, False, "any_nft", "Only one index", "ALCHEMY_API_KEY."),
        (False, True, "any_nft", "Only one index", "OPENSEA_API_KEY."),
        (False, False, "any_nft", "No index", "OPENSEA_API_KEY and ALCHEMY_API_KEY."),
    ],
)
def test_a_source_that_is_not_set_up_is_named_with_its_setting(
    setting: Setting, monkeypatch: pytest.MonkeyPatch, opensea: bool, alchemy: bool, kind: str, said: str, helps: str
) -> None:
    for name, there in (("opensea_api_key", opensea), ("alchemy_api_key", alchemy)):
        if not there:
            monkeypatch.setitem(settings().__dict__, name, None)
    (alone,) = of_condition(leaf(kind))
    assert said in alone.text
    assert alone.remedy.endswith(helps)
    assert of_condition(leaf(kind, "solana")) == ()
    assert of_condition(leaf("basic")) == ()


def test_a_rule_says_each_thing_once_wherever_the_condition_is(setting: Setting) -> None:
    setting(RPC_BASE="http://one")
    other = Requirement("basic", "base", "0x" + "d0" * 20)
    tree = AtLeast(1, (leaf("basic"), Not(AtLeast(1, (other, leaf("trait", "solana"))))))
    assert [(one.chain, one.verification_type) for one in single_sources(tree)] == [("base", "basic")]
