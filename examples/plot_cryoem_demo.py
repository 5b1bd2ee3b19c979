"""
Two motions of a molecule in cryo-EM images
===========================================

Each image of a particle is taken once, in one state of the molecule, and is noisy. The
simulated molecule here is an ion channel, seen from one direction. Its upper part
turns, its lower part stretches sideways, and the two do not depend on each other. The
fit sees the images only. It finds both motions, and the place of every image on them.

The command ``manifactor demo`` does the same on files in RELION's format, with a
report. See :doc:`cryo-EM step by step </howto-cryoem>`.
"""

# %%
# The images
# ----------
# The motions can hardly be seen in them by eye. Images of 54 pixels of 4 Angstrom are
# large enough for motions of this size.
import matplotlib.pyplot as plt
import numpy as np

from manifactor import ManifoldFactorizer, datasets, plots
from manifactor.scores import coordinate_correlation

particles = datasets.simulate_particles(
    2500, signal_to_noise=10, size=54, pixel_size=4.0, random_state=0
)
images = particles.images
print(images.shape)

# %%
figure, axes = plt.subplots(figsize=(7, 1.3), layout="constrained")
plots.averages(axes, images[:7])
axes.set_title("seven of the images")
plt.show()

# %%
# The fit
# -------
# A row is an image. Nothing is set by hand.
fit = ManifoldFactorizer(random_state=0).fit(images.reshape(len(images), -1))
print(fit.evidence_)

# %%
# The average images along each factor
# ------------------------------------
# Images of about the same place on a factor are averaged. The noise goes, and with it
# the motion along the other factor, since the two are independent.


def averages_along(factor, n_bins=7):
    """Return the mean image in each of some bins along a factor."""
    end = 2 * np.pi if factor.topology == "circle" else 1.0
    bins = np.floor(factor.coordinate / end * n_bins).clip(0, n_bins - 1)
    return np.stack([images[bins == k].mean(axis=0) for k in range(n_bins)])


figure, rows = plt.subplots(2, figsize=(7, 2.7), layout="constrained")
for number, (axes, factor) in enumerate(zip(rows, fit.factors_, strict=True), 1):
    plots.averages(axes, averages_along(factor))
    axes.set_title(f"factor {number}: {factor.shape}")
plt.show()

# %%
# The truth
# ---------
# The simulation knows the true states. A quarter of a turn shows the same image again,
# since the channel has four equal parts: it is a full circle of states.
circle, stretch = particles.truth
truth = {"circle": circle, "interval": stretch}
for factor in fit.factors_:
    true = truth[factor.topology]
    correlation = coordinate_correlation(factor.coordinate, true)
    print(f"{factor.topology}: correlation with the true motion {correlation:.3f}")
    assert correlation > 0.98

figure, columns = plt.subplots(1, 2, figsize=(6, 2.7), layout="constrained")
along = {"circle": np.degrees(particles.angle), "interval": particles.stretch[:, 0]}
names = {"circle": "true turn, degrees", "interval": "true stretch, Angstrom"}
for axes, factor in zip(columns, fit.factors_, strict=True):
    axes.scatter(along[factor.topology], factor.coordinate, s=2)
    axes.set(xlabel=names[factor.topology], ylabel="coordinate found")
plt.show()

# %%
# Where a circle starts, and which way it runs, is arbitrary, as are the ends of an
# interval.
