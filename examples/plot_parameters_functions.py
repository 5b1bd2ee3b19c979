"""
n_functions
===========

The number of eigenfunctions of the Laplacian that are computed. The default is one for
every 8 samples, 100 at most, and up to 400 where the data have a dimension that no
factor explains.
"""

# %%
# A strip that is seven times as long as it is wide. The lowest six functions vary along
# its length only; the seventh and eighth have equal eigenvalues, and one of them is the
# first to vary across it.
import warnings

import matplotlib.pyplot as plt

from manifactor import ManifoldFactorizer, datasets, plots

X, truth = datasets.sample("strip7", 2000, random_state=0)
numbers = [6, 24, 100]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # six functions show one factor
    fits = [
        ManifoldFactorizer(n_functions=n, sense="geometry", random_state=0).fit(X) for n in numbers
    ]

figure, axes = plt.subplots(1, 3, figsize=(8, 2.8), layout="constrained")
for ax, n, fit in zip(axes, numbers, fits, strict=True):
    plots.spectrum(ax, fit)
    ax.set(xlim=(None, 25), ylim=(None, 22))
    factors = "1 factor" if fit.n_factors_ == 1 else f"{fit.n_factors_} factors"
    ax.set_title(f"{n} functions: {factors}, {fit.verdict_}", fontsize=9)
    print(f"{n:4} functions: {fit.verdict_}, {factors}")
for ax in axes:
    ax.get_legend().remove()
axes[0].legend(*axes[2].get_legend_handles_labels(), loc="upper left", fontsize=8)
plt.show()

# %%
# The constant function is one of them. With 6 functions, the width of the strip cannot
# be seen. With 24 it is found, but few products are there to confirm it. With the
# default of 100 all tests are passed.
#
# Raise ``n_functions`` if factors differ more in size and there are samples enough, 8
# or more for each function; lower it to save time on millions of samples. Where the
# samples are a sum of one function of each factor, ``method="sum"`` needs no functions,
# and sizes may differ more.
