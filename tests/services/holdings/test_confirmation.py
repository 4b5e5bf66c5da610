"""What a second answer must be for a role to be taken: from another source, settled, and the same."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gateways.chains.catalogue import CHAINS
from gateways.chains.indexer import LISTS
from gateways.evm.rpc.node import LONGEST_PAUSE
from locales.stored_texts import said
from services.collections.trait_match import FROM_LINK, OF_INDEX
from services.collections.trait_sources import FROM_METADATA
from services.core.answer import Answer
from services.holdings.confirmation import (
    APART,
    KEPT,
    OTHERS_SILENT,
    Earlier,
    Means,
    confirm,
    document,
    is_partial,
    marked,
    noted,
    opposed_at,
    parsed,
    question_of,
    second_of,
)
from services.holdings.evaluate import Reading
from services.holdings.wallet_shares import WalletShare
from services.rules.expression import ANY_NFT, Requirement
from services.rules.types.view_call import ViewCall

YES, NO, UNKNOWN = Answer.YES, Answer.NO, Answer.UNKNOWN
NOW = datetime(2026, 1, 2, tzinfo=UTC)
WALLET = "0x" + "a1" * 20
COUNT = Requirement("basic", "base", "0x" + "c0" * 20)
TRAIT = replace(COUNT, type="trait", traits=(("Fur", "Gold"),))
ANY = Requirement("any_nft", "base", "any")
ONE, TWO = Means(1, 1), Means(2, 2)


def reading(answer: Answer = NO, block: int = 100, node: int = 1, leaf: Requirement = COUNT, *said: str) -> Reading:
    """Return an answer of one node; `said` are the sources that were the only ones to judge a token."""
    part = WalletShare(WALLET, 0, alone=frozenset(("7", source) for source in said), judged=frozenset("7"))
    held = None if answer is UNKNOWN else 0
    return Reading(leaf, answer, held, block, f"Base node {node}", NOW, parts=(part,))


def earlier(answer: Answer = NO, block: int = 90, node: int = 1, ago: timedelta = timedelta(minutes=1)) -> Earlier:
    return Earlier(answer, f"Base node {node}", block, NOW - ago)


def test_another_node_confirms_at_once_and_the_evidence_names_both() -> None:
    found = confirm(reading(), reading(block=98, node=2), None, TWO, NOW)
    assert (found.reading.answer, found.wait) == (NO, None)
    said = found.reading.document()
    assert (said["source"], said["block"]) == ("Base node 2", 98)
    assert said["first"] == {"source": "Base node 1", "block": 100}


TWINS = Means(1, 1, {"Base node 2": "Base node 1"})


def test_a_node_of_the_same_provider_confirms_only_as_the_same_node_would() -> None:
    first, second = reading(), reading(block=98, node=2)
    waiting = confirm(first, second, None, TWINS, NOW)
    assert (waiting.reading.answer, waiting.wait) == (UNKNOWN, 2 * CHAINS["base"].block_seconds + 1)
    later = confirm(reading(block=100, node=2), second, earlier(block=98), TWINS, NOW)
    assert (later.reading.answer, later.reading.one_source) == (NO, True)
    third = confirm(first, reading(block=98, node=3), None, replace(TWINS, nodes=2), NOW)
    assert (third.reading.answer, third.reading.one_source) == (NO, False)


def test_an_index_of_the_same_provider_is_the_same_source_of_traits() -> None:
    by = [f"{FROM_METADATA}{OF_INDEX}Base node {node}" for node in (1, 2)]
    first, second = reading(NO, 100, 1, TRAIT, by[0]), reading(NO, 98, 2, TRAIT, by[1])
    for minutes, answer in ((5, UNKNOWN), (10, NO)):
        found = confirm(first, second, earlier(block=90, ago=timedelta(minutes=minutes)), TWINS, NOW)
        assert found.reading.answer is answer
    assert found.reading.one_source


def test_what_a_settled_block_does_not_show_yet_is_unknown_until_it_is_settled() -> None:
    found = confirm(reading(NO, 100), reading(YES, 98, 2), None, TWO, NOW)
    assert (found.reading.answer, found.reading.reason) == (UNKNOWN, "not settled yet")
    assert found.wait == 2 * CHAINS["base"].block_seconds + 1
    disagreeing = confirm(reading(NO, 100), reading(YES, 100, 2), None, TWO, NOW)
    assert (disagreeing.reading.answer, disagreeing.wait) == (UNKNOWN, None)
    assert disagreeing.reading.reason == "two readings disagree"


@pytest.mark.parametrize("answers", [(NO, UNKNOWN), (UNKNOWN, NO), (UNKNOWN, UNKNOWN), (YES, NO), (YES, UNKNOWN)])
def test_nothing_but_the_same_sure_answer_confirms(answers: tuple[Answer, Answer]) -> None:
    first, second = answers
    found = confirm(reading(first), reading(second, 98, 2), None, TWO, NOW)
    assert found.reading.answer is UNKNOWN
    assert found.wait is None or UNKNOWN not in answers, "time alone answers nothing"


def test_no_block_from_before_the_answer_that_gave_the_role_confirms_the_opposite() -> None:
    given = [
        reading(YES, 99).document(),
        reading(YES, 97).document(),
        reading(NO, 150).document(),
        reading(YES, 160, leaf=TRAIT).document(),
        reading(YES, 170, leaf=replace(COUNT, min_tokens=2)).document(),
        reading(YES, 180, leaf=replace(COUNT, max_tokens=3)).document(),
        {"type": "address_list", "answer": "yes", "block": None},
    ]
    opposed = opposed_at(reading(), given)
    assert opposed == 99
    before, at = reading(block=98, node=2), reading(block=99, node=2)
    early = confirm(reading(), before, None, TWO, NOW, opposed)
    assert (early.reading.answer, early.wait) == (UNKNOWN, CHAINS["base"].block_seconds + 1)
    assert confirm(reading(), at, None, TWO, NOW, opposed).reading.answer is NO
    assert second_of(reading(), [before, at], None, TWO, NOW, opposed) is at, "a node that is not behind counts"
    assert opposed_at(reading(UNKNOWN), given) == 0


def test_a_contradicted_answer_is_marked_once_and_confirms_nothing() -> None:
    (mark,) = found = marked([reading(NO, 100)], [reading(YES, 98, 2)], {}, NOW)
    assert parsed(json.dumps(document(found))) == found
    assert question_of(reading(NO, 100)) not in found
    later = marked([reading(NO, 130)], [reading(YES, 99, 2)], found, NOW + timedelta(minutes=1))
    assert later == {mark: found[mark]}, "no write for each further reconcile"
    for first, second in ((NO, UNKNOWN), (NO, NO), (UNKNOWN, YES)):
        assert marked([reading(first, 100)], [reading(second, 98, 2)], {}, NOW) == {}


def test_one_node_confirms_itself_only_at_a_block_that_its_first_answer_has_settled() -> None:
    alone = confirm(reading(NO, 100), reading(NO, 98), None, ONE, NOW)
    assert (alone.reading.answer, alone.reading.reason) == (UNKNOWN, "waiting for a later block to confirm")
    assert alone.wait == 2 * CHAINS["base"].block_seconds + 1
    for block, expected in ((99, UNKNOWN), (98, NO), (50, NO)):
        found = confirm(reading(NO, 100), reading(NO, 98), earlier(block=block), ONE, NOW)
        assert found.reading.answer is expected, block
        assert (found.wait is None) == (expected is NO)
    other = confirm(reading(NO, 100), reading(NO, 98), earlier(YES), ONE, NOW)
    assert other.reading.answer is UNKNOWN, "it said something else then"
    old = confirm(reading(NO, 100), reading(NO, 98), earlier(ago=KEPT), ONE, NOW)
    assert old.reading.answer is UNKNOWN


def test_while_another_node_is_silent_the_first_may_confirm_itself_after_minutes() -> None:
    early = confirm(reading(), reading(NO, 98), earlier(ago=OTHERS_SILENT - timedelta(seconds=9)), TWO, NOW)
    assert (early.reading.answer, early.wait) == (UNKNOWN, 9)
    late = confirm(reading(), reading(NO, 98), earlier(ago=OTHERS_SILENT), TWO, NOW)
    assert (late.reading.answer, late.reading.first) == (NO, ("Base node 1", 90))
    assert late.reading.one_source
    by_the_other = confirm(reading(), reading(NO, 98), earlier(node=2), TWO, NOW)
    assert by_the_other.reading.answer is NO, "the node that is silent now had said so before"
    assert not by_the_other.reading.one_source


def test_a_node_that_shows_the_token_at_an_older_block_has_not_been_silent() -> None:
    """A node may lag for minutes, and it is asked about a block before its newest one."""
    first, late = reading(NO, 100), OTHERS_SILENT - timedelta(minutes=1)
    found = noted([first], [reading(UNKNOWN, 98)], {}, NOW)
    found = noted([reading(NO, 180)], [reading(YES, 99, 2)], found, NOW + late)
    (kept,) = found.values()
    for since, expected in ((timedelta(minutes=2), UNKNOWN), (OTHERS_SILENT, NO)):
        alone = confirm(reading(NO, 300), reading(NO, 298), kept, TWO, NOW + late + since)
        assert alone.reading.answer is expected, since


def test_what_a_node_said_long_before_it_fell_silent_confirms_nothing() -> None:
    """The member may have bought since, and the node that still answers may be wrong."""
    before = earlier(node=2, ago=OTHERS_SILENT + timedelta(seconds=1))
    alone = confirm(reading(NO, 300), reading(NO, 298), before, TWO, NOW)
    assert alone.reading.answer is UNKNOWN
    assert alone.wait is not None
    question = question_of(reading())
    (own,) = noted([reading(NO, 300)], [reading(NO, 298)], {question: before}, NOW).values()
    assert own == Earlier(NO, "Base node 1", 300, NOW), "from here on it may confirm itself"
    (kept,) = noted([reading(NO, 300)], [reading(NO, 298, 2)], {question: before}, NOW).values()
    assert kept == before
    for still in (earlier(node=2), earlier(ago=2 * OTHERS_SILENT)):
        assert noted([reading(NO, 300)], [reading(NO, 298)], {question: still}, NOW) == {question: still}


def test_an_earlier_answer_is_known_by_its_provider_wherever_the_settings_have_its_node() -> None:
    means = replace(TWO, providers={"Base node 1": "a", "Base node 2": "b"})
    (question,) = found = noted([reading()], [reading(UNKNOWN)], {}, NOW, lambda _: means)
    assert found[question].provider == "a"
    assert parsed(json.dumps(document(found))) == found
    assert means.named_now(found[question]).source == "Base node 1"
    turned = replace(means, providers={"Base node 1": "b", "Base node 2": "a"})
    assert turned.named_now(found[question]).source == "Base node 2"
    without = replace(means, providers={"Base node 1": "c"})
    gone = without.named_now(found[question])
    assert gone.source == without.named_now(gone).source == "Base node 1 before"
    assert turned.named_now(gone).source == "Base node 2", "the settings have the node again"
    assert turned.named_now(earlier()) == earlier(), "an older version did not say whose it was"


def test_no_answer_to_one_condition_confirms_another_one() -> None:
    calls = [ViewCall(f"{name}(address) view returns (uint256)") for name in ("staked", "locked")]
    leaves = [COUNT, TRAIT, replace(COUNT, max_tokens=3), *(replace(COUNT, type="call", details=one) for one in calls)]
    assert len({question_of(reading(leaf=leaf)) for leaf in leaves}) == len(leaves)


def test_a_first_answer_of_a_block_that_nobody_has_seen_is_replaced() -> None:
    wrong = earlier(block=400_000_000)
    found = confirm(reading(NO, 100), reading(NO, 98), wrong, ONE, NOW)
    assert found.wait == 2 * CHAINS["base"].block_seconds + 1
    question = question_of(reading())
    (now,) = noted([reading(NO, 100)], [reading(UNKNOWN, 98)], {question: wrong}, NOW).values()
    assert now.block == 100


def test_no_wait_is_longer_than_that_for_the_only_source() -> None:
    for second in (reading(YES, 98, 2), reading(NO, 98)):
        found = confirm(reading(NO, 400_000_000), second, None, TWO, NOW)
        assert found.wait == APART.total_seconds()


def test_solanas_index_confirms_itself_only_after_as_many_slots_as_settle() -> None:
    leaf = Requirement("basic", "solana", "C")
    deep = CHAINS["solana"].settled_after
    for block, expected in ((1000 - deep, NO), (1001 - deep, UNKNOWN)):
        found = confirm(reading(NO, 999, 1, leaf), reading(NO, 1000, 1, leaf), earlier(block=block), ONE, NOW)
        assert found.reading.answer is expected


def test_the_same_marketplace_twice_is_one_source() -> None:
    first = reading(NO, 100, 1, TRAIT, "OpenSea")
    twice = confirm(first, reading(NO, 98, 2, TRAIT, "OpenSea"), earlier(ago=timedelta(hours=1)), TWO, NOW)
    assert (twice.reading.answer, twice.wait) == (UNKNOWN, None)
    assert "only OpenSea" in said(twice.reading.reason or "")
    assert confirm(first, reading(NO, 98, 2, TRAIT, "token metadata"), None, TWO, NOW).reading.answer is NO
    assert confirm(first, reading(NO, 98, 2, TRAIT), None, TWO, NOW).reading.answer is NO, "both sources said so"


def test_a_marketplace_about_a_token_and_a_node_without_it_are_one_source_each() -> None:
    denied = reading(NO, 100, 1, TRAIT, "OpenSea")
    without = replace(reading(NO, 98, 2, TRAIT), parts=(WalletShare(WALLET, 0),))
    for first, second in ((denied, without), (without, denied)):
        assert confirm(first, second, earlier(ago=timedelta(hours=1)), TWO, NOW).reading.answer is UNKNOWN
    assert question_of(denied) != question_of(without), "nor does one of them confirm the other at the next look"


def test_the_only_source_of_traits_counts_twice_after_some_minutes_and_the_evidence_says_so() -> None:
    first, second = (reading(NO, block, node, TRAIT, "token metadata") for block, node in ((100, 1), (98, 2)))
    means = Means(2, 1)
    waiting = confirm(first, second, None, means, NOW)
    assert (waiting.reading.answer, waiting.wait) == (UNKNOWN, APART.total_seconds())
    early = confirm(first, second, earlier(ago=APART - timedelta(seconds=5)), means, NOW)
    assert (early.reading.answer, early.wait) == (UNKNOWN, 5)
    late = confirm(first, second, earlier(ago=APART), means, NOW)
    assert (late.reading.answer, late.reading.one_source, late.reading.document()["oneSource"]) == (NO, True, True)


@pytest.mark.parametrize("names", [(f"{FROM_LINK} by A", f"{FROM_LINK} by B"), (FROM_LINK, f"{FROM_LINK} by A")])
def test_a_document_that_two_indexes_link_to_confirms_itself_after_some_minutes_only(names: tuple[str, str]) -> None:
    first, second = (reading(NO, block, node, TRAIT, names[node - 1]) for block, node in ((100, 1), (98, 2)))
    waiting = confirm(first, second, None, TWO, NOW)
    assert (waiting.reading.answer, waiting.wait) == (UNKNOWN, APART.total_seconds())
    late = confirm(first, second, earlier(ago=APART), TWO, NOW)
    assert (late.reading.answer, late.reading.one_source) == (NO, True)
    read = confirm(first, reading(NO, 98, 2, TRAIT, "token metadata by B"), None, TWO, NOW)
    assert (read.reading.answer, read.reading.one_source) == (NO, False)


def test_a_document_that_one_of_two_indexes_links_to_confirms_nothing() -> None:
    first, second = (reading(NO, block, node, TRAIT, f"{FROM_LINK} by A") for block, node in ((100, 1), (98, 2)))
    found = confirm(first, second, earlier(ago=APART), TWO, NOW).reading
    assert (found.answer, "one source alone is not enough" in said(found.reason or "")) == (UNKNOWN, True)


def test_an_index_that_alone_lists_nothing_never_proves_a_no() -> None:
    means = Means(2, 1)
    first, second = (reading(NO, block, node, ANY, "OpenSea") for block, node in ((100, 1), (98, 2)))
    assert confirm(first, second, earlier(ago=timedelta(hours=2)), means, NOW).reading.answer is UNKNOWN


def test_all_lists_together_prove_a_no_when_they_say_so_again_after_some_minutes() -> None:
    first, second = (reading(NO, block, node, ANY, LISTS) for block, node in ((100, 1), (98, 2)))
    for ago, answer, wait in ((APART - timedelta(seconds=5), UNKNOWN, 5), (APART, NO, None)):
        found = confirm(first, second, earlier(ago=ago), TWO, NOW)
        assert (found.reading.answer, found.wait, found.reading.one_source) == (answer, wait, False)


def test_one_nodes_logs_stand_in_for_a_second_list_at_another_node() -> None:
    first, listed = (reading(NO, block, node, ANY) for block, node in ((100, 1), (98, 2)))
    first, listed = (
        replace(one, parts=(WalletShare(WALLET, 0, alone=frozenset({(ANY_NFT, "OpenSea")})),))
        for one in (first, listed)
    )
    lists = replace(listed, parts=(WalletShare(WALLET, 0, alone=frozenset({(ANY_NFT, LISTS)})),))
    searched = replace(first, block=98, parts=(WalletShare(WALLET, 0),))
    partial = [is_partial(one) for one in (listed, lists, searched, reading(NO, 98, 2, TRAIT, "OpenSea"))]
    assert partial == [True, False, False, False], "another node may have the logs"
    elsewhere = replace(searched, parts=(WalletShare("0x" + "b2" * 20, 0),))
    for told, answer in (([listed], UNKNOWN), ([listed, elsewhere], UNKNOWN), ([listed, searched], NO)):
        assert confirm(first, second_of(first, told, None, TWO, NOW), None, TWO, NOW).reading.answer is answer


def test_a_no_for_lack_of_a_wallet_needs_nobody_to_confirm_it() -> None:
    nobody = Reading(COUNT, NO, 0, reason="no wallet on this chain counts here")
    assert confirm(nobody, nobody, None, ONE, NOW).reading.answer is NO


def test_the_first_answer_is_kept_until_another_one_contradicts_it() -> None:
    first = reading(NO, 100)
    (question,) = found = noted([first], [reading(UNKNOWN)], {}, NOW)
    assert found[question] == Earlier(NO, "Base node 1", 100, NOW)
    assert noted([first], [reading(NO, 98, 2)], {}, NOW) == found
    assert parsed("") == {}
    assert parsed(json.dumps(document(found))) == found
    later = NOW + timedelta(minutes=1)
    (kept,) = noted([reading(NO, 130)], [reading(YES, 99, 2)], found, later).values()
    assert kept.block == 100, "not settled yet"
    assert noted([reading(NO, 130)], [reading(YES, 100, 2)], found, later) == {}, "another node contradicts it"
    denied = noted([reading(NO, 130)], [reading(YES, 128)], found, later)
    assert denied[question] == Earlier(NO, "Base node 1", 130, later)
    assert noted([reading(YES, 130)], [reading(YES, 128)], found, later)[question].answer is YES
    assert noted([reading(UNKNOWN, 130)], [reading(NO, 128)], found, later) == {}


def test_a_node_that_another_one_denied_does_not_begin_to_confirm_itself() -> None:
    start = noted([reading(NO, 100)], [reading(YES, 98, 2)], {}, NOW)
    later = NOW + OTHERS_SILENT
    found = confirm(reading(NO, 300), reading(NO, 298), next(iter(start.values()), None), TWO, later)
    assert found.reading.answer is UNKNOWN, "the other node is silent for the first time"
    assert found.wait is not None
    alone = noted([reading(NO, 100)], [reading(YES, 98)], {}, NOW)
    assert confirm(reading(NO, 300), reading(NO, 298), next(iter(alone.values())), ONE, later).reading.answer is NO


def test_a_token_that_one_source_alone_denied_has_to_be_held_at_the_settled_block_too() -> None:
    first = reading(NO, 100, 1, TRAIT, "OpenSea")
    found = confirm(first, replace(reading(NO, 98, 2, TRAIT), parts=(WalletShare(WALLET, 0),)), None, TWO, NOW)
    assert (found.reading.answer, found.reading.reason) == (UNKNOWN, "not settled yet")
    assert found.wait == 2 * CHAINS["base"].block_seconds + 1


def in_part(amount: int, node: int = 2, block: int = 98, reason: str | None = "cut off") -> Reading:
    """Return the answer of a node that knows of `amount` tokens, but not whether these are all."""
    part = WalletShare(WALLET, amount, reason, judged=frozenset("7"))
    return Reading(COUNT, UNKNOWN if reason else NO, amount, block, f"Base node {node}", NOW, parts=(part,))


def whole(amount: int, node: int = 1, block: int = 98) -> Reading:
    return in_part(amount, node, block, None)


def test_a_node_that_answers_in_part_is_as_good_as_silent() -> None:
    first, said, before = whole(0, block=100), [in_part(0), whole(0)], earlier(ago=OTHERS_SILENT)
    second = second_of(first, said, before, TWO, NOW)
    assert second is said[1]
    assert confirm(first, second, before, TWO, NOW).reading.one_source
    # Confirming takes as long as with a silent node, and needs an earlier answer whose block is settled by now.
    for sooner in (None, earlier(ago=OTHERS_SILENT / 2), earlier(block=99, ago=OTHERS_SILENT)):
        second = second_of(first, said, sooner, TWO, NOW)
        assert confirm(first, second, sooner, TWO, NOW).reading.answer is UNKNOWN


def test_a_node_in_full_comes_before_one_in_part_wherever_it_stands() -> None:
    first, said = whole(0, block=100), [in_part(0, node=2), whole(0, node=3)]
    second = second_of(first, said, None, Means(3, 2), NOW)
    found = confirm(first, second, None, Means(3, 2), NOW)
    assert (found.reading.answer, found.reading.source, found.reading.one_source) == (NO, "Base node 3", False)


@pytest.mark.parametrize("nodes", [(2, 3), (3, 2)])
def test_a_node_in_full_that_says_yes_is_not_outvoted(nodes: tuple[int, int]) -> None:
    # The third node was asked because the second one gave no full answer about somebody else.
    first, before = whole(0, block=100), earlier(ago=OTHERS_SILENT)
    said = [replace(whole(3), answer=YES) if node == 2 else whole(0, node=3) for node in nodes]
    second = second_of(first, said, before, Means(3, 2), NOW)
    assert confirm(first, second, before, Means(3, 2), NOW).reading.answer is UNKNOWN


@pytest.mark.parametrize("others", [[whole(0)], [whole(0, node=3)], [whole(0, node=3), whole(0)]])
def test_what_a_node_in_part_does_show_is_never_overruled(others: list[Reading]) -> None:
    first, before = whole(0, block=100), earlier(ago=OTHERS_SILENT)
    second = second_of(first, [in_part(1), *others], before, Means(3, 2), NOW)
    assert (second.answer, second.reason) == (UNKNOWN, "two readings disagree")
    assert confirm(first, second, before, Means(3, 2), NOW).reading.answer is UNKNOWN
    assert noted([first], [second], {question_of(first): before}, NOW) == {}


def test_one_wallet_that_a_node_knows_in_full_is_compared_though_another_is_not_known() -> None:
    other = "0x" + "b2" * 20
    known, unknown = WalletShare(WALLET, 1), WalletShare(other, 0, "cut off")
    first = replace(whole(0, block=100), parts=(WalletShare(WALLET, 2), WalletShare(other, 0)))
    partial = replace(in_part(1), parts=(known, unknown))
    for amount, answer in ((1, NO), (2, UNKNOWN), (0, UNKNOWN)):
        self_said = replace(whole(0), parts=(WalletShare(WALLET, amount), WalletShare(other, 0)))
        assert second_of(first, [partial, self_said], None, TWO, NOW).answer is answer


def test_each_node_is_asked_more_than_once_before_another_one_confirms_itself() -> None:
    assert OTHERS_SILENT.total_seconds() > 2 * LONGEST_PAUSE
