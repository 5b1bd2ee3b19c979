"""
Molecular dynamics: are two torsions independent?
=================================================

A chain of five carbon groups, n-pentane, has two torsions. Whether they are independent
is a question about the molecule, and the verdict answers it. OpenMM simulated one
molecule at 600 K, twice: with the full force field, and without the interaction of the
two ends of the chain, so that nothing couples the torsions. The fit gets the positions
of both ends, seen from the three groups between them, and no torsion.

The data are ``examples/data/pentane.npz``; ``pentane.txt`` beside it has the force
field (TraPPE-UA) and the settings, and ``benchmarks/molecular_dynamics.py`` made them.
"""

import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from manifactor import ManifoldFactorizer, NoProductStructureWarning, plots
from manifactor.scores import regression_r2

# A script lies beside its data; a page of the gallery runs in the script's folder.
folder = Path(globals().get("__file__", ".")).parent / "data"
with np.load(folder / "pentane.npz") as archive:
    data = {name: archive[name].astype(float) for name in archive}


def ends(positions):
    """Return the positions of the first and the last group, (n, 6)."""
    return positions[:, [0, 4]].reshape(len(positions), 6)


def on_circle(angle):
    """Return cosine and sine."""
    return np.column_stack([np.cos(angle), np.sin(angle)])


titles = {"free_torsions": "ends do not interact", "torsions": "full force field"}
ticks = [-180, -60, 60, 180]
figure, axes = plt.subplots(1, 2, figsize=(6.4, 3.4), layout="constrained")
for ax, (name, title) in zip(axes, titles.items(), strict=True):
    ax.scatter(*np.degrees(data[name]).T, s=1.5, color=plots.INK)
    ax.set(title=title, xlabel="torsion 1, degrees", xticks=ticks, yticks=ticks)
    ax.set_aspect("equal")
axes[0].set_ylabel("torsion 2, degrees")
plt.show()

# %%
# Each torsion has three wells: trans at 180 degrees, and two gauche ones at 65 and -65.
# With the full force field, gauche torsions of opposite sign are rare: the ends of the
# chain would overlap. Chemists call this the pentane effect.

for name, title in titles.items():
    gauche = np.abs(data[name]).max(axis=1) < np.radians(120)
    opposite = gauche & (data[name].prod(axis=1) < 0)
    print(f"{title}: {100 * opposite.mean():.1f} % are gauche of opposite sign")

# %%
# Uncoupled torsions are two factors
# ----------------------------------

torsions = data["free_torsions"]
fit = ManifoldFactorizer(random_state=0).fit(ends(data["free_positions"]))
print("verdict:", fit.verdict_)
for factor in fit.factors_:
    print(factor)

figure, axes = plt.subplots(1, 2, figsize=(6.4, 3.2), layout="constrained")
for number, factor in enumerate(fit.factors_):
    r2 = [regression_r2(factor.embedding, on_circle(angle)) for angle in torsions.T]
    own = int(np.argmax(r2))
    angle, found = np.degrees(torsions[:, own]), np.degrees(factor.coordinate)
    axes[own].scatter(angle, found, s=1.5, color=plots.colour(number))
    axes[own].set(xlabel=f"torsion {own + 1}, degrees", xticks=ticks)
    axes[own].set(ylabel=f"angle on factor {number + 1}", yticks=[0, 120, 240, 360])
    axes[own].set_title(f"R$^2$ {r2[own]:.3f}, of the other {r2[1 - own]:.3f}")
plt.show()

# %%
# Both circles are found across the barriers, which few samples cross. Angles on them
# are the torsions, up to their start and sense of rotation.
#
# Coupled torsions are one factor
# -------------------------------
#
# Every second structure of the full force field:

torsions = data["torsions"][::2]
with warnings.catch_warnings():
    # That the samples are no product is also said by a warning.
    warnings.simplefilter("ignore", NoProductStructureWarning)
    fit = ManifoldFactorizer(random_state=0).fit(ends(data["positions"][::2]))
print("verdict:", fit.verdict_)
for factor in fit.factors_:
    print(factor)
    for number, angle in enumerate(torsions.T, start=1):
        r2 = regression_r2(factor.embedding, on_circle(angle))
        print(f"  R^2 of torsion {number}: {r2:.3f}")
print(fit.evidence_)

# %%
# The verdict is "none", and the text says "cannot tell": rare combinations of the
# torsions make clusters. Nothing is divided that does not divide. The one factor has
# two dimensions and tells both torsions, which are in fact coupled.
