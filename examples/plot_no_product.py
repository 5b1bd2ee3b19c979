"""
Data that are no product
========================

Not all data are a product, and a method that finds factors in everything is of little
use. Here are a rectangle, which is a product, and five data sets that are none, or of
which it cannot be told.
"""

import textwrap
import warnings

import matplotlib.pyplot as plt
import numpy as np

from manifactor import ManifoldFactorizer, datasets, plots, scores

shapes = {
    "rectangle": ("rectangle", 1500),
    "rectangle without a corner": ("cut_corner", 1000),
    "Moebius band": ("moebius", 1500),
    "triangle": ("triangle", 1500),
    "parallelogram": ("parallelogram", 1500),
    "rectangle, 60 samples": ("rectangle", 60),
}
samples = {
    name: datasets.sample(shape, size, random_state=0)[0] for name, (shape, size) in shapes.items()
}


def fitted(X):
    """Return a fit and the texts of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit = ManifoldFactorizer(random_state=0).fit(X)
    return fit, [f"{w.category.__name__}: {w.message}" for w in caught]


fits = {}
for name, X in samples.items():
    fits[name], messages = fitted(X)
    for message in messages:
        print(textwrap.fill(f"{name}: {message}", 88), end="\n\n")

# %%
# What the fit says
# -----------------
#
# ``verdict_`` is "product", "separable" (:doc:`/separable`), "partial", "one factor" (a
# curve) or "none". ``evidence_.answer`` tells three kinds of "none" apart. ``reason``
# names the tests that failed, with their numbers. ``advice`` says what to do next;
# :doc:`/partial-or-none` says more.

for name, fit in fits.items():
    evidence = fit.evidence_
    print(f"{name}: {fit.verdict_} ({evidence.answer})")
    print(textwrap.indent(textwrap.fill(f"reason: {evidence.reason}", 80), "    "))
    print(textwrap.indent(textwrap.fill(f"advice: {evidence.advice}", 80), "    "))

# %%
# The samples of "product" and "partial" are coloured by the coordinate of the first
# factor; where the verdict is "none" no coordinate is claimed.
#
# - The rectangle without a corner has two good coordinates. But not every combination
#   of them occurs: it is nearly a product.
# - Every part of the Moebius band is a product of an interval and a piece of a circle,
#   but not the whole: after one turn the interval comes back reversed.
# - The triangle is one factor, of two dimensions.
# - The parallelogram has two directions, which are not orthogonal.
# - 60 samples of a rectangle are too few to tell.

planes = {name: X[:, :2] for name, X in samples.items()}
# The band lies in four dimensions. It is drawn cut open: the angle of the circle, and
# the place across the band.
x, y, *twisted = samples["Moebius band"].T
angle = np.arctan2(y, x) % (2 * np.pi)
across = twisted[0] * np.cos(angle / 2) + twisted[1] * np.sin(angle / 2)
planes["Moebius band"] = np.column_stack([angle / 2, across])

figure, axes = plt.subplots(2, 3, figsize=(8, 4.6), layout="constrained")
for ax, (name, fit) in zip(axes.flat, fits.items(), strict=True):
    factor, evidence = fit.factors_[0], fit.evidence_
    if fit.verdict_ == "none":
        ax.scatter(*planes[name].T, s=3, color="silver")
        ax.set_axis_off()
    else:
        cyclic = factor.topology == "circle"
        cmap = plots.circle_map() if cyclic else plots.LINE_MAP
        plots.points(ax, planes[name], factor.coordinate, cmap=cmap, size=4)
    words = [fit.verdict_, evidence.answer]
    ax.set_title(f"{name}\n" + ": ".join(dict.fromkeys(words)), fontsize=10)
    # Axes of equal size, so that all titles are at one height.
    ax.set(aspect="equal", adjustable="datalim")
plt.show()

# %%
# Partial, and still of use
# -------------------------
#
# The coordinates of the rectangle without a corner against the true ones. They are good
# enough to be used, as the advice says; the first one bends towards the corner.

_, truth = datasets.sample("cut_corner", 1000, random_state=0)
factors = fits["rectangle without a corner"].factors_

figure, axes = plt.subplots(1, 2, figsize=(6, 3), layout="constrained")
for number, (ax, factor, true) in enumerate(zip(axes, factors, truth, strict=True)):
    ax.scatter(true, factor.coordinate, s=1, color=plots.colour(number))
    ax.set(xlabel=f"true coordinate {number + 1}", ylabel="found")
    r2 = scores.regression_r2(factor.embedding, true)
    print(f"factor {number + 1}: R^2 of the true coordinate {r2:.3f}")
plt.show()
