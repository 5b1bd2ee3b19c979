"""
The method: gradients and peeling
=================================

The default method needs no products to be found one by one. It uses a property of all
functions of different factors: their gradients are orthogonal everywhere. This example
shows why that settles repeated eigenvalues, where single eigenfunctions are mixtures,
and how further factors are peeled off.
"""

# %%
# A square: eigenfunctions that mix the factors
# ---------------------------------------------
#
# Both sides of a square have the same eigenvalues. A computed eigenfunction may then be
# any combination of one of each side, and its products are no eigenfunctions. The two
# mixtures on the left are turned by 45 degrees, the worst case. Their gradients (black
# and green arrows) meet at any angle. In the basis that the fit finds, on the right,
# gradients are orthogonal everywhere, whatever basis was computed.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import NearestNeighbors

from manifactor import ManifoldFactorizer, datasets, plots

plt.style.use(plots.STYLE)


def gradients(X, functions, places):
    """Local regression gradients, (n_places, n_columns, n_functions)."""
    near = NearestNeighbors(n_neighbors=60).fit(X).kneighbors(places)[1]
    slopes = [LinearRegression().fit(X[i], functions[i]).coef_.T for i in near]
    return np.stack(slopes)


def squared_cosines(one, other):
    """Squared cosines between two fields of gradients."""
    dots = (one * other).sum(axis=1)
    return dots**2 / ((one**2).sum(axis=1) * (other**2).sum(axis=1))


X, truth = datasets.sample("square", 2000, random_state=0)
fit = ManifoldFactorizer(random_state=0).fit(X)
pure = np.column_stack([factor.functions[:, 0] for factor in fit.factors_])
mixed = pure @ np.array([[1, -1], [1, 1]]) / np.sqrt(2)

low, high = X.min(axis=0), X.max(axis=0)
steps = np.linspace(0.15, 0.85, 5)
grid = low + (high - low) * np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)

figure, axes = plt.subplots(1, 4, figsize=(7.5, 2.2), layout="constrained")
titles = ["a mixture", "another mixture", "factor 1", "factor 2"]
for pair, basis in enumerate((mixed, pure)):
    slopes = gradients(X, basis, grid)
    for column in (0, 1):
        ax = axes[2 * pair + column]
        plots.function(ax, X, basis[:, column], title=titles[2 * pair + column])
        for which, colour in ((0, plots.INK), (1, plots.CATEGORIES[2])):
            ax.quiver(*grid.T, *slopes[:, :, which].T, color=colour, width=0.01)
        ax.set_aspect("equal")
    angle = squared_cosines(slopes[:, :, 0], slopes[:, :, 1]).mean()
    print(f"{('mixtures', 'factors')[pair]}: mean squared cosine {angle:.2f}")

# %%
# The angles between all functions
# --------------------------------
#
# Mean squared cosines between gradients of the factors' functions form blocks, white
# between different factors. The coordinates follow from the lowest function of each
# block; here they are drawn over the true sides.

figure, axes = plt.subplots(1, 3, figsize=(7.5, 2.5), layout="constrained")
plots.angles(axes[0], fit).set_title("angles between gradients")
for number, factor in enumerate(fit.factors_):
    explained = [np.corrcoef(factor.coordinate, side[:, 0])[0, 1] ** 2 for side in truth]
    side = int(np.argmax(explained))
    ax = axes[1 + number]
    ax.plot(truth[side], factor.coordinate, ".", ms=2, color=plots.colour(number))
    ax.set(xlabel=f"true side {side + 1}", ylabel=f"coordinate on factor {number + 1}")
    print(f"factor {number + 1}: R^2 with the true side {max(explained):.3f}")

# %%
# Peeling: what one factor leaves
# -------------------------------
#
# On a rectangle, the lowest function belongs to the long side, factor 1. The energy of
# another eigenfunction along it is the mean squared part of its gradient in the same
# direction. It is quantised: in units of the lowest eigenvalue it is 0, 1, 4, 9, ...
# Functions at 0 do not vary along the long side: they belong to the other factor.

X, truth = datasets.sample("rectangle", 4000, random_state=0)
fit = ManifoldFactorizer(random_state=0).fit(X)
functions = fit.spectrum_.functions[:, 1:14]
eigenvalues = fit.spectrum_.eigenvalues[1:14]

slopes = gradients(X, functions, X[::8])
direction = slopes[:, :, 0]
direction = direction / np.linalg.norm(direction, axis=1, keepdims=True)
energy = (np.einsum("pc,pcf->pf", direction, slopes) ** 2).mean(axis=0)
energy /= (functions**2).mean(axis=0) * eigenvalues[0]

figure, ax = plt.subplots(figsize=(5, 2.8), layout="constrained")
for square in range(5):
    ax.axhline(square**2, color="lightgrey", lw=0.8, zorder=0)
alone = energy < 0.5
label = "vary along factor 1"
ax.plot(eigenvalues[~alone], energy[~alone], "o", mfc="none", mec="grey", label=label)
label = "functions of the other factor alone"
ax.plot(eigenvalues[alone], energy[alone], "o", color=plots.colour(1), label=label)
ax.legend(loc="upper left", edgecolor="none", framealpha=1)
ax.set(xlabel="eigenvalue", ylabel="energy along factor 1", yticks=np.arange(5) ** 2)
print("eigenvalues of the other factor:", eigenvalues[alone].round(1))

plt.show()
