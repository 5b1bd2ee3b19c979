"""
In a scikit-learn pipeline
==========================

``ManifoldFactorizer`` is a scikit-learn transformer: it can be cloned, takes its place
in a pipeline, and its columns can feed a regression. Which steps make sense before it,
and which after?
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manifactor import ManifoldFactorizer, datasets, plots

# %%
# Columns in different units
# --------------------------
#
# A carriage moves on a rail while a disk on it turns. Four sensors measure where the
# carriage is, in metres. Twelve sensors around the disk measure its angle, in
# millivolts. Every sensor has a noise of 2 % of its range.

rng = np.random.default_rng(0)
_, (rail, disk) = datasets.sample("cylinder", 1500, random_state=0)
directions = 2 * np.pi * np.arange(12) / 12
metres = 0.3 * rail @ np.ones((1, 4))
millivolts = 500 * disk @ [np.cos(directions), np.sin(directions)]
exact = np.hstack([metres, millivolts])
table = exact + rng.normal(scale=0.02 * np.ptp(exact, axis=0), size=exact.shape)

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    raw = ManifoldFactorizer(random_state=0).fit(table)
print("as it is:", raw.verdict_, [factor.topology for factor in raw.factors_])
for warning in caught:
    print(f"{warning.category.__name__}: {warning.message}")

# %%
# Scale first
# -----------
#
# Distances between rows were distances in millivolts, and the rail does not show in
# them. ``StandardScaler`` brings all columns to one scale. It is the right first step
# if columns have units of their own. If all have one unit, such as pixels, leave it
# out: it would make columns that hold nothing but noise as large as the others.
#
# ``PCA`` turns the 16 columns into the three that are more than noise.
# ``ManifoldFactorizer`` drops noise by itself where there are many columns, so that
# this step is often not needed. ``whiten=True`` would change the lengths of the
# factors.

pipeline = make_pipeline(
    StandardScaler(), PCA(3, random_state=0), ManifoldFactorizer(random_state=0)
)
columns = pipeline.fit_transform(table)
fit = pipeline[-1]
kinds = [factor.topology for factor in fit.factors_]
print("scaled:", fit.verdict_, kinds)
print("columns:", columns.shape, pipeline.get_feature_names_out())

# %%
# Against the truth: the rail up to its sense, the angle up to its start and sense.

angle = np.degrees(np.arctan2(disk[:, 1], disk[:, 0])) % 360
on_rail = fit.factors_[kinds.index("interval")].coordinate
on_disk = np.degrees(fit.factors_[kinds.index("circle")].coordinate)

figure, axes = plt.subplots(1, 2, figsize=(6, 3), layout="constrained")
axes[0].scatter(0.3 * rail, on_rail, s=2, color=plots.colour(0))
axes[0].set(xlabel="carriage, metres", ylabel="found place")
axes[1].scatter(angle, on_disk, s=2, color=plots.colour(1))
axes[1].set(xlabel="disk, degrees", ylabel="found angle, degrees")
axes[1].set(xticks=[0, 180, 360], yticks=[0, 180, 360])
plt.show()

# %%
# Clones and parameters
# ---------------------
#
# A clone has the same parameters and no fit. With the same ``random_state`` it finds
# the same. Parameters have the usual names in a pipeline.

again = clone(pipeline).fit(table)
same = np.allclose(again.transform(table), pipeline.transform(table))
assert same
print("the same places:", same)
print("asked for:", pipeline.get_params()["manifoldfactorizer__n_factors"])

# %%
# Before a regression
# -------------------
#
# A quantity depends on the angle alone and is known for 60 samples. The factors can be
# learned from all 1500, as that needs no labels. The columns of the right factor then
# need the fewest labels: what does not matter is gone.

quantity = np.sin(2 * np.radians(angle))
labelled = slice(60)
prefix = f"factor{kinds.index('circle') + 1}_"
own = [name.startswith(prefix) for name in pipeline.get_feature_names_out()]
sources = {
    "16 columns, scaled": StandardScaler().fit_transform(table),
    "columns of both factors": columns,
    "columns of the circle": columns[:, own],
}
for name, source in sources.items():
    errors = -cross_val_score(
        KNeighborsRegressor(3),
        source[labelled],
        quantity[labelled],
        cv=10,
        scoring="neg_mean_absolute_error",
    )
    print(f"{name:24} mean absolute error {errors.mean():.2f}")

# %%
# What makes no sense
# -------------------
#
# A grid search over the parameters of the factorizer: it has no score to search by, and
# its parameters are chosen from the data. ``fit.choices_`` says how, and
# ``fit.evidence_`` whether the result is good.

for name in ("neighbours", "functions"):
    choice = fit.choices_[name]
    print(f"{name}: {choice.value} ({choice.why})")
