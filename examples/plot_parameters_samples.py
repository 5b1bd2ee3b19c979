"""
fit_samples
===========

The number of samples that are fitted. All samples in memory are, by default; of an array
on disk, 20,000. Samples that were not fitted are placed by ``locate`` or
``coordinates``.
"""

# %%
# Fits of random parts of 10,000 samples of a noisy torus. Each then places 2,000 others.
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
    warnings.simplefilter("ignore")  # 150 samples are few, and a warning says so
    for number in numbers:
        start = time.process_time()
        fit = ManifoldFactorizer(random_state=0).fit(X[:8000], fit_samples=number)
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
left.loglog(numbers, errors, color=plots.colour(0))
for number, fit, off in zip(numbers, fits, errors, strict=True):
    face = plots.colour(0) if fit.verdict_ == "product" else "white"
    left.plot(number, off, "o", color=plots.colour(0), markerfacecolor=face)
left.set(xlabel="fit_samples", ylabel="1 - R² of new samples")
right.loglog(numbers, seconds, "o-", color=plots.colour(1))
right.set(xlabel="fit_samples", ylabel="CPU seconds of the fit")
for ax in (left, right):
    ax.set_xticks(numbers, labels=numbers)
    ax.minorticks_off()
plt.show()

# %%
# For two dimensions, one or two thousand samples are enough. Noise then decides about
# the error, and more samples hardly help. More dimensions need more samples. Lower
# ``fit_samples`` to save time on a large array, and raise it where the verdict is
# "none" because samples are too few; ``evidence_.advice`` then says how many would help.
