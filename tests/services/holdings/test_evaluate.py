"""Requirements evaluated on sheets: every type on every family and standard, with every possible answer."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateways.chains.balance_sheet import BalanceSheet, Cells, packed
from gateways.chains.metadata_traits import Trait
from gateways.chains.token_sheet import TokenSheet
from gateways.evm.rpc.node import Head
from gateways.solana.balances import balances_of
from services.collections.trait_match import TokenTraits
from services.core.answer import Answer
from services.holdings.evaluate import Answers, Reading, read, unread
from services.holdings.requirement_view import view_of_reading
from services.holdings.wallet_shares import WalletShare, conclude, conclude_for, counting
from services.rules.expression import Requirement
from services.rules.types.coin import CoinAmount

YES, NO, UNKNOWN = Answer.YES, Answer.NO, Answer.UNKNOWN
NOW = datetime(2026, 1, 2, tzinfo=UTC)
FAMILY = {"base": "evm", "solana": "solana"}
PLACES = {
    "base": ("0x" + "c0" * 20, "0x" + "a1" * 20, "0x" + "b2" * 20, ("1", "2", "300", "9000000")),
    "solana": (
        "CoLLect1onCoLLect1onCoLLect1onCoLLect1onCoL",
        "AnnAnnAnnAnnAnnAnnAnnAnnAnnAnnAnnAnnAnnAnnA",
        "BenBenBenBenBenBenBenBenBenBenBenBenBenBenB",
        ("M1ntM1nt1", "M1ntM1nt2", "M1ntM1nt3", "M1ntM1nt4"),
    ),
}
GOLD = TokenTraits((Trait("Fur", "Gold"), Trait("Level", 12)), "OpenSea", NOW)
RED = TokenTraits((Trait("Fur", "Red"), Trait("Level", 3)), "OpenSea", NOW)
PARTLY = TokenTraits((Trait("Fur", "Red"),), "OpenSea", NOW, whole=False)


def balances(chain: str, held: Mapping[str, int | None]) -> BalanceSheet:
    """Return the contract's own answer about each wallet; None stands for no answer."""
    contract = PLACES[chain][0]
    owners = sorted(held)
    cells = Cells(1, len(owners))
    for place, owner in enumerate(owners):
        cells.put(0, place, held[owner])
    return BalanceSheet(chain, 70, NOW, 0, "Base node 1", packed([contract]), packed(owners), cells)


def tokens(chain: str, held: Mapping[str, Mapping[str, int]], unsure: Mapping[str, str] = {}) -> TokenSheet:
    return TokenSheet(chain, PLACES[chain][0], 70, NOW, 0, f"{chain} node 1", held, unsure)


EVERYBODY = frozenset(who for _, ann, ben, _ in PLACES.values() for who in (ann, ben))


def leaf(kind: str, chain: str, **more: Any) -> Requirement:
    contract = "any" if kind == "any_nft" else PLACES[chain][0]
    return Requirement(kind, chain, contract, **more)


def answers_for(requirement: Requirement, sheet: TokenSheet | str, **more: Any) -> Answers:
    if requirement.type == "any_nft":
        return Answers(EVERYBODY, anything=sheet, **more)
    ids = requirement.token_ids if requirement.type == "token_id" else ()
    return Answers(EVERYBODY, tokens={(requirement.contract, ids): sheet}, **more)


def judge(requirement: Requirement, answers: Answers | None, *who: str) -> Answer:
    return read(requirement, [(FAMILY[requirement.chain], address) for address in who], answers).answer


