"""
density_correction
==================

Samples are seldom even. With ``density_correction=1``, the default, the random walk
does not feel their density: its functions are those of the shape. With 0 the walk
drifts to where samples are dense, and functions mix shape and density.
"""

# %%
# A rectangle with samples that are denser towards one diagonal, so that the two sides
# are dependent.
import warnings

import matplotlib.pyplot as plt
import numpy as np

from manifactor import ManifoldFactorizer, datasets, plots
from manifactor.scores import score

X, truth = datasets.sample("rectangle", 1500, sampling="dependent", random_state=0)
corrections = [0.0, 0.5, 1.0]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    fits = [
        ManifoldFactorizer(2, density_correction=alpha, sense="geometry", random_state=0).fit(X)
        for alpha in corrections
    ]

# %%
# Colours are places on the factor that should be the short side. They should change
# from bottom to top only.
figure, axes = plt.subplots(1, 3, figsize=(8, 2.4), layout="constrained")
for ax, alpha, fit in zip(axes, corrections, fits, strict=True):
    found = score([factor.embedding for factor in fit.factors_], truth)
    short_side = found.match[found.match[:, 0] == 1, 1].item()
    places = fit.factors_[short_side].embedding[:, 0]
    # A factor may be found from either end.
    rising = np.corrcoef(places, X[:, 1])[0, 1] > 0
    plots.points(ax, X, places if rising else -places, size=5)
    ax.set_title(f"density_correction={alpha:g}: {fit.verdict_}", fontsize=9)
    print(f"density_correction={alpha:g}: {fit.verdict_}, R² {found.worst:.3f}")
plt.show()

# %%
# Change it to 0 to repeat the settings of the paper. Where the density itself is what
# is a product, as for independent Gaussians, the default tries the sense "density" by
# itself; see :doc:`the parameter sense <plot_parameters_sense>`.
