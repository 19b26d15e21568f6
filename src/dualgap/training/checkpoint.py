"""Checkpoints: resume a killed fit, with the same result bit for bit.

A checkpoint holds the whole state of the loop and the solver at the end of an epoch,
or between two blocks of streamed rows: the arrays of the solver's state, its counters
and random state, the best proof so far and the history. It is one safetensors file,
written under a temporary name and then renamed. Before it is used, the identity of the
fit (data, problem, solver, tolerance, seed) is compared.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import logging
import os
import time
from dataclasses import replace
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from .. import core
from ..certificate import Bounds
from ..data import model_file
from ..data.atomic import check_target, remove_leftovers
from ..data.lock import locked
from ..losses import Vector
from ..names import own_version
from ..problems.base import Proof
from ..solvers.base import Solver, State
from .progress import Epoch

logger = logging.getLogger("dualgap")

FORMAT = "dualgap-checkpoint"
# Attributes of a solver's state that `start` creates again or that belong to others.
_NOT_KEPT = frozenset(
    {"problem", "rng", "q", "data", "engine", "warm_started"}
    | {"pause", "stop", "resources", "alone"}
)

Plain = Any  # JSON
Tensors = model_file.Tensors


class Kept(NamedTuple):
    """State of the loop: what a checkpoint keeps besides the solver's state."""

    factor: float
    next_blind_check: int
    idle: int
    seconds: float
    best: Proof | None
    history: list[Epoch]


class Checkpoint(contextlib.AbstractContextManager["Checkpoint"]):
    """The file of one fit, locked within a ``with`` statement.

    `every`: seconds between two checkpoints. `about`: identity of the fit: JSON that is
    equal for equal fits; see :func:`identity`. Raises OSError if the path cannot be
    written to. Raises ImportError if the package safetensors is missing.
    """

    def __init__(
        self, path: str | os.PathLike[str], every: float, about: dict[str, Plain]
    ) -> None:
        self.path, self.every, self.about = os.fspath(path), every, about
        check_target(self.path)
        model_file.safetensors("writing")
        self.last = time.perf_counter()
        self.stack = contextlib.ExitStack()

    def __enter__(self) -> Checkpoint:
        """Lock the file, and remove temporary files that killed fits have left."""
        target = os.path.realpath(self.path)
        alone = self.stack.enter_context(locked(target, f"checkpoint={self.path!r}"))
        if alone:
            remove_leftovers(target)
        return self

    def __exit__(self, *error: object) -> None:
        self.stack.close()

    @property
    def due(self) -> bool:
        return time.perf_counter() - self.last >= self.every

    def write(self, plain: Plain, tensors: Tensors, name: str) -> None:
        """Write a frozen state atomically: the whole file or none of it."""
        record = {"estimator": name, "about": self.about, "state": plain}
        model_file.write(self.path, model_file.seal(record, tensors, FORMAT), tensors)
        self.last = time.perf_counter()

    def save(self, solver: Solver, state: State, kept: Kept) -> None:
        """Write the state of a fit."""
        tensors: Tensors = {}
        best = None
        if kept.best is not None:
            c = kept.best.certificate
            best = (kept.best.w, kept.best.alpha, c.primal, c.dual, c.rounding)
        plain = {
            "solver": freeze_state(state, "solver", tensors),
            "loop": freeze((*kept[:4], best, kept.history), "loop", tensors),
            "random": list(state.rng.state),
        }
        self.write(plain, tensors, solver.name)
        logger.debug("%s: checkpoint after epoch %d", solver.name, state.epochs)

    def read(self) -> tuple[Plain, Tensors] | None:
        """Return the state that an equal fit has written; None if there is no file."""
        if not os.path.exists(self.path):
            return None
        try:
            record, tensors = model_file.read(self.path, FORMAT)
        except ValueError as error:
            raise ValueError(
                f"checkpoint={self.path!r}: {error}; remove the file to start over"
            ) from None
        there = record.get("about", {})
        for key, value in self.about.items():
            if there.get(key) != value:
                what = "other data" if key == "data" else f"{key}={there.get(key)!r}"
                now = "" if key == "data" else f", this fit has {key}={value!r}"
                raise ValueError(
                    f"checkpoint={self.path!r} was written by a fit of {what}{now}; "
                    "remove the file to start over, or choose another name"
                )
        return record["state"], tensors