@pytest.mark.parametrize("chain", ["base", "solana"])
@pytest.mark.parametrize(
    ("kind", "more", "mine", "his", "unsure", "expected"),
    [
        # One wallet's tokens by their places in the list of ids (with amounts), the other's, and whose are unsure.
        ("basic", {}, {0: 1}, {}, "", YES),
        ("basic", {}, {}, {}, "", NO),
        ("basic", {}, {}, {}, "ann", UNKNOWN),
        ("basic", {}, {}, {}, "ben", UNKNOWN),
        ("basic", {"min_tokens": 3}, {0: 1}, {1: 1, 2: 1}, "", YES),
        ("basic", {"min_tokens": 3}, {0: 1}, {1: 1}, "", NO),
        ("basic", {"min_tokens": 3}, {0: 1}, {1: 1, 2: 1}, "ben", YES),
        ("basic", {"min_tokens": 3}, {0: 1}, {1: 1}, "ben", UNKNOWN),
        ("basic", {"min_tokens": 3}, {0: 2}, {0: 1}, "", YES),
        ("token_id", {"token_ids": (0, 1)}, {1: 1}, {}, "", YES),
        ("token_id", {"token_ids": (0, 1)}, {2: 1}, {}, "", NO),
        ("token_id", {"token_ids": (0, 1)}, {2: 1}, {}, "ann", UNKNOWN),
        ("token_id", {"token_ids": (0, 1)}, {}, {0: 5}, "ann", YES),
        ("token_id", {"token_ids": (0, 1), "min_tokens": 2}, {0: 1}, {}, "", YES),
        ("any_nft", {}, {3: 1}, {}, "", YES),
        ("any_nft", {}, {}, {3: 1}, "ann", YES),
        ("any_nft", {}, {}, {}, "ben", UNKNOWN),
        ("any_nft", {}, {}, {}, "", NO),
        ("any_nft", {"min_tokens": 2}, {3: 1}, {}, "", YES),
        # A maximum: too many is a no whatever else is unknown, and a yes needs every wallet's answer.
        ("basic", {"max_tokens": 2}, {0: 1}, {1: 1}, "", YES),
        ("basic", {"max_tokens": 2}, {0: 1}, {1: 1, 2: 1}, "", NO),
        ("basic", {"max_tokens": 2}, {0: 1}, {1: 1, 2: 1}, "ann", NO),
        ("basic", {"max_tokens": 2}, {0: 1}, {1: 1}, "ann", UNKNOWN),
        ("basic", {"min_tokens": 2, "max_tokens": 4}, {0: 1}, {}, "", NO),
        ("basic", {"min_tokens": 0, "max_tokens": 0}, {}, {}, "", YES),
        ("basic", {"min_tokens": 0, "max_tokens": 0}, {}, {}, "ben", UNKNOWN),
        ("basic", {"min_tokens": 0, "max_tokens": 0}, {}, {2: 1}, "ann", NO),
        ("token_id", {"token_ids": (0, 1, 2), "max_tokens": 2}, {0: 1, 1: 1, 2: 1}, {}, "", NO),
        ("token_id", {"token_ids": (0, 1), "max_tokens": 2}, {0: 1, 1: 1, 2: 1}, {}, "", YES),
        ("any_nft", {"min_tokens": 0, "max_tokens": 0}, {}, {2: 1}, "", NO),
        ("any_nft", {"min_tokens": 0, "max_tokens": 0}, {}, {}, "", YES),
        ("any_nft", {"min_tokens": 0, "max_tokens": 0}, {}, {}, "ben", UNKNOWN),
    ],
)
def test_tokens_answer_every_type_on_every_family(
    chain: str,
    kind: str,
    more: dict[str, Any],
    mine: dict[int, int],
    his: dict[int, int],
    unsure: str,
    expected: Answer,
) -> None:
    _, ann, ben, ids = PLACES[chain]
    if "token_ids" in more:
        more = more | {"token_ids": tuple(ids[place] for place in more["token_ids"])}
    held = {
        who: {ids[place]: amount for place, amount in some.items()} for who, some in ((ann, mine), (ben, his)) if some
    }
    doubts = {{"ann": ann, "ben": ben}[unsure]: "a partial page"} if unsure else {}
    requirement = leaf(kind, chain, **more)
    answers = answers_for(requirement, tokens(chain, held, doubts))
    assert judge(requirement, answers, ann, ben) is expected
    assert judge(requirement, answers, ben, ann) is expected
    assert judge(requirement, answers_for(requirement, "Base (node 1): HTTP 500"), ann) is UNKNOWN
    assert judge(requirement, Answers(EVERYBODY), ann) is UNKNOWN
    assert judge(requirement, None, ann) is UNKNOWN
    assert judge(requirement, None) is NO, "who has proved no wallet has nothing"


