"""Names of the papers whose experiments are here, and what files hold about them."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..data.types import Parameters

#: The papers by name; modules and pages have an underscore for a hyphen.
PAPERS = (
    "pegasos2011", "pegasos2011-kernels", "pegasos-rows", "sgd-revisited", "sdca2013",
    "nanculef2014",
)  # fmt: skip


def kept(name: str) -> Parameters:
    """Return what a JSON file of this folder holds."""
    return json.loads(Path(__file__).with_name(f"{name}.json").read_text("utf-8"))


def settings(paper: str) -> SimpleNamespace:
    """Return the settings of a paper's runs and verdicts; the file explains each."""
    found = kept("settings")[paper].items()
    return SimpleNamespace(**{name: value for name, (value, _) in found})
