"""
n_factors
=========

The number of factors is found by default. A number that is smaller than what the data
show takes the smallest factors together; a larger one is refused.
"""

# %%
# A box with three sides, fitted with each number.
import matplotlib.pyplot as plt

from manifactor import ManifoldFactorizer, datasets, plots
from manifactor.scores import score

X, truth = datasets.sample("cube", 1500, random_state=0)
numbers = ["auto", 2, 1]
fits = [ManifoldFactorizer(number, random_state=0).fit(X) for number in numbers]

for number, fit in zip(numbers, fits, strict=True):
    print(f"n_factors={number}: {[factor.shape for factor in fit.factors_]}")

try:
    ManifoldFactorizer(4, random_state=0).fit(X)
except ValueError as error:
    print(error)

# %%
# Each panel has the R² with which a found factor (column) predicts a true side (row).
# "auto" finds all three. With ``n_factors=2``, two sides are one factor of two
# dimensions. With 1, nothing is divided: the factor is the whole box, and no product is
# looked for.
figure, axes = plt.subplots(
    1, 3, figsize=(6.5, 2.6), width_ratios=[fit.n_factors_ for fit in fits], layout="constrained"
)
for ax, number, fit in zip(axes, numbers, fits, strict=True):
    r2 = score([factor.embedding for factor in fit.factors_], truth).r2
    plots.matrix(ax, r2.clip(0, 1), numbers=True)
    ax.set_title(f"n_factors={number!r}", fontsize=9)
    ax.set_xticks(range(fit.n_factors_), range(1, fit.n_factors_ + 1))
    ax.set_xlabel("factor")
axes[0].set_yticks(range(3), ["side of 2.8", "side of 1.5", "side of 7"])
plt.show()

# %%
# Give a number if you know it from elsewhere, or to keep two motions together that
# belong together. If the verdict is "none" although you expect several factors, a
# number does not help: see :doc:`/partial-or-none`.
