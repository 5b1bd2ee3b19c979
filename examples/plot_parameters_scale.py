"""
The scale of the columns
========================

No parameter, but the choice that matters most: distances compare all columns, so that
columns in different units must be brought to one scale first.
"""

# %%
# A torus: two circles in two columns each. The columns of the second circle are given
# in larger and larger units, as if metres were mixed with millimetres.
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manifactor import ManifoldFactorizer, datasets, plots

X, truth = datasets.sample("torus", 1500, random_state=0)


def in_units(unit):
    """Return the samples with the second circle in other units."""
    return X / np.array([1, 1, unit, unit])


fits = {}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # that columns differ in scale a hundredfold
    for unit in (1, 10, 100):
        fits[f"1 : {unit}"] = ManifoldFactorizer(random_state=0).fit(in_units(unit))
standardised = make_pipeline(StandardScaler(), ManifoldFactorizer(random_state=0))
fits["1 : 100, standardised"] = standardised.fit(in_units(100))[-1]

for name, fit in fits.items():
    print(f"{name:22} {fit.verdict_:8} in the sense of {fit.evidence_.sense}")
print(fits["1 : 100"].evidence_.advice)

# %%
# Places on the factor that is the second circle, coloured by its true angle. At 1 : 100
# it is too thin to be seen: one factor is found, the first circle. Standardised
# columns show both again.
cosine, sine = truth[1].T
angle = np.arctan2(sine, cosine)
figure, axes = plt.subplots(1, 4, figsize=(8.5, 2.4), layout="constrained")
for ax, (name, fit) in zip(axes, fits.items(), strict=True):
    ax.set_title(name, fontsize=9)
    if fit.n_factors_ == 1:
        plots.nothing(ax, "not found")
        continue
    # The factor whose places follow the true angle.
    places = max(
        (factor.embedding for factor in fit.factors_),
        key=lambda z: (
            abs(np.mean((z[:, 0] + 1j * z[:, 1]) * np.exp(-1j * angle)))
            + abs(np.mean((z[:, 0] + 1j * z[:, 1]) * np.exp(1j * angle)))
        ),
    )
    plots.points(ax, places, angle, cmap=plots.circle_map(), size=3)
    ax.set_aspect("equal")
plt.show()

# %%
# Use ``StandardScaler`` for columns of different kinds, such as a temperature and a
# length, and ``--standardise`` on the command line. Do not use it where columns have
# the same unit and their sizes mean something: pixels of an image, coordinates of
# atoms, principal components.
