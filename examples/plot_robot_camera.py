"""
A robot arm and a camera
========================

A camera looks at a robot arm with two joints. Each image has 576 noisy pixels; behind
it are two angles. The arm is no isometric product: when the upper arm turns, it takes
the forearm along, and pixels where the links cover each other do not add up. The fit
finds the direction of each link all the same.
"""

import textwrap

import matplotlib.pyplot as plt
import numpy as np

from manifactor import ManifoldFactorizer, datasets, plots
from manifactor.scores import score

X, truth = datasets.sample("arm_images", 2000, random_state=0)
images = X.reshape(len(X), 24, 24)

figure, axes = plt.subplots(1, 6, figsize=(8, 1.5), layout="constrained")
for ax, image in zip(axes, images, strict=False):
    ax.imshow(image, cmap="gray", origin="lower")
    ax.set_axis_off()
plt.show()

# %%
fit = ManifoldFactorizer(random_state=0).fit(X)
for factor in fit.factors_:
    print(factor)
print(textwrap.fill(str(fit.evidence_), 88))
