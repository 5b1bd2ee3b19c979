"""
n_functions
===========

The number of eigenfunctions of the Laplacian that are computed. The default is one for
every 8 samples, 100 at most, and up to 400 where the data have a dimension that no
factor explains.
"""

# %%
# A strip that is ten times as long as it is wide. The lowest nine functions vary along
# its length only; the tenth is the first that varies across it.
import warnings

import matplotlib.pyplot as plt

from manifactor import ManifoldFactorizer, datasets, plots

X, truth = datasets.sample("strip10", 2000, random_state=0)
numbers = [8, 24, 100]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # eight functions show one factor
    fits = [
        ManifoldFactorizer(n_functions=n, sense="geometry", random_state=0).fit(X)
        for n in numbers
    ]

figure, axes = plt.subplots(1, 3, figsize=(8, 2.8), layout="constrained")
for ax, n, fit in zip(axes, numbers, fits, strict=True):
    plots.spectrum(ax, fit)
    factors = "1 factor" if fit.n_factors_ == 1 else f"{fit.n_factors_} factors"
    ax.set_title(f"{n} functions: {factors}")
    print(f"{n:4} functions: {fit.verdict_}, {factors}")
plt.show()

# %%
# With 8 functions, the width of the strip cannot be seen. The default of 100 is enough
# for sizes that differ about tenfold. Raise ``n_functions`` if factors differ more and
# there are samples enough, 8 or more for each function; lower it to save time on
# millions of samples. Where the samples are a sum of one function of each factor,
# ``method="sum"`` needs no functions, and sizes may differ more.
