"""
A weak factor in images
=======================

Images of two objects that turn independently. The right one is dim: its images have a
thirtieth of the variance of the left one's. Principal components are all about the
bright object; the fit finds both angles.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

from manifactor import ManifoldFactorizer, datasets, plots, scores

X, truth = datasets.sample("two_turning_30", 2000, random_state=0)
images = X.reshape(len(X), 24, 24)

figure, axes = plt.subplots(1, 6, figsize=(8, 1.5), layout="constrained")
for ax, image in zip(axes, images, strict=False):
    # The square root shows the dim object, too.
    ax.imshow(np.sqrt(image), cmap="gray")
    ax.set_axis_off()
plt.show()

# %%
# What the fit says
# -----------------
#
# An image is the sum of the images of the objects. In this sense the data are a
# product, although the dim object hardly changes the distances between images.

fit = ManifoldFactorizer(random_state=0).fit(X)
assert fit.verdict_ == "product"
print("verdict:", fit.verdict_, "in the sense:", fit.evidence_.sense)
for factor in fit.factors_:
    print(factor)

# %%
# How much of each true angle do the factors tell, and how much do as many principal
# components as the fit has columns? R^2 of nearest-neighbour regression:

components = PCA(4).fit_transform(X)
places = [factor.embedding for factor in fit.factors_]
for name, true in zip(["bright", "dim"], truth, strict=True):
    found = [scores.regression_r2(place, true) for place in places]
    linear = scores.regression_r2(components, true)
    print(
        f"{name:6}: factor 1 {found[0]:.2f}, factor 2 {found[1]:.2f}, "
        f"4 principal components {linear:.2f}"
    )

# %%
# Truth and found angles, for both objects. The angles are right up to their start and
# sense of rotation.

figure, axes = plt.subplots(1, 2, figsize=(6, 3.2), layout="constrained")
for number, (ax, true) in enumerate(zip(axes, truth, strict=True)):
    angle = np.degrees(np.arctan2(true[:, 1], true[:, 0])) % 360
    found = np.degrees(fit.factors_[number].coordinate)
    ax.scatter(angle, found, s=1, color=plots.colour(number))
    ax.set(xticks=[0, 180, 360], yticks=[0, 180, 360], aspect="equal")
    ax.set(title=["bright object", "dim object"][number])
    ax.set(xlabel="true angle, degrees", ylabel="found angle")
plt.show()

# %%
# What moves along a factor
# -------------------------
#
# Mean images of six ranges of a found angle, less the mean of all images. Along the
# first factor the left object turns, along the second the right one. The other object
# is averaged out, for the most part.

figure, axes = plt.subplots(2, 1, figsize=(6.6, 2.5), layout="constrained")
for number, (ax, factor) in enumerate(zip(axes, fit.factors_, strict=True)):
    part = (factor.coordinate / (2 * np.pi) * 6).astype(int) % 6
    means = np.array([images[part == k].mean(axis=0) for k in range(6)])
    plots.averages(ax, means - images.mean(axis=0))
    ax.set_ylabel(f"factor {number + 1}", color=plots.colour(number))
plt.show()
