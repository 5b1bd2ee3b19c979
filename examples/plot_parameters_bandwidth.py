"""
bandwidth
=========

Two samples at a distance :math:`d` have the affinity :math:`\\exp(-d^2/\\varepsilon)`;
``bandwidth`` is :math:`\\varepsilon`, in squared units of the data. The default is read
off a curve, and reaches the neighbours of nearly all samples.
"""

# %%
# 1,000 samples of a torus, with the automatic bandwidth and with multiples of it.
import warnings

import matplotlib.pyplot as plt

from manifactor import ManifoldFactorizer, datasets, plots
from manifactor.scores import score

X, truth = datasets.sample("torus", 1000, random_state=0)
automatic = ManifoldFactorizer(random_state=0).fit(X)
print(automatic.choices_["bandwidth"])

multiples = [1 / 32, 1 / 8, 1 / 2, 1, 2, 8]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what is not found with bad bandwidths
    fits = [
        ManifoldFactorizer(bandwidth=multiple * automatic.bandwidth_, random_state=0).fit(X)
        for multiple in multiples
    ]

# %%
# Left: the curve. For samples of a :math:`d`-dimensional manifold its highest point is
# near :math:`d`, here 2, and the kernel sees the manifold best there. Right: the error
# of the factors, where there are two of them. Filled points have the verdict "product".
figure, (left, right) = plt.subplots(1, 2, figsize=(7.5, 3), layout="constrained")
plots.bandwidth(left, automatic)
for multiple, fit in zip(multiples, fits, strict=True):
    found = score([factor.embedding for factor in fit.factors_], truth)
    print(f"{multiple:7.4f} x automatic: {fit.verdict_}, {fit.n_factors_} factor(s)")
    if not found.number_right:
        right.axvspan(multiple / 1.6, multiple * 1.6, color=plots.GREY, alpha=0.2)
        right.text(multiple, 0.003, "one\nfactor", ha="center", fontsize=8)
        continue
    face = plots.colour(0) if fit.verdict_ == "product" else "none"
    right.plot(multiple, 1 - found.worst, "o", color=plots.colour(0), mfc=face)
right.set(xscale="log", ylim=(0, 0.006))
right.set(xlabel="multiple of the automatic bandwidth", ylabel="1 - R²")
plt.show()

# %%
# Too small a bandwidth is the one fatal choice: the walk stands still. A larger one
# blurs, and the verdict becomes "partial" before the factors are wrong. A number for
# ``bandwidth`` also switches the other senses of a product off.
#
# Change it to compare with a computation of your own, or with the paper. For samples of
# very uneven density, ``bandwidth="local"`` takes the distance to the 8th neighbour as
# the unit of length at each sample.
