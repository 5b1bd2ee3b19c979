"""
fit_samples
===========

The number of samples that are fitted. By default these are all samples of an array in
memory, and 20,000 of an array on disk. Samples that were not fitted are placed by
``locate`` or ``coordinates``.
"""

# %%
# Fits of random parts of 8,000 samples of a noisy torus. Each then places 2,000 others.
# The sense is fixed, so that all fits are of one kind.
import time
import warnings

import matplotlib.pyplot as plt

from manifactor import ManifoldFactorizer, datasets, plots
from manifactor.scores import score

X, truth = datasets.sample("torus", 10_000, noise=0.1, random_state=0)
new = slice(8000, None)
numbers = [150, 300, 600, 1200, 2400]
fits, errors, seconds = [], [], []
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # that 150 samples are few
    for number in numbers:
        start = time.process_time()
        factorizer = ManifoldFactorizer(sense="geometry", random_state=0)
        fit = factorizer.fit(X[:8000], fit_samples=number)
        seconds.append(time.process_time() - start)
        places = [placed.embedding for placed in fit.locate(X[new])]
        found = score(places, [latent[new] for latent in truth])
        fits.append(fit)
        errors.append(1 - found.worst if found.number_right else float("nan"))

for number, fit, off in zip(numbers, fits, errors, strict=True):
    print(f"{number:5} samples: {fit.verdict_}, error of new samples {off:.4f}")

# %%
# Filled points are fits with the verdict "product". A fit of which the number of
# factors is wrong has no point.
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 2.8), layout="constrained")
left.plot(numbers, errors, color=plots.colour(0))
left.set(xscale="log", ylim=(0, None))
for number, fit, off in zip(numbers, fits, errors, strict=True):
    face = plots.colour(0) if fit.verdict_ == "product" else "none"
    left.plot(number, off, "o", color=plots.colour(0), markerfacecolor=face)
left.set(xlabel="fit_samples", ylabel="1 - R² of new samples")
right.plot(numbers, seconds, "o-", color=plots.colour(1))
right.set(xscale="log", ylim=(0, None))
right.set(xlabel="fit_samples", ylabel="CPU seconds of the fit")
for ax in (left, right):
    ax.set_xticks(numbers, labels=numbers)
    ax.minorticks_off()
plt.show()

# %%
# For two dimensions, one or two thousand samples are enough: the noise of the new
# samples then decides about the error. More dimensions need more samples. Lower
# ``fit_samples`` to save time on a large array, and raise it where the verdict is
# "none" because samples are too few; ``evidence_.advice`` then says how many would
# help.
