"""Pictures of the pages: panels of lines, drawn by matplotlib if it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Line:
    """Points with a label; their `ranges` are (lowest, highest) of each y."""

    x: Sequence[float]
    y: Sequence[float]
    label: str
    style: str = "-"
    ranges: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True)
class Panel:
    """Lines in one frame; `log` names the logarithmic axes, `ticks` the x values."""

    title: str
    xlabel: str
    ylabel: str
    lines: Sequence[Line]
    log: str = ""
    ticks: Sequence[str] = ()
    diagonal: bool = False


def draw(path: Path, panels: Sequence[Panel], columns: int) -> bool:
    """Write a picture of a third of the usual size; return whether there is one.

    One legend is enough if all panels have the same labels; else those with new ones
    have their own.
    """
    panels = [panel for panel in panels if panel.lines]
    if not panels or find_spec("matplotlib") is None:
        return False
    from matplotlib.figure import Figure
    from PIL import Image

    columns = min(columns, len(panels))
    labels = [[line.label for line in panel.lines] for panel in panels]
    rows = -(-len(panels) // columns)
    width = 2.8 if columns > 3 else 4.2
    figure = Figure((width * columns, 0.8 * width * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes[len(panels) :]:
        axis.axis("off")
    for axis, panel in zip(axes, panels, strict=False):
        for line in panel.lines:
            if line.ranges:
                ends = np.abs(np.transpose(line.ranges) - np.array(line.y))
                axis.errorbar(line.x, line.y, ends, fmt="o", label=line.label,
                              alpha=0.7, capsize=2)  # fmt: skip
            else:
                axis.plot(line.x, line.y, line.style, label=line.label, alpha=0.8)
        axis.set_title(panel.title, fontsize=9)
        axis.set(xlabel=panel.xlabel, ylabel=panel.ylabel)
        for name in panel.log:
            axis.set(**{f"{name}scale": "log"})
        if panel.ticks:
            axis.set_xticks(range(len(panel.ticks)), panel.ticks, fontsize=7)
        if panel.diagonal:
            axis.plot(axis.get_xlim(), axis.get_xlim(), "k-", lw=0.7)
        axis.grid(True, alpha=0.3)
    alike = len(panels) > 1 and all(names == labels[0] for names in labels)
    if alike:
        handles = axes[0].get_legend_handles_labels()
        figure.legend(*handles, loc="outside lower center", ncols=6)
    for axis, names, before in zip(axes, labels, [[], *labels], strict=False):
        if names != before and not alike:
            axis.legend(fontsize=7)
    figure.savefig(path, dpi=110)
    with Image.open(path) as image:
        image.convert("RGB").quantize(64).save(path, optimize=True)
    return True
