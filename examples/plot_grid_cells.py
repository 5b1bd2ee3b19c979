"""
Neurons: a module of grid cells
===============================

A grid cell fires wherever an animal passes a vertex of a hexagonal grid. The cells of a
module have grids of one spacing and orientation, shifted against each other. The states
of such a population therefore lie on a torus. Is it a product of two circles? No: the
torus of a hexagonal grid has three equal axes, 60 degrees apart, and no two of them are
orthogonal. The fit should leave it in one piece, and divide from it what is
independent: here, the direction of the head.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from data_sets import grid_and_direction, grid_rates
from manifactor import ManifoldFactorizer, NoProductStructureWarning, plots
from manifactor.scores import score

# %%
# The rate of one cell while the animal runs through a box, and the counts of 160 cells
# in some time windows: 120 grid cells, and 40 head direction cells.

x, y = np.meshgrid(np.linspace(0, 3, 120), np.linspace(0, 3, 120))
# Phases along two axes of the grid, 60 degrees apart.
phases = (
    2 * np.pi * np.column_stack([x.ravel() + y.ravel() / np.sqrt(3), 2 * y.ravel() / np.sqrt(3)])
)
rate = grid_rates(phases, np.array([[1.0, 1.0]]))

counts, truth = grid_and_direction(2000)
grid_counts = counts[:, :120]

figure, axes = plt.subplots(1, 2, figsize=(7, 2.8), width_ratios=[1, 1.6], layout="constrained")
axes[0].imshow(rate.reshape(x.shape), origin="lower", cmap="magma", extent=(0, 3, 0, 3))
axes[0].set(title="rate of one grid cell", xlabel="x, in spacings", ylabel="y")
axes[1].imshow(counts[:100].T, aspect="auto", cmap="magma")
axes[1].set(title="spike counts", xlabel="time window", ylabel="cell")
plt.show()

# %%
# The module alone is one factor
# ------------------------------
#
# Square roots of the counts have the same noise at all rates.

with warnings.catch_warnings():
    # That the module is no product is also said by a warning.
    warnings.simplefilter("ignore", NoProductStructureWarning)
    alone = ManifoldFactorizer(random_state=0).fit(np.sqrt(grid_counts[:1000]))
print("verdict:", alone.verdict_)
print(alone.factors_[0])
print(alone.evidence_.reason)

# %%
# The verdict "none" is right, and so is the dimension. With less noise the fit also tells the
# angle of the torus: :ref:`sphx_glr_gallery_plot_grid_cell_lattice.py`.
#
# With head direction cells it is a product
# -----------------------------------------

fit = ManifoldFactorizer(random_state=0).fit(np.sqrt(counts))
print("verdict:", fit.verdict_)
for factor in fit.factors_:
    print(factor)

# %%
# One factor is the circle of directions. The other one has two dimensions: the torus of
# the module, undivided. R^2 of the true phases and directions (rows) on the factors:

print(score([factor.embedding for factor in fit.factors_], truth).r2.round(3))

circle, torus = sorted(fit.factors_, key=lambda factor: factor.dimension)
grid, direction = truth

figure, axes = plt.subplots(1, 3, figsize=(8, 2.9), layout="constrained")
plots.place(axes[0], circle.embedding, direction)
axes[0].set_title("circle, by head direction")
for ax, phase, axis in ((axes[1], grid[:, :2], 1), (axes[2], grid[:, 2:], 2)):
    angle = np.arctan2(phase[:, 1], phase[:, 0])
    plots.points(ax, torus.embedding[:, :2], angle, cmap=plots.circle_map())
    ax.set_title(f"torus, by grid axis {axis}")
plt.show()
