"""Versions of Python, dualgap and its dependencies, for bug reports."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

REQUIRED = ("dualgap", "numpy", "scipy", "scikit-learn")
OPTIONAL = ("safetensors", "matplotlib", "pandas", "polars", "pyarrow")


def show_versions() -> None:
    """Print the versions of Python, dualgap and its dependencies, and the core in use.

    Paste the output into bug reports. scikit-learn and pandas have functions of the
    same name for the same purpose.
    """
    from . import core

    cpu = f"x86-64-v{core.cpu_level}" if core.cpu_level else platform.machine()
    built = ", ".join(f"x86-64-{level}" for level in core.built_levels)
    sections = {
        "System": {
            "python": sys.version.replace("\n", " "),
            "executable": sys.executable,
            "machine": platform.platform(),
        },
        "Core": {
            "processor": cpu,
            "variants": built or core.variant,
            "running": core.variant,
        },
        "Packages": {name: _installed(name) for name in REQUIRED},
        "Optional packages": {name: _installed(name) for name in OPTIONAL},
    }
    for title, rows in sections.items():
        print(f"\n{title}:")
        for name, value in rows.items():
            print(f"{name:>14}: {value}")


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
