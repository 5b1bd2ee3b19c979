"""
Towards a million samples
=========================

The time of a fit grows in proportion to the number of samples, or nearly so. This
example fits up to 8,000 samples, so that it takes seconds, and places 100,000. The
times of larger fits were measured elsewhere and are cited here.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

from manifactor import ManifoldFactorizer, datasets, plots

sizes = [2000, 4000, 8000]
seconds = []
for size in sizes:
    X, _ = datasets.sample("torus", size, random_state=0)
    start = time.perf_counter()
    fit = ManifoldFactorizer(random_state=0).fit(X)
    seconds.append(time.perf_counter() - start)
    shapes = " x ".join(factor.topology for factor in fit.factors_)
    print(f"{size:6,} samples: {seconds[-1]:4.1f} s, {fit.verdict_}, {shapes}")

# %%
# Forecast
# --------
#
# The memory of a fit is forecast from the size of the data, before anything is
# computed. A fit that does not fit into the memory is refused.

for size in (10_000, 100_000, 1_000_000):
    try:
        cost = ManifoldFactorizer().forecast_shape(size, 4)
        print(f"{size:9,} samples: {cost}")
    except MemoryError as error:
        print(f"{size:9,} samples: {error}")

# %%
# Measured
# --------
#
# The open circles are the table of :doc:`scale </scale>`: the same torus on two cores
# at 2.4 GHz that had nothing else to do. The dots are the fits above, on the machine
# that made this page, which may have been busy with other work. Small fits take longer
# than in proportion: some of the work does not depend on the number of samples.

# A million samples took 3.6 to 4.2 minutes.
measured = [(1e4, 2.9), (1e5, 16), (1e6, 3.6 * 60), (1e6, 4.2 * 60)]

figure, ax = plt.subplots(figsize=(5, 3.4), layout="constrained")
line = np.array([2e3, 1e6])
ax.loglog(line, 2.9 * line / 1e4, color=plots.GREY, lw=0.8, ls=":")
ax.loglog(
    *zip(*measured, strict=True),
    "o",
    mfc="none",
    color=plots.colour(1),
    label="measured on two idle cores (docs, Scale)",
)
ax.loglog(sizes, seconds, "o", color=plots.colour(0), label="fits of this page")
ax.set(xlabel="samples", ylabel="seconds of a fit")
ax.annotate("in proportion", (2e4, 4.2), color=plots.GREY, rotation=38)
ax.legend(frameon=False)
plt.show()

# %%
# Fit some, place all
# -------------------
#
# Mostly there is no need to fit every sample: more of them make functions finer, and
# 8,000 show two circles well. The others are placed, which is faster and can be done in
# parts. The command line does so by itself.

X_new, truth = datasets.sample("torus", 100_000, random_state=1)
start = time.perf_counter()
placed = fit.locate(X_new)
print(f"100,000 samples placed in {time.perf_counter() - start:.1f} s")

# %%
# The error of the found angles, after the best start and sense:


def errors(found, true):
    """Return the errors of angles in degrees, up to start and sense."""
    true = true[:, 0] + 1j * true[:, 1]
    turned = [np.exp(1j * found) * true, np.exp(-1j * found) * true]
    best = max(turned, key=lambda product: abs(product.mean()))
    return np.degrees(np.angle(best / best.mean()))


figure, ax = plt.subplots(figsize=(5, 2.8), layout="constrained")
for number, (place, true) in enumerate(zip(placed, truth, strict=True)):
    error = errors(place.coordinate, true)
    print(f"circle {number + 1}: half are within {np.median(abs(error)):.2f} degrees")
    ax.hist(
        error,
        bins=np.linspace(-4, 4, 81),
        histtype="step",
        color=plots.colour(number),
        label=f"circle {number + 1}",
    )
ax.set(xlabel="error of the angle, degrees", ylabel="samples of 100,000")
ax.legend(frameon=False)
plt.show()
