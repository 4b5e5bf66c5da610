"""View calls evaluated on contracts' answers: sums, exact values, delegated wallets, and unknown parts."""

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from eth_abi.abi import encode
from hypothesis import given
from hypothesis import strategies as st

from gateways.chains.view_sheet import ViewSheet
from gateways.evm.calls.answer_path import NotAllThere, WrongAnswer
from gateways.evm.calls.compiled import compiled
from services.core.answer import Answer
from services.holdings.evaluate import Answers, in_part, read
from services.holdings.fetch_plan import by_chain, with_vaults
from services.holdings.last_known import scope_of
from services.holdings.wallet_shares import Delegated, Stake, Vault
from services.rules.expression import Requirement
from services.rules.types.view_call import ViewCall

YES, NO, UNKNOWN = Answer.YES, Answer.NO, Answer.UNKNOWN
NOW = datetime(2026, 1, 2, tzinfo=UTC)
CONTRACT, ANN, BEN, VAULT = ("0x" + pair * 20 for pair in ("c0", "a1", "b2", "fa"))
MINE = (("evm", ANN), ("evm", BEN))


def leaf(compare: str = ">=", value: str = "5", output: str = "uint256") -> Requirement:
    details = ViewCall(f"f(address) view returns ({output})", compare=compare, value=value)
    return Requirement("call", "base", CONTRACT, details=details.checked("base", CONTRACT))


def answers(asked: Requirement, values: Mapping[str, int | str], unsure: Mapping[str, str] = {}) -> Answers:
    assert isinstance(asked.details, ViewCall)
    question = asked.details.question(CONTRACT)
    sheet = ViewSheet("base", question, 70, NOW, 0, "Base node 1", values, unsure)
    return Answers(frozenset({*values, *unsure}), calls={question: sheet})


@pytest.mark.parametrize(
    ("compare", "value", "output", "values", "unsure", "answer", "held"),
    [
        (">=", "5", "uint256", {ANN: 2, BEN: 3}, {}, YES, 5),
        (">=", "5", "uint256", {ANN: 2, BEN: 2}, {}, NO, 4),
        (">=", "5", "uint256", {ANN: 9}, {BEN: "it reverted"}, YES, 9),
        (">=", "5", "uint256", {ANN: 4}, {BEN: "it reverted"}, UNKNOWN, 4),
        (">=", str(2**256), "uint256", {ANN: 2**255, BEN: 2**255}, {}, YES, 2**256),
        ("<=", "5", "uint256", {ANN: 2, BEN: 3}, {}, YES, 5),
        ("<=", "5", "uint256", {ANN: 2, BEN: 4}, {}, NO, 6),
        ("<=", "5", "uint256", {ANN: 2}, {BEN: "it reverted"}, UNKNOWN, 2),
        ("<=", "5", "uint256", {ANN: 6}, {BEN: "it reverted"}, NO, 6),
        ("<=", "0", "uint256", {ANN: 0, BEN: 0}, {}, YES, 0),
        ("=", "5", "uint256", {ANN: 2, BEN: 3}, {}, NO, 0),
        ("=", "5", "uint256", {ANN: 5, BEN: 3}, {}, YES, 1),
        ("=", "5", "uint256", {ANN: 5}, {BEN: "it reverted"}, YES, 1),
        ("=", "5", "uint256", {ANN: 4}, {BEN: "it reverted"}, UNKNOWN, 0),
        ("=", "true", "bool", {ANN: 0, BEN: 1}, {}, YES, 1),
        ("=", "true", "bool", {ANN: 0, BEN: 0}, {}, NO, 0),
        ("=", "false", "bool", {ANN: 1, BEN: 1}, {}, NO, 0),
        ("=", "gold", "string", {ANN: "red", BEN: "gold"}, {}, YES, 1),
        (">=", "5", "int256", {ANN: 9, BEN: -5}, {}, NO, 4),
        (">=", "5", "int256", {ANN: 9}, {BEN: "it reverted"}, UNKNOWN, 9),
        ("<=", "5", "int256", {ANN: 9}, {BEN: "it reverted"}, UNKNOWN, 9),
        ("<=", "-5", "int256", {ANN: 1, BEN: -6}, {}, YES, -5),
    ],
)
def test_numbers_add_up_and_exact_values_hold_for_one_wallet(
    compare: str,
    value: str,
    output: str,
    values: dict[str, int | str],
    unsure: dict[str, str],
    answer: Answer,
    held: int,
) -> None:
    asked = leaf(compare, value, output)
    reading = read(asked, MINE, answers(asked, values, unsure))
    assert (reading.answer, reading.held) == (answer, held)
    assert (reading.block, reading.source, reading.observed_at) == (70, "Base node 1", NOW)
    assert in_part(asked, answers(asked, values, unsure)) is bool(unsure)


