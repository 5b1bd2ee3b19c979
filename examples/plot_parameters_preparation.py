"""
preparation
===========

Principal components that are noise are dropped before neighbours are searched:
distances in many noisy columns are all alike. ``preparation="none"`` keeps every
column.
"""

# %%
# A torus, which needs four columns, turned into 100 columns with noise in each.
import time

import matplotlib.pyplot as plt
import numpy as np

from manifactor import ManifoldFactorizer, datasets, plots
from manifactor.scores import score

X, truth = datasets.sample("torus", 1200, noise=0.35, ambient_dimension=100, random_state=0)
fits, seconds = {}, {}
for preparation in ("auto", "none"):
    start = time.process_time()
    fits[preparation] = ManifoldFactorizer(preparation=preparation, random_state=0).fit(X)
    seconds[preparation] = time.process_time() - start

print(fits["auto"].choices_["preparation"].why)
for name, fit in fits.items():
    found = score([factor.embedding for factor in fit.factors_], truth)
    print(f"{name}: {fit.verdict_}, R² {found.worst:.3f}, {seconds[name]:.1f} s")

# %%
# Left: the variance of all principal components. Those that are kept stand out of the
# noise. Right: squared distances of one sample to all others. With noise in 96 more
# columns, no other sample is near any more. Both fits find the factors here, but
# without the preparation it takes longer.
variance = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) ** 2 / len(X)
n_kept = fits["auto"].preparation_.components.shape[1]

figure, (left, right) = plt.subplots(1, 2, figsize=(7.5, 2.8), layout="constrained")
colors = [plots.colour(0) if k < n_kept else "0.7" for k in range(len(variance))]
left.bar(range(1, len(variance) + 1), variance, color=colors, width=1)
left.set(xlabel="principal component", ylabel="variance", yscale="log")
left.set_title(f"kept: {n_kept} of {len(variance)}")

kept = fits["auto"].preparation_(X)
bins = np.linspace(0, 1, 40)
for samples, label, color in ((kept, "auto", 0), (X, "none", 1)):
    squares = ((samples[1:] - samples[0]) ** 2).sum(axis=1)
    right.hist(
        squares / squares.max(), bins, histtype="step", color=plots.colour(color), label=label
    )
right.set(xlabel="squared distance, of the largest", ylabel="samples")
right.legend(frameon=False, loc="upper left")
plt.show()

# %%
# Set it to "none" if columns were reduced already and each of them counts, or to
# compare. ``choices_["preparation"].why`` says what was dropped, and why. Samples in
# more than 64 columns, such as images, are also reduced to the components that
# distances between neighbours depend on.
