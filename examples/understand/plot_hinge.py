"""
See what the hinge loss asks for
================================

The margin of a row is y f(x). It is positive where the prediction is right. The hinge
loss asks for a margin of 1 and charges for what is missing. This picture shows it
beside the other losses, and the sub-gradients that solvers follow.

``python plot_hinge.py FILE`` also writes the picture to a file.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from dualgap.losses import Hinge, SmoothedHinge, SquaredHinge
from dualgap.plot import COLORS

margins = np.linspace(-1.5, 2.5, 401)
losses = {
    "hinge": Hinge(),
    "squared hinge": SquaredHinge(),
    "smoothed hinge": SmoothedHinge(gamma=1.0),
}

# %%
# Left: every loss is 0 from a margin of 1 on. The number of errors, dotted, is what one
# would like to minimise, but it has no slope to follow. The squared hinge punishes
# outliers most. Right: left of the kink the hinge has the slope -1, right of it 0. At
# the kink every line between the two lies below the loss: its slope is a sub-gradient.

figure, (left, right) = plt.subplots(1, 2, figsize=(7.5, 3.3), layout="constrained")
for color, (name, loss) in zip(COLORS, losses.items(), strict=False):
    left.plot(margins, loss.value(margins), color=color, label=name)
left.plot(margins, margins < 0, ":", color="black", label="errors")
left.set(ylim=(-0.1, 4), xlabel="margin y f(x)", ylabel="loss", title="Losses")
left.legend(frameon=False)

hinge = Hinge()
for slope in (-0.8, -0.6, -0.4, -0.2):
    line = slope * (margins - 1)
    assert (line <= hinge.value(margins) + 1e-12).all()
    right.plot(margins, line, color="0.7", linewidth=1)
right.plot(margins, hinge.value(margins), color=COLORS[0])
right.plot(1, 0, "o", color=COLORS[0])
right.annotate("slope -1: push the row", (-0.6, 1.6), (-0.35, 2.1), fontsize="small")
right.annotate("slope 0: leave it", (1.7, 0), (1.2, 0.35), fontsize="small")
right.set(xlim=(-1, 2.5), ylim=(-1, 2.6), xlabel="margin y f(x)")
right.set_title("Sub-gradients of the hinge at its kink")
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=120)
plt.show()