@pytest.mark.parametrize("held", [{}, {"1": 1}])
def test_a_type_that_is_not_declared_is_never_answered(held: dict[str, int]) -> None:
    requirement = leaf("held_since", "base")
    _, ann, _, _ = PLACES["base"]
    answers = Answers(
        EVERYBODY, balances("base", {ann: 0}), tokens={(requirement.contract, ()): tokens("base", {ann: held})}
    )
    assert judge(requirement, answers, ann) is UNKNOWN


@pytest.mark.parametrize("chain", ["base", "solana"])
@pytest.mark.parametrize(
    ("wanted", "least", "traits", "unsure", "expected"),
    [
        (("fur", " gold"), 1, {0: GOLD, 1: RED}, False, YES),
        (("Fur", "Gold"), 1, {0: GOLD, 1: "HTTP 500"}, True, YES),
        (("Fur", "Gold"), 2, {0: GOLD, 1: RED}, False, NO),
        (("Fur", "Gold"), 2, {0: GOLD, 1: "HTTP 500"}, False, UNKNOWN),
        (("Fur", "Gold"), 2, {0: GOLD, 1: RED}, True, UNKNOWN),
        (("Fur", "Gold"), 1, {0: RED, 1: RED}, False, NO),
        (("Fur", "Gold"), 1, {0: RED, 1: PARTLY}, False, UNKNOWN),
        (("Fur", "Red"), 1, {0: GOLD, 1: PARTLY}, False, YES),
        (("Fur", "Gold"), 1, {0: RED}, False, UNKNOWN),
        (("Level", ">=12"), 1, {0: GOLD, 1: RED}, False, YES),
        (("Level", "≤ 2"), 1, {0: GOLD, 1: RED}, False, NO),
    ],
)
def test_traits_are_known_for_every_token_before_it_is_a_no(
    chain: str, wanted: tuple[str, str], least: int, traits: dict[int, Any], unsure: bool, expected: Answer
) -> None:
    contract, ann, _, ids = PLACES[chain]
    requirement = leaf("trait", chain, traits=(wanted,), min_tokens=least)
    told = {(chain, contract, ids[place]): said for place, said in traits.items()}
    sheet = tokens(chain, {ann: {ids[0]: 1, ids[1]: 1}}, {ann: "a partial page"} if unsure else {})
    answers = answers_for(requirement, sheet, traits=told)
    wallets = [(FAMILY[chain], ann)]
    assert read(requirement, wallets, answers).answer is expected
    open_ones = set(unread(requirement, wallets, answers))
    missing = {(chain, contract, ids[at]) for at in (0, 1) if not isinstance(traits.get(at), TokenTraits)}
    assert open_ones == (missing if expected is UNKNOWN else set())


@pytest.mark.parametrize("chain", ["base", "solana"])
@pytest.mark.parametrize(
    ("traits", "expected", "sources"),
    [
        ({0: GOLD, 1: RED}, YES, {"OpenSea"}),
        ({0: replace(GOLD, traits=GOLD.traits[:1]), 1: RED}, NO, {"OpenSea"}),
        ({0: PARTLY, 1: RED}, UNKNOWN, {"OpenSea"}),
        ({0: replace(RED, also=replace(RED, source="metadata")), 1: replace(RED, also=replace(RED, source="metadata"))},
         NO, set()),
    ],
)  # fmt: skip
def test_several_traits_are_those_of_one_token(
    chain: str, traits: dict[int, Any], expected: Answer, sources: set[str]
) -> None:
    contract, ann, _, ids = PLACES[chain]
    both = leaf("trait", chain, traits=(("Fur", "Gold" if expected is not UNKNOWN else "Red"), ("Level", "5..12")))
    told = {(chain, contract, ids[place]): said for place, said in traits.items()}
    answers = answers_for(both, tokens(chain, {ann: {ids[0]: 1, ids[1]: 1}}), traits=told)
    found = read(both, [(FAMILY[chain], ann)], answers)
    assert found.answer is expected
    assert {source for _, source in found.alone} == sources


