"""Where the deployment files are, and how they are read."""

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.house.pages import ROOT

MONITORING = ROOT / "deploy" / "monitoring"


def yaml_of(path: Path) -> Any:
    """Read a YAML file by version 1.2, in which `on` is not a boolean."""
    return YAML(typ="safe").load(path.read_text())