def test_no_wallet_is_no_and_no_answer_is_unknown() -> None:
    asked = leaf()
    assert read(asked, [("solana", "Ann")], None).answer is NO
    assert read(asked, MINE, None).answer is UNKNOWN
    assert read(asked, MINE, Answers(frozenset({ANN, BEN}))).answer is UNKNOWN
    other = answers(leaf(output="uint8"), {ANN: 9, BEN: 9})
    assert read(asked, MINE, other).answer is UNKNOWN, "another function's answer is none"
    assert isinstance(asked.details, ViewCall)
    down = Answers(frozenset({ANN, BEN}), calls={asked.details.question(CONTRACT): "the node is down"})
    assert (read(asked, MINE, down).answer, read(asked, MINE, down).reason) == (UNKNOWN, "the node is down")


def test_a_vault_counts_for_whom_everything_of_the_contract_is_delegated_to() -> None:
    asked = leaf()
    said = answers(asked, {ANN: 1, BEN: 0, VAULT: 9})

    def of(*stakes: Stake) -> Answer:
        return read(asked, MINE, said, Delegated((Vault("base", VAULT, stakes),))).answer

    assert of(Stake(mine=True, delegate=ANN)) is YES
    assert of(Stake(mine=True, contract=CONTRACT, delegate=ANN)) is YES
    assert of(Stake(mine=False), Stake(mine=True, delegate=ANN)) is NO
    assert of(Stake(mine=True, contract=CONTRACT, token_id="7", delegate=ANN)) is NO
    assert of(Stake(mine=True, contract="0x" + "dd" * 20, delegate=ANN)) is NO
    doubts = Delegated((), {"base": "the registry is down"})
    assert read(asked, MINE, said, doubts).answer is UNKNOWN


def test_one_question_serves_all_comparisons_and_is_no_balance() -> None:
    leaves = [leaf(), leaf(value="7"), leaf("<=", "3"), leaf(output="uint8"), Requirement("basic", "base", CONTRACT)]
    wants = by_chain(leaves, {})["base"]
    assert [one.function for one in wants.calls] == [
        "f(address) view returns (uint256)",
        "f(address) view returns (uint8)",
    ]
    assert (wants.balances, wants.tokens) == ((CONTRACT,), ())
    claimed = Vault("base", VAULT, (Stake(mine=True, contract=CONTRACT, token_id="7", delegate=ANN),))
    assert with_vaults(by_chain([leaf()], {})["base"], [leaf()], [claimed]).tokens == ()


def test_what_is_remembered_of_wallets_fits_every_comparison_of_sums() -> None:
    assert scope_of(leaf()) == scope_of(leaf("<=", "9"))
    assert (
        len({scope_of(leaf()), scope_of(leaf("=", "5")), scope_of(leaf("=", "6")), scope_of(leaf(output="int8"))}) == 4
    )


WORDS = st.sampled_from([0, 1, 5, 31, 32, 64, 2**255, 2**256 - 1])
RAW = st.one_of(
    st.binary(max_size=200),
    st.lists(WORDS, max_size=6).map(lambda words: b"".join(one.to_bytes(32, "big") for one in words)),
    st.integers(0, 2**256 - 1).map(lambda number: encode(["uint256"], [number])),
    st.lists(st.integers(0, 9), max_size=9).map(lambda items: encode(["uint256[]"], [items])),
)


@given(
    st.sampled_from(["uint256", "uint8", "bool", "uint256[]", "(uint256,bool)"]), st.lists(RAW, max_size=3), st.data()
)
def test_whatever_bytes_come_back_no_is_said_only_of_whole_answers(
    output: str, said: list[bytes | None], data: st.DataObject
) -> None:
    path = {"uint256[]": "length", "(uint256,bool)": "0"}.get(output, "")
    compare, value = ("=", "true") if output == "bool" else (">=", "5")
    details = ViewCall(f"f(address) view returns ({output})", path=path, compare=compare, value=value)
    asked = Requirement("call", "base", CONTRACT, details=details.checked("base", CONTRACT))
    question = details.question(CONTRACT)
    values, unsure = dict[str, int | str](), dict[str, str]()
    owners = [f"0x{number:040x}" for number in range(1, 4)]
    for owner, raw in zip(owners, said, strict=False):
        size = len(raw or b"") + data.draw(st.sampled_from([0, 0, 32, 10**6]))
        try:
            values[owner] = compiled(question).path.value(raw or b"", size)
        except (WrongAnswer, NotAllThere) as fault:
            unsure[owner] = str(fault) or "cut off"
    found = answers(asked, values, unsure)
    reading = read(asked, [("evm", owner) for owner in owners], found)
    if reading.answer is NO:
        assert set(values) == set(owners)
        assert not unsure