def test_two_tokens_with_a_trait_each_do_not_make_one_with_both() -> None:
    contract, ann, _, ids = PLACES["base"]
    half = (replace(GOLD, traits=GOLD.traits[:1]), replace(GOLD, traits=GOLD.traits[1:]))
    told = {("base", contract, ids[at]): one for at, one in enumerate(half)}
    sheet = tokens("base", {ann: {ids[0]: 1, ids[1]: 1}})
    wanted = (("Fur", "Gold"), ("Level", ">10"))
    for traits, expected in ((wanted, NO), (wanted[:1], YES), (wanted[1:], YES)):
        one = leaf("trait", "base", traits=traits)
        assert judge(one, answers_for(one, sheet, traits=told), ann) is expected


@pytest.mark.parametrize("kind", ["basic", "token_id", "any_nft"])
def test_a_wallet_that_is_missing_in_an_answer_is_unknown(kind: str) -> None:
    _, ann, _, ids = PLACES["base"]
    requirement = leaf(kind, "base", token_ids=(ids[0],) if kind == "token_id" else ())
    answers = answers_for(requirement, tokens("base", {}))
    assert judge(requirement, answers, ann) is NO
    assert judge(requirement, answers, ann, "0x" + "ee" * 20) is UNKNOWN


def test_amounts_of_one_erc1155_token_count_each() -> None:
    contract, ann, _, ids = PLACES["base"]
    gold = leaf("trait", "base", traits=(("Fur", "Gold"),), min_tokens=3)
    answers = answers_for(gold, tokens("base", {ann: {ids[0]: 3}}), traits={("base", contract, ids[0]): GOLD})
    assert judge(gold, answers, ann) is YES


def test_ranges_are_compared_as_numbers_and_solana_ids_as_they_are() -> None:
    _, ann, _, _ = PLACES["base"]
    wide = leaf("token_id", "base", token_ids=("5-99", "100000-9999999"))
    for held, expected in (("300000", YES), ("100", NO), ("0000099", YES)):
        assert judge(wide, answers_for(wide, tokens("base", {ann: {held: 1}})), ann) is expected
    _, ann, _, ids = PLACES["solana"]
    named = leaf("token_id", "solana", token_ids=(ids[0],))
    assert judge(named, answers_for(named, tokens("solana", {ann: {ids[0].lower(): 1}})), ann) is NO


@pytest.mark.parametrize(
    ("least", "mine", "his", "expected"),
    [
        (1, 1, 0, YES), (1, 0, 0, NO), (1, None, 0, UNKNOWN), (1, 0, None, UNKNOWN), (1, 1, None, YES),
        (3, 1, 2, YES), (3, 1, 1, NO), (3, 1, None, UNKNOWN),
    ],
)  # fmt: skip
def test_balances_add_up_and_a_missing_one_is_unknown(
    least: int, mine: int | None, his: int | None, expected: Answer
) -> None:
    _, ann, ben, _ = PLACES["base"]
    requirement = leaf("basic", "base", min_tokens=least)
    answers = Answers(EVERYBODY, balances("base", {ann: mine, ben: his}))
    assert judge(requirement, answers, ann, ben) is expected
    assert judge(requirement, Answers(EVERYBODY, fault="Base (node 1): HTTP 500"), ann) is UNKNOWN
    assert judge(requirement, answers, ann, "0x" + "ee" * 20) is (YES if (mine or 0) >= least else UNKNOWN)


