"""The compiled core, in the best variant for this processor.

On x86-64 the same C++ sources are compiled once per level of the x86-64 psABI
(``_core_v2``, ``_core_v3``, ``_core_v4``); elsewhere once (``_core``). Wheels contain
all levels; a build from source contains the level of the building machine. This module
imports the highest installed level that the processor supports and exposes its public
names as ``dualgap.core``. No other Python module deals with variants.

Set the environment variable ``DUALGAP_CPU`` to ``v2``, ``v3`` or ``v4`` to choose a
variant. The variants compute the same quantities and differ only in rounding (fused
multiply-add, and the order in which vector registers are summed).
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

_LEVELS = ("v2", "v3", "v4")

#: The x86-64 level of this processor, 1 to 4; 0 on another architecture.
cpu_level: int = import_module(f"{__package__}._cpu").x86_64_level()

#: The x86-64 levels in this build, lowest first; empty if it has one generic core.
built_levels: tuple[str, ...] = tuple(
    level for level in _LEVELS if find_spec(f"{__package__}._core_{level}")
)


def _choose() -> str:
    """Return the level to import: the best one, or the value of ``DUALGAP_CPU``.

    The empty string stands for the generic core.
    """
    machine = f"x86-64-v{cpu_level}" if cpu_level else "not an x86-64 processor"
    held = ", ".join(built_levels) or "one generic core"
    runnable = [level for level in built_levels if int(level[1:]) <= cpu_level]
    asked = os.environ.get("DUALGAP_CPU", "")
    if asked in runnable:
        return asked
    if asked:
        if asked not in _LEVELS:
            reason = f"is not known (it takes {', '.join(_LEVELS)})"
        elif asked not in built_levels:
            reason = f"is not in this build of dualgap, which holds {held}"
        else:
            reason = f"cannot run on this machine, which is {machine}"
        raise ImportError(
            f"DUALGAP_CPU={asked!r} {reason}. Unset it to let dualgap choose."
        )
    if runnable:
        return runnable[-1]
    if find_spec(f"{__package__}._core"):
        return ""
    raise ImportError(
        f"This build of dualgap holds {held}; this machine is {machine}. Build it "
        "here with: pip install --no-binary dualgap "
        "--config-settings=cmake.define.DUALGAP_VARIANTS=native dualgap"
    )


_level = _choose()

#: The variant in use: ``"x86-64-v3"``, ..., or ``"generic"``.
variant: str = f"x86-64-{_level}" if _level else "generic"

if TYPE_CHECKING:
    from ._core import *  # noqa: F403


_core = import_module(f"{__package__}._core_{_level}".removesuffix("_"))
globals().update(
    {name: value for name, value in vars(_core).items() if not name.startswith("_")}
)


class StoppedError(Exception):
    """Raised when a stop request ends a proof early; nothing is proved then."""
