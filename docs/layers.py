"""Draw the layers of the package: ``python docs/layers.py``.

A box imports only from boxes below it. CONTRIBUTING.md says from which.
"""

from __future__ import annotations

from pathlib import Path

STATIC = Path(__file__).parent / "_static"
#: Bands from the top, each with a colour and its boxes: a place, and what it is.
USE, TRAIN, GROUND, NATIVE = "#f9d9c8", "#ececec", "#cfe8f1", "#9fd0e3"
BANDS = [
    (USE, [("cli/, __main__.py", "the command line")]),
    (USE, [("papers/", "experiments and methods of papers")]),
    (USE, [("__init__.py, _show_versions.py", "public names, versions")]),
    (
        USE,
        [
            ("plot/, html_report.py", "pictures, reports"),
            ("patch.py, model_selection.py", "scikit-learn's names"),
        ],
    ),
    (
        USE,
        [
            ("models/", "certify, compress, files"),
            ("distributed/", "clusters"),
        ],
    ),
    (USE, [("estimators/", "scikit-learn's interface")]),
    (
        TRAIN,
        [
            ("answers/", "bounds on the exact optimum"),
            ("kernel/", "names of kernel SVMs"),
        ],
    ),
    (TRAIN, [("training/", "the loop decides when to stop")]),
    (TRAIN, [("solvers/", "make epochs and claim a result")]),
    (TRAIN, [("problems/", "prove the result")]),
    (GROUND, [("kernels/", "kernel functions and their values")]),
    (
        GROUND,
        [
            ("blas.py", "limits its threads"),
            ("data/", "what X may be, files, row stores"),
        ],
    ),
    (
        GROUND,
        [
            ("losses.py, docstrings.py", "losses, shared docstrings"),
            ("certificate.py", "made by proofs alone"),
        ],
    ),
    (
        GROUND,
        [
            ("checks.py", "refusals of arguments"),
            ("memory.py, names.py", "small helpers"),
            ("core.py", "picks the CPU variant"),
        ],
    ),
    (NATIVE, [("src/core/", "C++: epochs, kernel values, the sums of proofs")]),
]
WIDTH, HEIGHT, GAP = 720, 46, 8


def box(x: float, y: float, width: float, colour: str, name: str, text: str) -> str:
    """Return a box with a name and what it is, as SVG."""
    middle = x + width / 2
    return f"""\
<rect x="{x:g}" y="{y}" width="{width:g}" height="{HEIGHT}" rx="6" fill="{colour}"/>
<text x="{middle:g}" y="{y + 20}" font-weight="bold">{name}</text>
<text x="{middle:g}" y="{y + 36}">{text}</text>
"""


def draw() -> str:
    """Return the picture as SVG."""
    boxes, y = "", GAP
    for colour, band in BANDS:
        width = (WIDTH - GAP) / len(band) - GAP
        for k, (name, text) in enumerate(band):
            boxes += box(GAP + k * (width + GAP), y, width, colour, name, text)
        y += HEIGHT + GAP
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" role="img"
 font-family="sans-serif" font-size="13" text-anchor="middle" fill="#222">
<title>Layers of dualgap: a box imports only from boxes below it</title>
<rect width="{WIDTH}" height="{y}" rx="8" fill="#fff"/>
{boxes}</svg>
"""


if __name__ == "__main__":
    (STATIC / "layers.svg").write_text(draw(), "utf-8")
