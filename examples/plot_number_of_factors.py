"""
How many factors?
=================

The number of factors is found, not given. Three data sets have one, two and three of
them: a sphere, a cylinder (an interval and a circle), and a product of three circles of
equal size.
"""

import warnings

import matplotlib.pyplot as plt

from manifactor import ManifoldFactorizer, NoProductStructureWarning, datasets, plots

shapes = {"sphere": "sphere", "cylinder": "cylinder", "three circles": "equal_torus3"}
samples = {name: datasets.sample(shape, 2000, random_state=0)[0] for name, shape in shapes.items()}

with warnings.catch_warnings():
    # A sphere is no product, which is also said by a warning.
    warnings.simplefilter("ignore", NoProductStructureWarning)
    fits = {name: ManifoldFactorizer(random_state=0).fit(X) for name, X in samples.items()}

for name, fit in fits.items():
    found = ", ".join(factor.shape for factor in fit.factors_)
    print(f"{name:13} {fit.verdict_:8} {fit.n_factors_}: {found}")

# %%
# What shows it
# -------------
#
# Functions of different factors (:doc:`/method`) vary in directions that are orthogonal
# at every sample. The upper row has the mean squared cosine between the gradients of
# the lowest functions. Between factors it is white. The functions of the sphere do not
# divide into such groups.
#
# The lower row has the lowest eigenvalues. Those of single factors are filled, in the
# colour of their factor. The others belong to products of functions of several factors:
# their eigenvalues are sums, and they are no factors of their own. Functions with equal
# eigenvalues may be mixtures: two of the lowest six of three equal circles are.

figure, axes = plt.subplots(2, 3, figsize=(8, 5), layout="constrained")
for (above, below), (name, fit) in zip(axes.T, fits.items(), strict=True):
    plots.angles(above, fit)
    above.set_title(f"{name}: {fit.n_factors_}")
    plots.spectrum(below, fit)
    below.set(xlim=(None, 40), ylim=(None, fit.spectrum_.eigenvalues[40]))
    below.get_legend().remove()
plt.show()

# %%
# The numbers behind it
# ---------------------
#
# ``splits_`` has a number ``q`` for each further group into which the lowest functions
# may divide. It is near 0 where they do and near 1 where they do not. How far noise may
# raise it is known from two halves of the samples.

for name, fit in fits.items():
    first = fit.splits_[0]
    values = zip(first.q[:3], first.noise[:3], strict=True)
    shown = ", ".join(f"{q:.2f} (noise {noise:.2f})" for q, noise in values)
    print(f"{name:13} {shown}")

# %%
# Two values are near 0 for three circles, one for the cylinder, none for the sphere.
# The verdict rests on more tests than this one. All of them are in ``evidence_.tests``,
# here those of the three circles:

for test in fits["three circles"].evidence_.tests:
    print(f"{test.name:17} {test.interval:>16}   must be {test.rule}")

# %%
# Another number
# --------------
#
# ``n_factors`` asks for a number. With fewer than there are, several count as one. More
# than the data show are refused. The second fit starts from the neighbours and
# functions of the first.

again = ManifoldFactorizer(2, random_state=0).fit(samples["three circles"])
print("two factors:", ", ".join(factor.shape for factor in again.factors_))

try:
    again.set_params(n_factors=4).fit(samples["three circles"])
except ValueError as error:
    print("four factors:", error)
