"""Compiles the contracts with the pinned solc (`npm ci` in sandbox/npm) and writes what the sandbox deploys.

python sandbox/contracts/compile.py <node_modules that has solc>
"""

import json
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

HERE = Path(__file__).parent
ARTEFACTS = HERE / "artefacts.json"
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


def sources() -> dict[str, str]:
    """File name → SHA-256 of each contract's source, by which a test sees that the artefacts are not old."""
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in sorted(HERE.glob("*.sol"))}


def compile_all(node_modules: Path) -> dict[str, dict[str, Any]]:
    """Contract name → `{bytecode, runtime, selectors}`, all hexadecimal with 0x, and `sources`.

    Exits with solc's words on errors.
    """
    job = {
        "language": "Solidity",
        "sources": {path.name: {"content": path.read_text()} for path in sorted(HERE.glob("*.sol"))},
        "settings": {
            # An EVM without PUSH0, which every one of our chains understands.
            "evmVersion": "paris",
            "optimizer": {"enabled": True, "runs": 10_000},
            "metadata": {"bytecodeHash": "none", "appendCBOR": False},
            "outputSelection": {
                "*": {"*": ["evm.bytecode.object", "evm.deployedBytecode.object", "evm.methodIdentifiers"]}
            },
        },
    }
    solc = ["node", str(node_modules / "solc" / "solc.js"), "--standard-json"]
    # Into a file: the wrapper exits before a pipe has taken everything.
    with TemporaryFile("w+") as output:
        subprocess.run(solc, input=json.dumps(job), stdout=output, text=True, check=True)
        output.seek(0)
        said = output.read()
    answer = json.loads(said[said.index("{") :])
    problems = [entry["formattedMessage"] for entry in answer.get("errors", [])]
    if problems:
        sys.exit("\n".join(problems))
    artefacts: dict[str, dict[str, Any]] = {"sources": sources()}
    for file in answer["contracts"].values():
        for name, contract in file.items():
            if name in WANTED:
                evm = contract["evm"]
                artefacts[name] = {
                    "bytecode": "0x" + evm["bytecode"]["object"],
                    "runtime": "0x" + evm["deployedBytecode"]["object"],
                    "selectors": {form: "0x" + selector for form, selector in evm["methodIdentifiers"].items()},
                }
    return artefacts


if __name__ == "__main__":
    ARTEFACTS.write_text(json.dumps(compile_all(Path(sys.argv[1])), indent=1, sort_keys=True) + "\n")
    print(f"wrote {ARTEFACTS}")
