"""
Latents that cryoDRGN has learned
=================================

`cryoDRGN <https://cryodrgn.cs.princeton.edu>`_ learns a few numbers for each particle
image, its latents, from which a network makes a volume. The poses are removed from
them; what the numbers mean is open. Here cryoDRGN 4.3.1 itself was trained for 60
epochs on 30,000 simulated images of all views of a channel that turns and stretches.
The file has the 8 latents of 10,000 particles, with their true states.

On a project of your own, the command is ``manifactor fit z.50.pkl --particles
particles.star``; see :doc:`cryo-EM step by step </howto-cryoem>`.
"""

# %%
# The latents
# -----------
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsRegressor

from manifactor import ManifoldFactorizer, plots
from manifactor.scores import regression_r2, score

# A script lies beside its data; a page of the gallery runs in the script's folder.
folder = Path(globals().get("__file__", ".")).parent / "data"
with np.load(folder / "channel-latents.npz") as archive:
    latents = archive["z"].astype(float)
    stretch = archive["stretch"][:, None]
    angle = archive["angle"]
    print(archive["provenance"])

# The channel has four equal parts: states repeat after a quarter of a turn.
turn = np.column_stack([np.cos(4 * angle), np.sin(4 * angle)])

# %%
# What the latents know
# ---------------------
# No method can find more of a motion than the latents tell. The measure is R^2 of the
# true state, predicted by the mean of the 20 nearest particles (cross-validated).
for name, true in {"stretch": stretch, "turn": turn}.items():
    print(f"R^2 of the {name} from all 8 latents: {regression_r2(latents, true):.3f}")

# %%
# The fit
# -------
# Half of the particles are fitted. The others are placed on the factors that these
# show, so that they tell how good the places of new particles are.
fitted, placed = latents[:5000], latents[5000:]
fit = ManifoldFactorizer(random_state=0).fit(fitted)
for number, factor in enumerate(fit.factors_, 1):
    print(f"factor {number}: {factor.shape}")
print(f"verdict: {fit.verdict_}. {fit.evidence_.reason}")

# %%
# The truth
# ---------
# One row for each motion, one column for each factor: R^2 of the true motion, predicted
# from places on the factor, of the particles that were not fitted.
places = [place.embedding for place in fit.locate(placed)]
found = score(places, [stretch[5000:], turn[5000:]])
for name, row in zip(("stretch", "turn"), found.r2, strict=True):
    print(f"{name:8}", *(f"{value:.2f}" for value in row))
assert fit.verdict_ == "partial"
assert found.r2[0, 0] > 0.95
assert found.r2[1, 1] > 0.80
assert found.leak < 0.10

# %%
# Factor 1 is the stretch, factor 2 the turn: each has nearly all that the latents tell
# of its motion, and next to nothing of the other.
true_turn = np.degrees(np.arctan2(*turn[5000:].T[::-1])) / 4
near = cross_val_predict(KNeighborsRegressor(20), places[1], turn[5000:])
read_turn = np.degrees(np.arctan2(*near.T[::-1])) / 4

figure, panels = plt.subplots(1, 3, figsize=(8.5, 2.8), layout="constrained")
one, two, three = panels
one.scatter(stretch[5000:], places[0], s=2)
one.set(xlabel="true stretch, Angstrom", ylabel="factor 1")
plots.points(two, places[1][:, :2], true_turn, cmap=plots.circle_map(), size=3)
two.set(title="factor 2, coloured by the true turn")
plots.points(
    three,
    np.column_stack([true_turn, read_turn]),
    true_turn,
    cmap=plots.circle_map(),
    size=3,
)
three.set(title="turn read from factor 2 over the true turn")
plt.show()
