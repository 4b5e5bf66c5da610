"""Compiles with the pinned solc (`npm ci` in sandbox/npm): the sandbox's contracts, and the product's EVM programs.

python -m sandbox.contracts.compile <node_modules that has solc>
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

HERE = Path(__file__).parent
ARTEFACTS = HERE / "artefacts.json"
PROGRAMS = HERE.parents[1] / "gateways" / "evm" / "programs"
BYTECODE = PROGRAMS / "bytecode.json"
# An EVM version without PUSH0, which all our chains understand.
SETTINGS: dict[str, Any] = {"evmVersion": "paris", "optimizer": {"enabled": True, "runs": 10_000}}
WANTED = (
    "Collection721",
    "Collection721Enumerable",
    "Collection1155",
    "Coin",
    "Multicall3",
    "DelegateRegistry",
    "NameRegistry",
    "NameResolver",
    "EthResolver",
    "UniversalResolver",
    "StakingNumber",
    "StakingList",
    "StakingStruct",
    "StakingConstant",
    "StakingRevert",
    "StakingHuge",
    "Punks",
    "Safe",
    "EntryPoint",
    "Account4337",
)


def sources(folder: Path = HERE, pattern: str = "*.sol") -> dict[str, str]:
    """Return file name → SHA-256 of each source, with which a test sees that the committed artefacts are current."""
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob(pattern))}


def compile_contracts(node_modules: Path) -> dict[str, dict[str, Any]]:
    """Return contract name → `{bytecode, runtime, selectors}`, all hexadecimal with 0x, and `sources`."""
    wanted = ["evm.bytecode.object", "evm.deployedBytecode.object", "evm.methodIdentifiers"]
    settings = {"metadata": {"bytecodeHash": "none", "appendCBOR": False}, "outputSelection": {"*": {"*": wanted}}}
    artefacts: dict[str, dict[str, Any]] = {"sources": sources()}
    for name, evm in _solc(node_modules, "Solidity", sorted(HERE.glob("*.sol")), settings):
        if name in WANTED:
            artefacts[name] = {
                "bytecode": "0x" + evm["bytecode"]["object"],
                "runtime": "0x" + evm["deployedBytecode"]["object"],
                "selectors": {form: "0x" + selector for form, selector in evm["methodIdentifiers"].items()},
            }
    return artefacts


def compile_programs(node_modules: Path) -> dict[str, Any]:
    """Return program name → its code, hexadecimal with 0x, and `sources`."""
    programs: dict[str, Any] = {"sources": sources(PROGRAMS, "*.yul")}
    # The Yul optimizer recomputes values wherever a loop uses them, which costs more gas than keeping them.
    details = {"yul": False, "cse": True, "constantOptimizer": True, "deduplicate": True, "orderLiterals": True}
    optimizer = {**SETTINGS["optimizer"], "details": details}
    settings = {"optimizer": optimizer, "outputSelection": {"*": {"*": ["evm.bytecode.object"]}}}
    # solc takes one Yul source at a time.
    for path in sorted(PROGRAMS.glob("*.yul")):
        for name, evm in _solc(node_modules, "Yul", [path], settings):
            programs[name] = "0x" + evm["bytecode"]["object"]
    return programs


def _solc(
    node_modules: Path, language: str, paths: Sequence[Path], settings: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each object of the sources with solc's output for it; exit with solc's words on errors."""
    contents = {path.name: {"content": path.read_text()} for path in paths}
    job = {"language": language, "sources": contents, "settings": {**SETTINGS, **settings}}
    # Written to a file, since the wrapper exits before a pipe has received everything.
    with TemporaryFile("w+") as output:
        command = ["node", str(node_modules / "solc" / "solc.js"), "--standard-json"]
        subprocess.run(command, input=json.dumps(job), stdout=output, text=True, check=True)
        output.seek(0)
        said = output.read()
    answer = json.loads(said[said.index("{") :])
    problems = [entry["formattedMessage"] for entry in answer.get("errors", [])]
    if problems:
        sys.exit("\n".join(problems))
    for file in answer["contracts"].values():
        yield from ((name, found["evm"]) for name, found in file.items())


def _write(path: Path, found: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    print(f"wrote {path}")


if __name__ == "__main__":
    _write(ARTEFACTS, compile_contracts(Path(sys.argv[1])))
    _write(BYTECODE, compile_programs(Path(sys.argv[1])))