def test_a_contract_that_tells_no_balance_is_counted_by_its_tokens() -> None:
    _, ann, ben, ids = PLACES["base"]
    many, nothing = leaf("basic", "base", min_tokens=4), balances("base", {ann: None, ben: None})
    counted = replace(answers_for(many, tokens("base", {ann: {ids[0]: 4}})), sheet=nothing)
    assert (judge(many, counted, ann), judge(many, counted, ben)) == (YES, NO)
    silent = replace(answers_for(many, "Base (node 1): HTTP 500"), sheet=nothing)
    assert judge(many, silent, ann) is UNKNOWN
    assert judge(many, replace(silent, sheet=balances("base", {ann: 4})), ann) is YES, "a balance needs no tokens"


def test_anything_is_also_what_a_collection_counts_and_one_that_says_nothing_spoils_nothing() -> None:
    _, ann, ben, _ = PLACES["base"]
    anything, nothing = leaf("any_nft", "base"), tokens("base", {})
    assert judge(anything, Answers(EVERYBODY, balances("base", {ann: 2, ben: 0}), anything=nothing), ann) is YES
    assert judge(anything, Answers(EVERYBODY, balances("base", {ann: 2, ben: 0}), anything=nothing), ben) is NO
    assert judge(anything, Answers(EVERYBODY, balances("base", {ann: None, ben: 0}), anything=nothing), ann) is UNKNOWN
    assert judge(anything, Answers(EVERYBODY, balances("base", {ann: None, ben: None}), anything=nothing), ann) is NO
    assert judge(anything, Answers(EVERYBODY, fault="HTTP 500", anything=nothing), ann) is UNKNOWN


def test_a_collection_that_is_asked_beside_a_list_can_only_add_to_it() -> None:
    contract, ann, ben, _ = PLACES["base"]
    anything, nothing, beside = leaf("any_nft", "base"), tokens("base", {}), frozenset({contract})
    for held, expected in (({ann: 2, ben: 0}, YES), ({ann: None, ben: 0}, NO), ({ann: None, ben: None}, NO)):
        answers = Answers(EVERYBODY, balances("base", held), anything=nothing, beside=beside)
        assert (judge(anything, answers, ann), judge(anything, answers, ben)) == (expected, NO)


def test_the_evidence_names_what_was_seen_and_no_wallet() -> None:
    _, ann, ben, ids = PLACES["base"]
    wallets = [("evm", ann), ("evm", ben), ("solana", "x")]
    requirement = leaf("basic", "base", min_tokens=2)
    first = read(requirement, wallets, answers_for(requirement, tokens("base", {ann: {ids[0]: 1}}, {ben: "a fault"})))
    assert (first.needed, first.held, first.block, first.source) == (2, 1, 70, "base node 1")
    assert (first.observed_at, first.reason) == (NOW, "a fault")
    assert first.parts == (WalletShare(ann, 1), WalletShare(ben, 0, "a fault"))
    assert ann not in str(first.document())


parts = st.lists(
    st.builds(WalletShare, st.just("w"), st.integers(0, 3), st.sampled_from([None, None, "a fault"])), max_size=5
)


@given(parts, st.integers(0, 3), st.integers(0, 4))
def test_within_a_maximum_nothing_that_is_unknown_becomes_an_answer(
    found: list[WalletShare], needed: int, more: int
) -> None:
    most = needed + more
    answer, _ = conclude(found, needed, most)
    # An answer that was given is true, whatever the unknown shares really hold.
    for hidden in (0, 1, 50):
        whole = [replace(part, amount=part.amount + (hidden if part.reason else 0), reason=None) for part in found]
        truth = Answer.YES if needed <= sum(part.amount for part in whole) <= most else Answer.NO
        assert answer in {truth, UNKNOWN}


def a_vault(amount: int, reason: str | None = None) -> WalletShare:
    return WalletShare("vault", amount, reason, through="w")


