"""Where the files that run elsewhere are, and how they are read."""

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.house.pages import ROOT

MONITORING = ROOT / "deploy" / "monitoring"


def yaml_of(path: Path) -> Any:
    """Read a YAML file as version 1.2 says, so that `on` is not a boolean."""
    return YAML(typ="safe").load(path.read_text())