def restore(state: State, floor: float, plain: Plain, tensors: Tensors) -> Kept:
    """Restore a solver's state; return the loop's.

    `state`: a state that was just started. `floor`: the problem's floor of the size of
    the optimum. `plain`, `tensors`: the state that :meth:`Checkpoint.read` has
    returned.
    """
    thaw_state(state, plain["solver"], tensors)
    state.rng.state = plain["random"]
    factor, blind, idle, seconds, best, history = thaw(plain["loop"], tensors, {})
    proof = None
    if best is not None:
        w, alpha, *bounds = best
        proved = Bounds.stored(*bounds).certificate
        proof = Proof(w, alpha, replace(proved, floor=floor))
    return Kept(factor, blind, idle, seconds, proof, history)


def identity(
    problem: dict[str, Plain],
    solver: Solver,
    tol: float,
    atol: float,
    seed: int,
    warm: Vector | None,
    check_every: int | None,
) -> dict[str, Plain]:
    """Return everything that determines the result of a fit bit for bit.

    Limits on epochs and time are excluded. `problem` is the fingerprint of a problem.
    """
    return problem | {
        "solver": repr(solver),
        "tol": tol.hex() if isinstance(tol, float) else repr(tol),
        "atol": float(atol).hex(),
        "random_state": int(seed),
        "check_every": check_every,
        "warm": None if warm is None else hashlib.sha256(warm.tobytes()).hexdigest(),
        "core": core.variant,
        "dualgap": own_version(),
    }


# -------------------------------------------------------- values to files and back


def freeze(value: Any, name: str, tensors: Tensors) -> Plain:
    """Return a value as JSON; put its arrays into `tensors`, named after `name`."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return {"float": float(value).hex()}
    if isinstance(value, np.ndarray):
        tensors[name] = value
        return {"tensor": name}
    if isinstance(value, (tuple, list)):
        items = [freeze(v, f"{name}.{k}", tensors) for k, v in enumerate(value)]
        return {"items": items, "tuple": isinstance(value, tuple)}
    if isinstance(value, Enum):
        return {"enum": value.name, "of": type(value).__name__}
    if isinstance(value, State):
        return freeze_state(value, name, tensors)
    if dataclasses.is_dataclass(value):
        fields = {
            field.name: freeze(
                getattr(value, field.name), f"{name}.{field.name}", tensors
            )
            for field in dataclasses.fields(value)
        }
        return {"record": type(value).__name__, "fields": fields}
    raise TypeError(
        f"{name} is a {type(value).__name__}, which a checkpoint cannot hold"
    )


def freeze_state(state: State, name: str, tensors: Tensors) -> Plain:
    """Return the part of a solver's state that its `start` does not create again."""
    names = [n for n in vars(state) if n not in _NOT_KEPT]
    return {n: freeze(getattr(state, n), f"{name}.{n}", tensors) for n in names}


def thaw(plain: Plain, tensors: Tensors, parts: dict[str, Any]) -> Any:
    """Invert :func:`freeze`; `parts` are the records and enums that may occur."""
    if not isinstance(plain, dict):
        return plain
    if "float" in plain:
        return float.fromhex(plain["float"])
    if "tensor" in plain:
        return tensors[plain["tensor"]]
    if "items" in plain:
        items = [thaw(item, tensors, parts) for item in plain["items"]]
        return tuple(items) if plain["tuple"] else items
    if "enum" in plain:
        return parts[plain["of"]][plain["enum"]]
    fields = plain["fields"].items()
    return parts[plain["record"]](
        **{name: thaw(value, tensors, parts) for name, value in fields}
    )


def thaw_state(state: State, plain: Plain, tensors: Tensors) -> None:
    """Restore a frozen state into one that was just started."""
    kept = {name for name in vars(state) if name not in _NOT_KEPT}
    if not isinstance(plain, dict) or set(plain) != kept:
        raise ValueError(
            "the checkpoint holds the state of another solver; remove the file to "
            "start over"
        )
    parts = {part.__name__: part for part in state.parts}
    for name, value in plain.items():
        now = getattr(state, name)
        if isinstance(now, State):
            thaw_state(now, value, tensors)
            continue
        then = thaw(value, tensors, parts)
        if (
            isinstance(now, np.ndarray)
            and now.size
            and (
                not isinstance(then, np.ndarray)
                or (then.shape, then.dtype) != (now.shape, now.dtype)
            )
        ):
            raise ValueError(
                f"the checkpoint holds {name} of another shape; remove the file to "
                "start over"
            )
        setattr(state, name, then)
