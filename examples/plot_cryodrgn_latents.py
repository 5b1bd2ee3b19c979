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
fit = ManifoldFactorizer(random_state=0).fit(latents)
print(fit.evidence_)
