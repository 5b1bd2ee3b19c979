"""
A torus in ten lines
====================

A torus is the product of two circles: two angles that vary independently. Here it lies
in ten columns, turned at random and with a little noise, so that no column shows an
angle. The fit gets the columns and nothing else.
"""

import matplotlib.pyplot as plt
import numpy as np

from manifactor import ManifoldFactorizer, datasets, plots

X, truth = datasets.sample("torus", 3000, ambient_dimension=10, noise=0.02, random_state=0)
fit = ManifoldFactorizer(random_state=0).fit(X)

print("verdict:", fit.verdict_)
for factor in fit.factors_:
    print(factor)

# %%
# Left two of the ten columns, then the two factors, all coloured by a true angle. The
# colours go once around each circle: places on it are the true angles.

true_angles = [np.arctan2(sine, cosine) for cosine, sine in (t.T for t in truth)]

figure, axes = plt.subplots(1, 3, figsize=(8, 2.8), layout="constrained")
plots.points(axes[0], X[:, :2], true_angles[0], cmap=plots.circle_map(), size=4)
axes[0].set(title="two columns", aspect="equal")
for number, factor in enumerate(fit.factors_):
    ax, angle = axes[number + 1], true_angles[number]
    plots.points(ax, factor.embedding, angle, cmap=plots.circle_map(), size=30)
    ax.set(title=f"factor {number + 1}: {factor.shape}", aspect="equal")
plt.show()

# %%
# The verdict and its reasons, in words:

assert fit.verdict_ == "product"
print(fit.evidence_)

# %%
# The found angles
# ----------------
#
# ``coordinates()`` has an angle for each sample and circle. Neither the start of an
# angle nor its sense of rotation is known from the data, so that a found angle is the
# true one up to these two. Against the angle of the *other* circle it shows nothing:
# the factors were separated.

found_angles = np.degrees(fit.coordinates()).T

figure, axes = plt.subplots(2, 2, figsize=(5, 5), sharex=True, sharey=True, layout="constrained")
for i, row in enumerate(axes):
    for j, ax in enumerate(row):
        true = np.degrees(true_angles[j]) % 360
        ax.scatter(true, found_angles[i], s=1, color=plots.colour(i))
        ax.set(xticks=[0, 180, 360], yticks=[0, 180, 360], aspect="equal")
    row[0].set_ylabel(f"found angle {i + 1}")
    axes[1, i].set_xlabel(f"true angle {i + 1}")
plt.show()
