"""
Soft densities
==============

Samples are rarely spread evenly. Here the two factors have densities of three kinds:
both circles are crowded on one side (von Mises), an interval has two groups (bimodal),
and two lines are Gaussian, without any edge.
"""

import textwrap

import matplotlib.pyplot as plt
import numpy as np

from manifactor import ManifoldFactorizer, datasets, plots, scores

shapes = {"von Mises": "von_mises_torus_2", "bimodal": "deep_bimodal", "Gaussian": "gaussian_1_2"}
samples = {name: datasets.sample(shape, 2500, random_state=0) for name, shape in shapes.items()}
fits = {name: ManifoldFactorizer(random_state=0).fit(X) for name, (X, _) in samples.items()}

# %%
# What the fit says
# -----------------
#
# The score matches the factors with the true ones, and has the R^2 with which each true
# factor is predicted by its own and by the other one.

matched = {
    name: scores.score([factor.embedding for factor in fit.factors_], samples[name][1])
    for name, fit in fits.items()
}
for name, fit in fits.items():
    found = " x ".join(factor.topology for factor in fit.factors_)
    score = matched[name]
    assert score.solved
    print(f"{name}: {fit.verdict_}, {found}, in the sense {fit.evidence_.sense!r};")
    print(f"    R^2 by its own factor {score.worst:.3f}, by another {score.leak:.3f}")

# %%
# All factors are found. The Gaussians are called "partial" for a good reason:

assert fits["Gaussian"].verdict_ == "partial"
print(textwrap.fill(fits["Gaussian"].evidence_.reason, 88))

# %%
# Edges and gaps tell which axes are the factors. Two Gaussians have neither: in units
# of their deviations every rotation of the axes is as good. The axes that are found are
# those of the columns' units. More samples do not change that.
#
# Truth and found coordinates
# ---------------------------
#
# Above: the samples in the plane of the true coordinates. Below: the found coordinates
# against the true ones. An angle is right up to its start and sense, a place on an
# interval up to its sense. The few samples in the tails of the Gaussians, beyond about
# 2.5 deviations, take the place of the ends, 0 and 1.


def coordinate(true):
    """Return an angle in degrees, or the single column of an interval."""
    if true.shape[1] == 1:
        return true[:, 0]
    return np.degrees(np.arctan2(true[:, 1], true[:, 0]))


figure, axes = plt.subplots(2, 3, figsize=(8, 5), layout="constrained")
for (above, below), (name, fit) in zip(axes.T, fits.items(), strict=True):
    truth = samples[name][1]
    true_places = [coordinate(true) for true in truth]
    above.scatter(*true_places, s=1, color=plots.GREY)
    above.set(title=f"{name}: {fit.verdict_}", xlabel="true 1", ylabel="true 2")
    for true, found in matched[name].match:
        factor = fit.factors_[found]
        scale = 180 / np.pi if factor.topology == "circle" else 1
        below.scatter(
            true_places[true],
            scale * factor.coordinate,
            s=1,
            color=plots.colour(true),
            label=f"coordinate {true + 1}",
        )
    below.set(xlabel="true", ylabel="found")
axes[1, 1].legend(markerscale=5, frameon=False)
plt.show()