@pytest.mark.parametrize(
    ("own", "vaults", "expected"),
    [
        (1, [a_vault(5)], YES),  # with the vault it would be too many, so the vault is left out
        (1, [a_vault(0, "a fault")], YES),
        (0, [a_vault(3)], YES),
        (0, [a_vault(3), a_vault(2)], YES),
        (0, [a_vault(9), a_vault(3)], YES),
        (0, [a_vault(9)], NO),
        (0, [a_vault(9, "a fault")], UNKNOWN),
        (0, [], NO),
        (5, [a_vault(0, "a fault")], NO),
    ],
)
def test_within_a_maximum_no_vault_turns_a_yes_into_a_no(own: int, vaults: list[WalletShare], expected: Answer) -> None:
    asked = leaf("basic", "base", min_tokens=1, max_tokens=4)
    counts = counting(asked, [WalletShare("w", own)], vaults)
    assert conclude_for(asked, counts)[0] is expected


@given(parts, st.lists(st.builds(a_vault, st.integers(0, 6), st.sampled_from([None, None, "a fault"])), max_size=5))
def test_a_member_who_satisfies_a_maximum_alone_does_so_with_any_vaults(
    found: list[WalletShare], vaults: list[WalletShare]
) -> None:
    asked = leaf("basic", "base", min_tokens=1, max_tokens=4)
    alone = conclude_for(asked, found)[0]
    beside = conclude_for(asked, counting(asked, found, vaults))[0]
    assert beside is alone or (alone is NO and sum(part.amount for part in found) < 1)


some_vaults = st.lists(st.builds(a_vault, st.integers(0, 9), st.sampled_from([None, None, "a fault"])), max_size=6)


@given(st.integers(0, 9), some_vaults, st.integers(1, 9), st.integers(0, 4))
def test_between_a_minimum_and_a_maximum_any_selection_of_vaults_that_fits_is_found(
    own: int, vaults: list[WalletShare], least: int, more: int
) -> None:
    asked = leaf("basic", "base", min_tokens=least, max_tokens=least + more)
    known = [vault.amount for vault in vaults if vault.reason is None]
    sums = {own + sum(some) for size in range(len(known) + 1) for some in combinations(known, size)}
    fits = own <= least + more and any(least <= one <= least + more for one in sums)
    open_ = own < least and len(known) < len(vaults)
    expected = YES if fits else UNKNOWN if open_ else NO
    assert conclude_for(asked, counting(asked, [WalletShare("w", own)], vaults))[0] is expected


def test_two_vaults_of_a_stranger_hide_no_two_of_ones_own() -> None:
    asked = leaf("basic", "base", min_tokens=6, max_tokens=6)
    mine, theirs = [a_vault(4), a_vault(2)], [a_vault(5), a_vault(3)]
    for vaults in (mine, mine + theirs):
        assert conclude_for(asked, counting(asked, [WalletShare("w", 0)], vaults))[0] is YES


def test_more_sums_of_vaults_than_can_be_compared_are_no_no() -> None:
    vaults = [a_vault(100_000 + 2**place) for place in range(14)]
    for least, expected in ((700_003, UNKNOWN), (700_127, YES), (1_500_000, NO)):
        asked = leaf("basic", "base", min_tokens=least, max_tokens=least)
        assert conclude_for(asked, counting(asked, [WalletShare("w", 0)], vaults))[0] is expected


@given(parts, st.integers(1, 5), st.randoms())
def test_more_is_never_less_order_is_nothing_and_a_no_is_complete(
    found: list[WalletShare], needed: int, order: Any
) -> None:
    answer, _ = conclude(found, needed)
    mixed = list(found)
    order.shuffle(mixed)
    assert conclude(mixed, needed)[0] is answer
    more = [WalletShare(part.address, part.amount + 1, part.reason) for part in found]
    if answer is YES:
        assert conclude(more, needed)[0] is YES
    if answer is NO:
        assert all(part.reason is None for part in found)
        # No part is unknown, so nothing could have changed the answer.
        assert sum(part.amount for part in found) < needed
    if answer is UNKNOWN:
        assert conclude([WalletShare(part.address, part.amount) for part in found], needed)[0] is NO


