"""Records of solvers and losses refuse options by their name and value."""

from __future__ import annotations

from typing import Any

import pytest

from dualgap.kernel import (
    FW,
    MDM,
    MFW,
    SWAP,
    BlockSolver,
    CoreVector,
    KernelPegasos,
    Nystroem,
    SWAP2o,
)
from dualgap.losses import EpsilonInsensitive, SmoothedHinge
from dualgap.solvers import (
    DCD,
    MPU,
    NORMA,
    OCAS,
    SDCA,
    SGDQN,
    SOLVERS,
    CuttingPlane,
    InteriorPoint,
    Pegasos,
    SGDm,
    SGDs,
    SmoothingNewton,
    SvmSGD,
)
from dualgap.solvers.base import SteppedSolver
from dualgap.solvers.newton import ResidualNewton

INF, NAN = float("inf"), float("nan")
STEPPED = [record for record in SOLVERS.values() if issubclass(record, SteppedSolver)]
WALKS = [FW, MFW, MDM, SWAP, SWAP2o]
#: Records, an option of theirs, and values that it does not take.
OPTIONS: list[tuple[Any, str, list[Any]]] = [
    *((record, "max_steps", [0, -3, 2.5, True, "many"]) for record in STEPPED),
    (SDCA, "order", ["shuffled"]),
    (SDCA, "init", ["warm"]),
    (SDCA, "output", ["best"]),
    (InteriorPoint, "max_features", [0]),
    (InteriorPoint, "rounds", [0]),
    (SmoothingNewton, "max_features", [0]),
    (SmoothingNewton, "sample", [0]),
    (SmoothingNewton, "passes", ["both"]),
    (ResidualNewton, "direction", ["exact"]),
    (Pegasos, "batch_size", [0, -3, 2.5, None]),
    (Pegasos, "sampling", ["cyclic"]),
    (Pegasos, "output", ["random"]),
    (Pegasos, "projection", ["no"]),
    (Pegasos, "bias", ["none"]),
    (SGDs, "order", ["random"]),
    (SGDs, "check_factor", [0.0]),
    (SGDm, "repeats", [0, 2.5]),
    (SGDm, "period", [0, 2.5]),
    (SGDm, "run", [-1, 2.5]),
    (NORMA, "p", [0.0, -0.5, 1.5, NAN, "fast"]),
    (SvmSGD, "initial_step", [0.0, -1.0, INF, NAN, "fast"]),
    (SGDQN, "update", ["2010", 2009, None]),
    (SGDQN, "skip", [0, -1, 2.5, True, "often"]),
    (SGDQN, "t0", [0.0, -1.0, NAN, INF, "soon"]),
    (DCD, "shrinking", ["no"]),
    (DCD, "acceleration", ["fast"]),
    (MPU, "delta", [0.0, -0.1, 1.5, NAN, INF, "fine"]),
    (MPU, "delta_stop", [0.0, -0.1, NAN, INF, "fine"]),
    *((record, "max_planes", [1, 2.5]) for record in (CuttingPlane, OCAS)),
    *((record, "patience", [0]) for record in (CuttingPlane, OCAS)),
    *((record, "threads", [0, 257, True]) for record in (CuttingPlane, OCAS)),
    *((record, "inner_tol", [0.0, 1.5, NAN]) for record in (CuttingPlane, OCAS)),
    (OCAS, "mu", [0.0, -0.1, 1.1, NAN, "some"]),
    (BlockSolver, "q", [0]),
    (BlockSolver, "threads", [0]),
    (Nystroem, "n_components", [0, -1, 2.5, True, "many"]),
    (SWAP, "sample", [0]),
    (SWAP, "balanced", [2]),
    (FW, "initial", [0]),
    (SWAP2o, "ranking", ["best"]),
    *((record, "stop", ["never"]) for record in [*WALKS, CoreVector]),
    *((record, "initial_point", ["first"]) for record in WALKS),
    *((record, "eps", [0.1]) for record in WALKS),  # for stop='sampled' only
    *((record, "quiet_samples", [2]) for record in [*WALKS, CoreVector]),
    (CoreVector, "eps", [2.0]),
    (KernelPegasos, "budget", [0]),
    (KernelPegasos, "sampling", ["draws"]),
    (KernelPegasos, "output", ["mean"]),
    (KernelPegasos, "max_steps", [0]),
    (KernelPegasos, "batch_size", [0]),
    (SmoothedHinge, "gamma", [0.0, -1.0, NAN, INF]),
    (EpsilonInsensitive, "epsilon", [-1.0, INF, NAN, "wide"]),
]


@pytest.mark.cases(None)
@pytest.mark.parametrize(("record", "name", "values"), OPTIONS)
def test_values(record: Any, name: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises((TypeError, ValueError), match=f"{name}=") as error:
            record(**{name: value})
        assert repr(value) in str(error.value)


#: Options that do not go together, and words of the answer.
TOGETHER: list[tuple[Any, dict[str, Any], str]] = [
    (Pegasos, {"bias": "batch"}, "batch_size of 2 or more"),
    (Pegasos, {"bias": "search", "output": "average"}, "output='average'"),
    (DCD, {"shrinking": "hsieh", "acceleration": "conjugate"}, "shrinking='hsieh'"),
    (DCD, {"shrinking": "none", "acceleration": "conjugate"}, "shrinking='none'"),
    (CoreVector, {"stop": "sampled", "sample": None}, "needs a sample"),
    *((record, {"stop": "sampled", "eps": 0.0}, r"eps=0\.0: give a positive")
      for record in WALKS),
]  # fmt: skip


@pytest.mark.cases(None)
@pytest.mark.parametrize(("record", "options", "words"), TOGETHER)
def test_what_does_not_go_together(
    record: Any, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        record(**options)
