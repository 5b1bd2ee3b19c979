"""
The method: triplets, the algorithm of the paper
================================================

The paper finds factors by *triplets*: eigenfunctions of which one is the product of the
other two. Two functions that make a product belong to different factors. This example
draws the triplets of a rectangle and the cut that divides the functions.
"""

# %%
# One triplet
# -----------
#
# ``method="triplets"`` looks for products among the eigenfunctions. A triplet counts if
# the eigenvalue of the third function is about the sum of the other two, and if the
# product of these two is similar to it.

import matplotlib.pyplot as plt
import numpy as np

from manifactor import ManifoldFactorizer, datasets, plots

plt.style.use(plots.STYLE)

X, truth = datasets.sample("rectangle", 2000, random_state=0)
fit = ManifoldFactorizer(2, method="triplets", random_state=0).fit(X)
functions, eigenvalues = fit.spectrum_.functions, fit.spectrum_.eigenvalues

triplets = fit.triplets_
best = triplets.products.argmin()
one, other = triplets.parts[best]
product = triplets.products[best]

figure, axes = plt.subplots(1, 4, figsize=(7, 1.6), layout="constrained")
shown = {
    f"f{one}, eigenvalue {eigenvalues[one]:.1f}": functions[:, one],
    f"f{other}, eigenvalue {eigenvalues[other]:.1f}": functions[:, other],
    f"f{one} times f{other}": functions[:, one] * functions[:, other],
    f"f{product}, eigenvalue {eigenvalues[product]:.1f}": functions[:, product],
}
for ax, (title, values) in zip(axes, shown.items(), strict=True):
    plots.points(ax, X, values, cmap=plots.FUNCTION_MAP, size=5)
    ax.set(title=title, aspect="equal")

print(f"cosine between f{one} f{other} and f{product}: {triplets.similarity[best]:.2f}")

# %%
# The graph and its cut
# ---------------------
#
# Every triplet is an edge between two functions that belong to different factors. The
# maximum cut divides the functions into two groups with as much of the edges' weight as
# possible between them. On a product, all edges cross: the graph is bipartite.

found, weights = triplets.separability()
groups = fit.cut_.labels
height = np.zeros(len(found))
for group in (0, 1):
    members = groups == group
    height[members] = -np.linspace(0, 1, members.sum())

figure, (ax, right) = plt.subplots(1, 2, figsize=(7, 2.8), layout="constrained")
for i, j in zip(*np.nonzero(np.triu(weights)), strict=True):
    ax.plot(groups[[i, j]], height[[i, j]], color=plots.GREY, lw=2 * weights[i, j] ** 4)
for group, side in ((0, "right"), (1, "left")):
    members = groups == group
    ax.plot(groups[members], height[members], "o", color=plots.colour(group), ms=7)
    for i in np.flatnonzero(members):
        name = {"ha": side, "va": "center", "textcoords": "offset points"}
        ax.annotate(f"f{found[i]}", (group, height[i]), (16 * group - 8, 0), **name)
ax.set(xlim=(-0.4, 1.4), title="an edge for each triplet")
ax.axis("off")

first, second = (factor.functions[:, 0] for factor in fit.factors_)
plots.points(right, X, first, cmap=plots.FUNCTION_MAP, size=3)
right.tricontour(*X.T, second, levels=8, colors=plots.INK, linewidths=0.6)
right.set(title="lowest functions: one as colour, one as lines", aspect="equal")

inside = sum(weights[i, j] for i, j in np.argwhere(weights) if groups[i] == groups[j])
print(f"{len(triplets)} triplets; weight of edges inside a group: {inside:.2f}")
print(fit.verdict_)

plt.show()
