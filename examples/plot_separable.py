"""
Coordinates that separate
=========================

Places on the earth have a longitude and a latitude, but the earth is not a product of
the two: a degree of longitude is shorter towards the poles. Data of this kind get the
verdict "separable". Here are places between 60 degrees south and 60 degrees north, as
x, y and z only. The fit finds both coordinates, and how lengths change.
"""

import matplotlib.pyplot as plt
import numpy as np

from manifactor import ManifoldFactorizer, plots, scores

rng = np.random.RandomState(0)
longitude = rng.uniform(-np.pi, np.pi, 3000)
# Even on the sphere: equal heights have equal areas.
latitude = np.arcsin(np.sin(np.radians(60)) * rng.uniform(-1, 1, 3000))
east, north = np.exp(1j * longitude), np.exp(1j * latitude)
X = np.column_stack([north.real * east.real, north.real * east.imag, north.imag])

fit = ManifoldFactorizer(random_state=0).fit(X)
print(fit.evidence_)

# %%
# The circle is the longitude, and the interval the latitude.

for factor in fit.factors_:
    r2 = scores.regression_r2(factor.embedding, latitude)
    print(f"{factor.shape}: R^2 of the latitude {r2:.3f}")

# %%
# On the left, lines of constant coordinates, on the front and the back of the globe. On
# the right, ``evidence_.warp``: lengths along the circle over the coordinate on the
# interval. The dashed curve is the cosine of the latitude, which the fit was not told.
# :doc:`/separable` says more of this verdict.

figure, (globe, lengths) = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
# Seen from 20 degrees above the equator.
tilt = np.radians(20)
up = np.cos(tilt) * X[:, 2] - np.sin(tilt) * X[:, 0]
plots.web(globe, fit, xy=np.column_stack([X[:, 1], up]))

plots.warp(lengths, fit)
warp = fit.evidence_.warp
# The coordinate is the share of an arc of 120 degrees.
true = np.cos(np.radians(120) * (warp.coordinate - 0.5))
lengths.plot(
    warp.coordinate, true / true.mean(), "--", color=plots.INK, label="cosine of the latitude"
)
lengths.legend(frameon=False)
plt.show()