def test_coins_that_were_read_on_solana_do_not_hide_what_is_held_of_a_collection() -> None:
    """A collection is read token by token when another rule names its tokens, even beside a rule on a coin."""
    ann, ben = "3XyPhRnXqEcyhPCZNHyqf2cgkHiK6LMiq6cLcXhx24Uw", "DGBMCxjdWe34qKQraBZhQcLY68TTpbNxsoM7SAhw6L2o"
    otters, coin = "5aNjGh2zU1FtLKPJzVXckQqGxWioiL22t1w5TZ3Rtufv", "644hNG5pxxH9wDtpML9meB4TSzFT4zjjmDLYwN8eZhqD"
    said: Any = SimpleNamespace(index=0, source="Solana node 1")
    coins = balances_of(said, 9, Head(9, NOW), {}, (ann, ben), {coin: {ann: 5, ben: 0}})
    held = TokenSheet("solana", otters, 9, NOW, 0, "Solana node 1", {ann: {"one": 1}}, {})
    answers = Answers(frozenset({ann, ben}), coins, tokens={(otters, ()): held}, coins=frozenset({coin}))
    some = Requirement("basic", "solana", otters)
    readings = [read(some, [("solana", who)], answers) for who in (ann, ben)]
    assert [one.answer for one in readings] == [Answer.YES, Answer.NO]


def test_an_amount_that_is_unknown_on_solana_is_no_contracts_fault() -> None:
    """On Solana coins are read in the time that is left, and no contract is asked."""
    ann, coin = "3XyPhRnXqEcyhPCZNHyqf2cgkHiK6LMiq6cLcXhx24Uw", "644hNG5pxxH9wDtpML9meB4TSzFT4zjjmDLYwN8eZhqD"
    otters = "5aNjGh2zU1FtLKPJzVXckQqGxWioiL22t1w5TZ3Rtufv"
    said: Any = SimpleNamespace(index=0, source="Solana node 1")
    doubted = TokenSheet("solana", otters, 9, NOW, 0, "Solana node 1", {}, {ann: "its list did not come in time"})
    sheet = balances_of(said, 9, Head(9, NOW), {otters: doubted}, (ann,), {coin: {}})
    answers = Answers(frozenset({ann}), sheet, coins=frozenset({coin}))
    details = CoinAmount(least="1", most=None, decimals=2)
    asked = (Requirement("token", "solana", coin, details=details), Requirement("basic", "solana", otters))
    readings = [read(one, [("solana", ann)], answers) for one in asked]
    assert [one.answer for one in readings] == [Answer.UNKNOWN, Answer.UNKNOWN]
    assert [one.reason for one in readings] == ["it was not read in time", "its list did not come in time"]
    busy = balances_of(said, 9, Head(9, NOW), {}, (ann,), {coin: {}}, {coin: {ann: "too many requests"}})
    answers = Answers(frozenset({ann}), busy, coins=frozenset({coin}))
    assert read(asked[0], [("solana", ann)], answers).reason == "too many requests"


def test_stored_evidence_has_no_amount_that_names_the_wallet() -> None:
    mine = WalletShare("0x" + "a1" * 20, 1_234_567)
    vault = WalletShare("0x" + "b2" * 20, 7_654_321, through="0x" + "a1" * 20)
    reading = Reading(leaf("basic", "base", min_tokens=3), YES, 8_888_888, parts=(mine, vault))
    stored = reading.document()
    assert (stored["held"], stored["delegated"], stored["rounded"]) == ("8880000", "7650000", True)
    assert "rounded" not in replace(reading, held=12).document()


@pytest.mark.parametrize("shared", [True, False])
def test_a_reason_names_a_members_token_only_to_people_who_may_see_the_wallet(shared: bool) -> None:
    ann = PLACES["base"][1]
    wanted = leaf("trait", "base", traits=(("Fur", "Gold"),))
    reading = read(wanted, [("evm", ann)], answers_for(wanted, tokens("base", {ann: {"9000000": 1}})))
    assert reading.answer is UNKNOWN
    assert "9000000" not in str(reading.document())
    assert ("9000000" in str(view_of_reading(reading, {}, shared=shared).reason)) is shared
