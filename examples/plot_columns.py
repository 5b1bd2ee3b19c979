"""
Which columns drive a factor?
=============================

A factor is a coordinate of the samples, and what it means is seen in the columns that
move along it. ``loadings`` gives each column's variance to the factors: to each factor
alone, to two of them together, and to noise.
"""

import matplotlib.pyplot as plt
import numpy as np

from manifactor import ManifoldFactorizer, datasets, plots

# A machine outdoors: the time of day and the load change independently.
rng = np.random.default_rng(0)
day, load = rng.uniform(0, 2 * np.pi, 2000), rng.uniform(0, 1, 2000)
table = {
    "temperature": 3 * np.cos(day - 1),
    "pressure": 3 * np.sin(day),
    "humidity": 1 - np.cos(day) + 0.3 * np.cos(2 * day) + 0.2 * rng.normal(size=2000),
    "strain": 6 * load,
    "flux": 2 * np.sqrt(load + 0.2),
    "heat": load * np.cos(day) + 0.2 * rng.normal(size=2000),
    "drift": 0.1 * rng.normal(size=2000),
}
X = np.column_stack(list(table.values()))  # a data frame has names of its own
fit = ManifoldFactorizer(random_state=0).fit(X, column_names=list(table))
found = fit.loadings(column_names=list(table))
print(fit.verdict_)
print(found)

# %%
# Bars are shares of the variance of the leading columns. ``heat`` depends on both
# factors: how much it changes over the day depends on the load. To the right is the mean
# of each of these columns along each factor.

plots.loadings(found, figure=plt.figure(figsize=(9, 3), layout="constrained"))
plt.show()

# %%
# Images: where does a factor move things?
# ----------------------------------------
#
# Two objects turn beside each other. Each pixel is a column, so that the loadings are
# pictures: how much each factor changes each pixel.

X, truth = datasets.sample("turning_objects", 1500, random_state=0)
fit = ManifoldFactorizer(random_state=0).fit(X.reshape(-1, 16, 24))
print(fit.loadings())
plots.loadings(fit, figure=plt.figure(figsize=(9, 2), layout="constrained"))
plt.show()
