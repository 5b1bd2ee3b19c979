"""
An autoencoder's latents: time tells the two objects apart
==========================================================

Two balls move in a film, each along a line of its own, at random and independently. An
autoencoder, which does not know the order of the frames, has squeezed each frame into three
latents. They hold the places of both balls, but not one ball each, and distances between
them mean little: the network was free to bend and stretch. The order of the frames, given to
the fit, tells which changes of the latents belong together.

The data are ``examples/data/film-latents.npz``; ``film-latents.txt`` beside it says how
``benchmarks/film_latents.py`` made them. Not every autoencoder can be read so: of 15 others,
11 were solved, and :doc:`the page on dynamics </dynamics>` says what was missing.
"""

import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from manifactor import ManifoldFactorizer, NoProductStructureWarning, plots
from manifactor.scores import regression_r2

# A script lies beside its data; a page of the gallery runs in the script's folder.
folder = Path(globals().get("__file__", ".")).parent / "data"
with np.load(folder / "film-latents.npz") as archive:
    latents, places = (archive[name].astype(float) for name in ("latents", "places"))
    frames = archive["frames"]

figure, axes = plt.subplots(1, 5, figsize=(7, 1.3), layout="constrained")
for ax, frame in zip(axes, frames, strict=False):
    ax.imshow(frame, cmap="gray", origin="lower")
    ax.set_axis_off()
plt.show()

# %%
# Each latent depends on both balls:

for number, latent in enumerate(latents[::10].T, start=1):
    own, other = (regression_r2(place[:, None], latent[:, None]) for place in places[::10].T)
    print(f"latent {number}: R^2 with ball 1 {own:.2f}, with ball 2 {other:.2f}")

# %%
# With the order of frames
# ------------------------

fit = ManifoldFactorizer(random_state=0).fit(latents, times=np.arange(len(latents)))
print(f"verdict: {fit.verdict_}, in the sense of {fit.evidence_.sense}")
for factor in fit.factors_:
    print(factor)

figure, axes = plt.subplots(1, 2, figsize=(6.4, 3), layout="constrained")
for number, factor in enumerate(fit.factors_):
    truth = places[fit.rows_]
    r2 = [regression_r2(factor.embedding, place[:, None]) for place in truth.T]
    own = int(np.argmax(r2))
    ax = axes[own]
    ax.scatter(truth[:, own], factor.coordinate, s=2, color=plots.colour(number))
    ax.set(xlabel=f"place of ball {own + 1} on its line", ylabel=f"factor {number + 1}")
    ax.set_title(f"R$^2$ {r2[own]:.3f}, of the other {r2[1 - own]:.3f}")
plt.show()

# %%
# Without it
# ----------
#
# The same latents without times are one surface. Nothing in it says where one ball stands
# still, and the verdict says so.

with warnings.catch_warnings():
    warnings.simplefilter("ignore", NoProductStructureWarning)
    plain = ManifoldFactorizer(random_state=0).fit(latents[fit.rows_])
print("verdict:", plain.verdict_)
