"""The soak's own verdict: the faults it must find, and the writes it must accept."""

from datetime import UTC, datetime

import pytest

from tests.system.soak.expected_roles import Holdings, Timeline, right
from tests.system.soak.judge import REFUSALS_BORNE, REFUSALS_WITHIN, Write, faults, refusals

PAIR = ("member", "role")
BEGAN = 1_700_000_000.0
EARNED, SOLD = BEGAN + 5, BEGAN + 20


def given(after: float) -> Write:
    return Write(BEGAN + after, PAIR, gives=True)


def taken(after: float) -> Write:
    return Write(BEGAN + after, PAIR, gives=False)


@pytest.fixture
def timeline() -> Timeline:
    """A role earned after 5 seconds and lost by a sale after 20."""
    made = Timeline()
    made.note(BEGAN, {PAIR: False})
    made.note(EARNED, {PAIR: True})
    made.note(SOLD, {PAIR: False})
    return made


def test_one_write_for_each_change_is_right(timeline: Timeline) -> None:
    assert faults([given(6), taken(21)], timeline, []) == []


def test_what_was_taken_while_it_was_earned_is_found(timeline: Timeline) -> None:
    timeline.changes[PAIR] = [(BEGAN - 1000, True)]
    assert ["TAKEN THOUGH HELD" in said for said in faults([given(6), taken(15)], timeline, [])] == [True]


def test_what_was_written_twice_is_found(timeline: Timeline) -> None:
    for again in ([given(6), given(7)], [given(6), taken(21), taken(22)]):
        assert ["written twice" in said for said in faults(again, timeline, [])] == [True]


def test_only_who_leaves_between_the_look_and_the_removal_may_be_asked_for_what_went_with_the_membership(
    timeline: Timeline,
) -> None:
    away = [("member", BEGAN + 8), ("member", BEGAN + 8.1)]
    assert faults([given(6), taken(21)], timeline, away) == []
    for again in ([given(6), taken(21), taken(22)], [given(6), taken(29)]):
        assert ["written twice" in said for said in faults(again, timeline, away)] == [True]


def test_a_write_that_a_slow_discord_repeats_is_let_pass(timeline: Timeline) -> None:
    slow = [(BEGAN + 5, BEGAN + 7)]
    assert faults([given(6), given(9), taken(21)], timeline, [], slow) == []


def refused(count: int, within: float, status: int = 403) -> list[dict[str, object]]:
    times = (datetime.fromtimestamp(BEGAN + at * within / count, UTC).isoformat() for at in range(count))
    return [{"target": "discord", "status": status, "time": moment} for moment in times]


def test_more_refusals_than_a_tenth_of_what_discord_bears_are_found() -> None:
    assert len(refusals(refused(REFUSALS_BORNE + 1, REFUSALS_WITHIN))) == 1
    assert refusals(refused(REFUSALS_BORNE, REFUSALS_WITHIN)) == []
    assert refusals(refused(2 * REFUSALS_BORNE, 3 * REFUSALS_WITHIN)) == []
    assert refusals(refused(2 * REFUSALS_BORNE, REFUSALS_WITHIN, status=404)) == []


A, B, SOL = "0x" + "a" * 40, "0x" + "b" * 40, "So1"
WALLETS = {"evm": A, "solana": SOL}
HELD = Holdings(
    owners={("base", "nft", "7"): A, ("base", "nft", "8"): B, ("base", "nft", "30"): A, ("polygon", "nft", "1"): A},
    traits={("base", "nft", "7"): {"Fur": "Gold"}, ("base", "nft", "8"): {"Hat": "Red"}},
    amounts={("base", "coin", A): 99_500_000, ("solana", "spl", SOL): 1},
    decimals={("base", "coin"): 6, ("solana", "spl"): 0},
    stakes={("base", "stake", "1"): A, ("base", "stake", "2"): B},
)


def leaf(type_: str, contract: str = "nft", chain: str = "base", **fields: object) -> dict[str, object]:
    return {"type": type_, "chain": chain, "contract": contract, **fields}


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (leaf("basic", minTokens=2), True),
        (leaf("basic", minTokens=3), False),
        (leaf("basic", minTokens=0, maxTokens=1), False),
        (leaf("basic", minTokens=1, maxTokens=2), True),
        (leaf("token_id", tokenIds=["1-6", "7"]), True),
        (leaf("token_id", tokenIds=["8-29", "70"]), False),
        (leaf("trait", trait={"type": "Fur", "value": "Gold"}), True),
        (leaf("trait", trait={"type": "Hat", "value": "Red"}), False),
        (leaf("any_nft", "any", "polygon"), True),
        (leaf("any_nft", "any", "ethereum"), False),
        (leaf("token", "coin", min="99.5"), True),
        (leaf("token", "coin", min="99.500001"), False),
        (leaf("token", "coin", max="99.5"), True),
        (leaf("token", "coin", max="99.499999"), False),
        (leaf("token", "spl", "solana", min="1"), True),
        (leaf("call", "stake", value="1"), True),
        (leaf("call", "stake", value="2"), False),
        ({"type": "address_list", "addresses": [B, SOL]}, True),
        ({"type": "address_list", "addresses": [B]}, False),
        ({"not": {"type": "address_list", "addresses": [B]}}, True),
        ({"type": "any_wallet", "family": "solana"}, True),
        ({"not": {"type": "any_wallet", "family": "evm"}}, False),
    ],
)
def test_the_mirror_answers_every_kind_of_condition(tree: dict[str, object], *, expected: bool) -> None:
    assert right(tree, HELD, WALLETS) is expected
    assert not right(tree, HELD, {}), "without a wallet nobody has a role"
