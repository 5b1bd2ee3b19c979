"""
sense and method
================

Data can be a product in several senses. By default all are tried, the geometry first,
until one passes every test. ``sense`` tries one only, which saves time and says what is
meant.
"""

# %%
# Three data sets: a torus; images of two turning objects, which add up; and a map that
# is stretched differently at each place. Each is fitted in each sense.
import warnings

import matplotlib.pyplot as plt
import numpy as np

from manifactor import ManifoldFactorizer, datasets

shapes = {"torus": 1000, "turning_objects": 500, "exponential_map": 600}
senses = ["geometry", "sum", "volume", "density"]
verdicts = ["none", "partial", "product"]

table = np.zeros((len(shapes), len(senses)), dtype=int)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # most of these are no products in most senses
    for row, (shape, n_samples) in enumerate(shapes.items()):
        X, truth = datasets.sample(shape, n_samples, random_state=0)
        for column, sense in enumerate(senses):
            fit = ManifoldFactorizer(sense=sense, random_state=0).fit(X)
            table[row, column] = verdicts.index(fit.verdict_)
            print(f"{shape}, {sense}: {fit.verdict_}, {fit.n_factors_} factor(s)")

figure, ax = plt.subplots(figsize=(5.5, 2.4), layout="constrained")
ax.imshow(table, cmap="Blues", vmin=0, vmax=3, aspect="auto")
for (row, column), verdict in np.ndenumerate(table):
    ink = "white" if verdict == 2 else "#222222"
    ax.text(column, row, verdicts[verdict], ha="center", va="center", color=ink)
ax.set_xticks(range(len(senses)), senses)
ax.set_yticks(range(len(shapes)), [shape.replace("_", " ") for shape in shapes])
ax.tick_params(length=0)
ax.spines[:].set_visible(False)
plt.show()

# %%
# A torus is a product in every sense. Images of independent objects are a sum, and
# nothing else. The stretched map is a product in the sense of volumes: samples that
# were drawn independently show the stretch by their density.
#
# Set ``sense`` if you know what the data are: "sum" for images or spectra of
# independent parts, "geometry" where every distance means something. ``method="sum"``
# is the same as ``sense="sum"`` and skips the functions, which is faster;
# ``method="triplets"`` is the algorithm of the paper.
