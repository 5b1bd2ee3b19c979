"""
A film of two pendulums: time shows what a frame does not
=========================================================

One pendulum hangs from another, both in gusts of wind, and a camera with a bent lens
films them. Each angle wanders by itself, but the frames are not a product: where
the lower ball hangs depends on both angles. Steps from frame to frame show which changes
belong together. How fast the angles wander matters: two earlier films, with one faster than
the other, were "partial", with R^2 of .94 and .95.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from manifactor import ManifoldFactorizer, NoProductStructureWarning, plots
from manifactor.scores import regression_r2

n_frames, n_pixels = 12_000, 16
rng = np.random.default_rng(0)
free = rng.random(2) + np.cumsum(rng.normal(scale=0.035, size=(n_frames, 2)), axis=0)
places = 1 - np.abs(1 - free % 2)  # from 0 to 1, reflected at both ends
angles = (2 * places - 1) * [0.8, 1.0]  # radians
arms = 0.55 * np.stack([np.sin(angles), -np.cos(angles)], axis=2)
upper, lower = arms[:, 0], arms.sum(axis=1)


def through_lens(points):
    """Return points of the image, where the lens shrinks what is far from its axis."""
    points = points + np.array([0, 0.55])
    return points * (1 - 0.25 * (points**2).sum(axis=1, keepdims=True))


pixels = np.linspace(-1, 1, n_pixels)
frames = rng.normal(scale=0.02, size=(n_frames, n_pixels, n_pixels))
for ball in (upper, lower):
    x, y = (np.exp(-(((pixels - at[:, None]) / 0.25) ** 2)) for at in through_lens(ball).T)
    frames += y[:, :, None] * x[:, None]

figure, axes = plt.subplots(1, 5, figsize=(7, 1.6), layout="constrained")
for ax, frame in zip(axes, frames[::100], strict=False):
    ax.imshow(frame, cmap="gray", origin="lower")
    ax.set_axis_off()
plt.show()

# %%
# With the order of frames
# ------------------------
#
# All steps tell how far, and in which direction, the film moves at each frame; some
# frames, as even as possible, are fitted.

X = frames.reshape(n_frames, -1)
fit = ManifoldFactorizer(random_state=0).fit(X, times=np.arange(n_frames), fit_samples=1500)
print(f"verdict: {fit.verdict_}, in the sense of {fit.evidence_.sense}")
for factor in fit.factors_:
    print(factor)

figure, axes = plt.subplots(1, 2, figsize=(6.4, 3), layout="constrained")
for number, factor in enumerate(fit.factors_):
    r2 = [regression_r2(factor.embedding, place[fit.rows_, None]) for place in places.T]
    own = int(np.argmax(r2))
    ax, angle = axes[own], np.degrees(angles[fit.rows_, own])
    ax.scatter(angle, factor.coordinate, s=2, color=plots.colour(number))
    ax.set(xlabel=f"angle of pendulum {own + 1}, degrees", ylabel=f"factor {number + 1}")
    ax.set_title(f"R$^2$ {r2[own]:.3f}, of the other {r2[1 - own]:.3f}")
plt.show()

# %%
# Without it
# ----------
#
# Frames alone show one surface. Nothing in them says along which curves one angle stands
# still, and the verdict says so.

with warnings.catch_warnings():
    warnings.simplefilter("ignore", NoProductStructureWarning)
    plain = ManifoldFactorizer(sense="geometry", random_state=0).fit(X[fit.rows_])
print("verdict:", plain.verdict_)
for factor in plain.factors_:
    print(factor)
