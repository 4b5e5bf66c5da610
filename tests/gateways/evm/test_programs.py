"""The programs that run inside the EVM: the committed code is built from the sources and fits what Python expects."""

import json
import re

import pytest

from gateways.evm.balances import balances_program as balances
from gateways.evm.calls import views_program as views
from gateways.evm.calls.arguments import MOST_BYTES
from gateways.evm.tokens import one_word_program as questions
from sandbox.contracts.compile import BYTECODE, PROGRAMS, sources
from tests.gateways.evm_lab import assemble

SOURCES = {path.stem: path.read_text() for path in PROGRAMS.glob("*.yul")}


def test_the_committed_code_belongs_to_the_sources() -> None:
    committed = json.loads(BYTECODE.read_text())
    assert committed["sources"] == sources(PROGRAMS, "*.yul")
    assert committed.keys() - {"sources"} == SOURCES.keys()


@pytest.mark.parametrize(
    ("name", "magic"), [("balances", balances.MAGIC), ("questions", questions.MAGIC), ("views", views.MAGIC)]
)
def test_a_program_has_the_mark_that_its_answers_are_known_by(name: str, magic: int) -> None:
    assert f"xor({magic:#x}, head)" in SOURCES[name]


def test_python_reckons_with_the_gas_that_balances_take() -> None:
    numbers = dict(re.findall(r"let (\w+) := (\d+)$", SOURCES["balances"], re.M))
    assert numbers["callGas"] == str(balances.CALL_GAS)
    assert numbers["margin"] == str(balances.MARGIN)


def test_a_template_ends_before_the_answer_begins() -> None:
    (start,) = re.findall(r"return\((0x\w+), ", SOURCES["views"])
    assert int(start, 16) >= MOST_BYTES


def test_the_assembler_pushes_numbers_small_and_resolves_labels() -> None:
    assert assemble("1 0x1234 ADD ; a comment\nthere: @there JUMP").hex() == "60016112340" + "15b61000656"
