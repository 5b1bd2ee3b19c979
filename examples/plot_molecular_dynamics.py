"""
Molecular dynamics: the torsions of pentane
===========================================

A chain of five carbon groups has two torsions. Are they independent? Molecular dynamics
of one molecule of n-pentane at 600 K gave 3000 structures
(``examples/data/pentane.txt`` says how). The fit gets the positions of all atoms,
superposed on the three in the middle, and no torsion.
"""

# %%
# Two simulations
# ---------------
# One has the full force field. In the other one, the two ends of the chain do not
# interact, so that nothing couples the torsions.
import textwrap
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from manifactor import ManifoldFactorizer, plots
from manifactor.scores import score

# A script lies beside its data; a page of the gallery runs in the script's folder.
folder = Path(globals().get("__file__", ".")).parent / "data"
with np.load(folder / "pentane.npz") as archive:
    data = {name: archive[name].astype(float) for name in archive}

prefixes = {"ends do not interact": "free_", "full force field": ""}
ticks = [-180, -60, 60, 180]
figure, axes = plt.subplots(1, 2, figsize=(6.4, 3.3), layout="constrained")
for ax, (title, prefix) in zip(axes, prefixes.items(), strict=True):
    torsions = np.degrees(data[f"{prefix}torsions"])
    ax.scatter(*torsions.T, s=1, color=plots.INK)
    ax.set(title=title, xlabel="torsion 1, degrees", xticks=ticks, yticks=ticks)
    ax.set_aspect("equal")
axes[0].set_ylabel("torsion 2")
plt.show()

# %%
# Each torsion has three wells: trans at 180 degrees, and two gauche ones. With the full
# force field, two of the nine combinations are almost empty: where the torsions are
# gauche of opposite sign, the ends of the chain would overlap. Chemists call it the
# pentane effect.
#
# Without the coupling
# --------------------


def circles(torsions):
    """Return cosine and sine of each torsion."""
    return [np.column_stack([np.cos(angle), np.sin(angle)]) for angle in torsions.T]


fits = {}
for title, prefix in prefixes.items():
    positions = data[f"{prefix}positions"]
    X = positions.reshape(len(positions), -1)
    fits[title] = ManifoldFactorizer(random_state=0).fit(X)
    fit = fits[title]
    found = score(
        [f.embedding for f in fit.factors_], circles(data[f"{prefix}torsions"])
    )
    print(title, fit.verdict_, fit.evidence_.sense, *fit.factors_)
    print(found.r2.round(3))
    print(textwrap.fill(str(fit.evidence_), 88))
