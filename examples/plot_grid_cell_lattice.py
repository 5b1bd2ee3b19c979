"""
The torus of grid cells, and its angle
======================================

Grid cells of one module fire on hexagonal grids that are shifted against each other. Two
places that differ by a period of the grid have the same rates, so that the rates of all
cells lie on a flat torus. It is not a product of two circles, since its periods meet at
60 degrees and not at 90. The fit is told nothing of this, nor of the place of the animal:
it names the torus, measures the angle, and gives two angles for every sample.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

from data_sets import grid_rates, ring
from manifactor import ManifoldFactorizer, NoProductStructureWarning, plots

# %%
# An animal walks through a box of 2 m by 2 m, in steps of 2 cm, and is turned back by the
# walls. The place after every hundred steps is kept. The grid has a period of 50 cm.

rng = np.random.RandomState(0)
steps = 0.02 * ring(np.cumsum(rng.normal(0, 0.3, 300_000)))
place = 2 - np.abs(2 - np.cumsum(steps, axis=0)[::100] % 4)
periods = 0.5 * np.array([[1, 0], [-0.5, np.sqrt(3) / 2]])
phases = 2 * np.pi * place @ np.linalg.inv(periods)

# %%
# Rates of 60 cells, with errors. As is usual with such data, six principal components are
# taken and scaled alike: the three waves of a hexagonal grid have a cosine and a sine each.

rates = np.sqrt(grid_rates(phases, rng.uniform(0, 2 * np.pi, size=(60, 2))))
X = PCA(6, whiten=True).fit_transform(rates + rng.normal(0, 0.1, rates.shape))
with warnings.catch_warnings():
    # One factor also gives a warning.
    warnings.simplefilter("ignore", NoProductStructureWarning)
    fit = ManifoldFactorizer(random_state=0).fit(X)
found = fit.evidence_.symmetries
print(f"verdict: {fit.verdict_}; {found}; ratio of the periods {found.ratio:.2f}")

# %%
# On the left, the places in the box, by the rate of one cell. In the middle, all samples by
# their two angles, in the cell of the lattice; colours are the true phase along one axis of
# the grid. On the right, the box again, by one found angle: it is constant along lines and
# the same again after a period. An angle starts anywhere and runs either way.

figure, axes = plt.subplots(1, 3, figsize=(9, 2.8), layout="constrained")
plots.points(axes[0], place, rates[:, 0], cmap="magma", size=4)
axes[0].set(title="rate of one cell", aspect="equal")
plots.torus(axes[1], fit, values=phases[:, 0] % (2 * np.pi))
axes[1].set_title("both angles, by true phase")
plots.points(axes[2], place, found.angles[:, 0], cmap=plots.circle_map(), size=4)
axes[2].set(title="first angle, in the box", aspect="equal")
plt.show()

# %%
# How well each angle follows a phase of the grid along one of its axes: 1 if exactly.

waves = np.exp(1j * phases @ [[1, 0, 1], [0, 1, -1]])
for angle in np.exp(1j * found.angles).T:
    alike = [max(abs(np.mean(wave * angle)), abs(np.mean(wave / angle))) for wave in waves.T]
    print(f"{max(alike):.3f} with axis {1 + int(np.argmax(alike))}")
