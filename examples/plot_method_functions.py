"""
The method: eigenfunctions of a product
=======================================

On a product of manifolds, the eigenfunctions of the Laplacian are products of those of
the factors, and their eigenvalues are sums. This example shows both on samples of a
rectangle, whose factors are its two sides. :doc:`/method` is the whole story.
"""

# %%
# Samples of a rectangle
# ----------------------
#
# The sides have lengths of about 2.8 and 1.5. The fit computes eigenfunctions of all
# samples and finds those that vary along one side alone: the *pure* ones.

import matplotlib.pyplot as plt
import numpy as np

from manifactor import ManifoldFactorizer, datasets, plots

plt.style.use(plots.STYLE)

X, truth = datasets.sample("rectangle", 2000, random_state=0)
fit = ManifoldFactorizer(random_state=0).fit(X)
long, short = fit.factors_
print(fit.verdict_, long.topology, short.topology)

# %%
# A multiplication table
# ----------------------
#
# The first row has pure functions of the long side, the first column those of the short
# side. Every other cell is the computed eigenfunction that resembles the product of
# its row and its column most, with the absolute cosine between the two. Nothing was
# multiplied to draw them: they are eigenfunctions of the data.

functions, eigenvalues = fit.spectrum_.functions, fit.spectrum_.eigenvalues
constant = functions[:, :1]
along = np.hstack([constant, long.functions[:, :3]])
across = np.hstack([constant, short.functions[:, :2]])


def most_similar(product):
    """Index of the eigenfunction with the largest absolute cosine, and the cosine."""
    cosines = np.abs(product @ functions) / np.linalg.norm(product)
    cosines /= np.linalg.norm(functions, axis=0)
    return cosines.argmax(), cosines.max()


figure, axes = plt.subplots(3, 4, figsize=(7, 3.8), layout="constrained")
least = 1.0
for (row, column), ax in np.ndenumerate(axes):
    index, cosine = most_similar(across[:, row] * along[:, column])
    least = min(least, cosine)
    pure = row == 0 or column == 0
    title = f"eigenvalue {eigenvalues[index]:.1f}"
    title += "" if pure else f", cosine {cosine:.2f}"
    if row == column == 0:
        plots.nothing(ax, "the constant")
        continue
    plots.points(ax, X, functions[:, index], cmap=plots.FUNCTION_MAP, size=5)
    colour = plots.colour(0 if row == 0 else 1) if pure else plots.INK
    ax.set_title(title, color=colour)
    ax.set_aspect("equal")

print(f"least cosine: {least:.2f}")

# %%
# The spectrum as sums
# --------------------
#
# Eigenvalues of products are sums, one of each factor. The first two rows are those of
# the factors, the third one all their sums, and the last one what was computed from the
# samples. Each line of the third row has one near it in the last; the differences are
# errors of finitely many samples.

largest = 35.0
sides = [np.pi**2 / np.ptp(X, axis=0)[column] ** 2 for column in (0, 1)]
squares = np.arange(7) ** 2
first, second = (side * squares for side in sides)
sums = np.sort((first[:, None] + second).ravel())
computed = eigenvalues[eigenvalues < largest]

figure, ax = plt.subplots(figsize=(7, 2), layout="constrained")
rows = [computed, sums[sums < largest], second[second < largest], first[first < largest]]
colours = [plots.INK, plots.GREY, plots.colour(1), plots.colour(0)]
ax.eventplot(rows, linelengths=0.7, linewidths=1.5, colors=colours)
ax.set_yticks(range(4), ["computed", "all sums", "short side", "long side"])
ax.set(xlabel="eigenvalue", xlim=(-0.5, largest))
ax.spines["left"].set_visible(False)
ax.tick_params(axis="y", length=0)

n = len(computed)
error = np.abs(computed[1:] / sums[1:n] - 1)
print(f"{n} computed eigenvalues below {largest:.0f}; {len(sums[sums < largest])} sums")
print(f"median relative difference {np.median(error):.0%}")

plt.show()
