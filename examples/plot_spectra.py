"""
Spectra with two moving peaks
=============================

Each spectrum has two peaks, and each peak moves by itself: with temperature, with
concentration, with the state of the sample. Their ranges overlap, and every channel
has noise. PCA followed by ICA, the usual tool for mixtures, looks for a few fixed
spectra whose amounts vary. A peak that moves is no fixed spectrum. manifactor finds
both positions.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA, FastICA

from data_sets import moving_peaks
from manifactor import ManifoldFactorizer, plots
from manifactor.scores import regression_r2

X, truth = moving_peaks(2000)

figure, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
for number, spectrum in enumerate(X[:5]):
    ax.plot(spectrum + number, color=plots.INK, lw=0.8)
ax.set(xlabel="channel", yticks=[], title="five of 2000 spectra")
plt.show()

# %%
# The fit gets the spectra as they are, and finds two intervals.

fit = ManifoldFactorizer(random_state=0).fit(X)
print("verdict:", fit.verdict_, "in the sense:", fit.evidence_.sense)
for factor in fit.factors_:
    print(factor)

# %%
# PCA and FastICA are told that there are two components.

two = PCA(2).fit_transform(X)
components = FastICA(2, random_state=0).fit_transform(two)

# %%
# Each true position over the recovered one that tells most about it. R^2 is that of
# nearest-neighbour regression of the true position on the recovered column.


def best_column(columns, true):
    """Return the column that tells most about the truth, and its R^2."""
    r2 = [regression_r2(column[:, None], true) for column in columns.T]
    return columns[:, np.argmax(r2)], max(r2)


methods = {"PCA + FastICA": components, "manifactor": fit.coordinates()}
figure, axes = plt.subplots(2, 2, figsize=(6, 5.4), layout="constrained")
for row, (name, columns) in zip(axes, methods.items(), strict=True):
    for number, (ax, true) in enumerate(zip(row, truth, strict=True)):
        column, r2 = best_column(columns, true)
        ax.scatter(true[:, 0], column, s=1, color=plots.colour(number))
        ax.set(title=f"{name}: R$^2$ {r2:.2f}", xlabel=f"true place of peak {number + 1}")
    row[0].set_ylabel("recovered")
plt.show()

# %%
# With more components, some of them follow a peak better. But no single one is a
# position, and nothing says which of them belong to one peak.

for count in (4, 8):
    components = FastICA(count, random_state=0).fit_transform(X)
    found = [best_column(components, true)[1] for true in truth]
    print(f"{count} components: largest R^2 {found[0]:.2f} and {found[1]:.2f}")

# %%
# What a factor is, is seen in the mean spectra along it: one peak moves, and the other
# one is smeared out by its own motion.

figure, axes = plt.subplots(1, 2, figsize=(7, 2.6), sharey=True, layout="constrained")
for number, (ax, factor) in enumerate(zip(axes, fit.factors_, strict=True)):
    part = np.minimum((6 * factor.coordinate).astype(int), 5)
    for k in range(6):
        ax.plot(X[part == k].mean(axis=0), color=plt.cm.viridis(k / 5))
    ax.set(title=f"along factor {number + 1}", xlabel="channel")
plt.show()
