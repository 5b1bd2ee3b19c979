"""
New samples
===========

A fit places samples that it has not seen: ``coordinates`` and ``transform`` say where
they lie on each factor, and ``locate`` also says how far to trust it.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from manifactor import ManifoldFactorizer, datasets, load, plots, save

# An interval of length 3, and a circle of radius 1.
X, _ = datasets.sample("cylinder", 2000, random_state=0)
fit = ManifoldFactorizer(random_state=0).fit(X)
print("verdict:", fit.verdict_)
for factor in fit.factors_:
    print(factor)

# %%
# Coordinates of new samples
# --------------------------
#
# ``transform`` is for pipelines: one column for an interval, cosine and sine for a
# circle. ``coordinates`` has one number for each factor.

X_new, truth = datasets.sample("cylinder", 4000, random_state=1)
print("transform:  ", fit.transform(X_new).shape, fit.get_feature_names_out())
print("coordinates:", fit.coordinates(X_new).shape)

# %%
# They agree with the truth as those of the fitted samples do: the arc length from 0 to
# 1 up to its sense, the angle up to its start and sense.

kinds = [factor.topology for factor in fit.factors_]
found = dict(zip(kinds, fit.coordinates(X_new).T, strict=True))
place, (cosine, sine) = truth[0][:, 0], truth[1].T
angle = np.degrees(np.arctan2(sine, cosine)) % 360

figure, axes = plt.subplots(1, 2, figsize=(6, 3), layout="constrained")
axes[0].scatter(place, found["interval"], s=1, color=plots.colour(0))
axes[0].set(xlabel="true place on the interval", ylabel="found, new samples")
axes[1].scatter(angle, np.degrees(found["circle"]), s=1, color=plots.colour(1))
axes[1].set(xlabel="true angle, degrees", ylabel="found, new samples")
axes[1].set(xticks=[0, 180, 360], yticks=[0, 180, 360])
plt.show()

# %%
# Samples that do not belong
# --------------------------
#
# ``locate`` returns embedding, coordinate and confidence on each factor. The confidence
# of a new sample is that of the nearest fitted one. A sample far from all of them takes
# the place of the nearest one, with confidence 0. "Far" is meant generously: farther
# off than fitted samples may be that do not count as outliers.
#
# A cylinder is also a sum of a function of each factor, and ``method="sum"`` finds it
# as such. Confidence then falls with the distance from the sum, so that samples beside
# the manifold are told apart from those on it; but it falls slowly.

as_sum = ManifoldFactorizer(method="sum", random_state=0).fit(X)
print("verdict on the sum:", as_sum.verdict_)


def on_circle(fit, X):
    """Return the places of samples on the factor that is a circle."""
    topologies = [factor.topology for factor in fit.factors_]
    return fit.locate(X)[topologies.index("circle")]


# %%
# Here are samples of a plane that cuts the cylinder in the middle of its length. The
# cylinder is the dashed circle.

grid = np.linspace(-2.2, 2.2, 89)
y, z = (values.ravel() for values in np.meshgrid(grid, grid))
plane = np.column_stack([np.full_like(y, 1.5), y, z])
place, place_on_sum = on_circle(fit, plane), on_circle(as_sum, plane)

figure, axes = plt.subplots(1, 3, figsize=(9, 2.9), layout="constrained")
ends = (grid[0], grid[-1], grid[0], grid[-1])
panels = [
    (np.degrees(place.coordinate), plots.circle_map(), "angle, degrees", 360),
    (place.confidence, "Blues", "confidence", 1),
    (place_on_sum.confidence, "Blues", "confidence on the sum", 1),
]
turn = np.linspace(0, 2 * np.pi, 200)
for ax, (values, colours, label, most) in zip(axes, panels, strict=True):
    picture = values.reshape(len(grid), len(grid))
    limits = {"origin": "lower", "extent": ends, "vmin": 0, "vmax": most}
    shown = ax.imshow(picture, cmap=colours, **limits)
    ax.plot(np.cos(turn), np.sin(turn), "--", color="white", lw=1)
    figure.colorbar(shown, ax=ax, label=label, shrink=0.8)
    ax.set(xticks=[-2, 0, 2], yticks=[-2, 0, 2])
plt.show()

# %%
# The mean confidence on the cylinder, a little off it, and far away:

distance = np.abs(np.hypot(y, z) - 1)
for name, found in {"geometry": place, "sum": place_on_sum}.items():
    rings = [distance < 0.05, np.abs(distance - 0.5) < 0.05, distance > 1.3]
    means = [f"{found.confidence[ring].mean():.2f}" for ring in rings]
    print(f"{name:8}", ", ".join(means))

# %%
# Later, elsewhere
# ----------------
#
# A fit is saved as one file of arrays, without pickles. The fit that is read places
# samples as before.

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "fit.npz"
    save(fit, path)
    again = load(path)
print(np.array_equal(again.coordinates(X_new), fit.coordinates(X_new)))
