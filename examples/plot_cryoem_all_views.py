"""
All views of a molecule, one coordinate for each motion
=======================================================

Particles are seen from all directions. A motion looks different in each of them, and
may hardly show in some. If the poses are known, as after a 3D refinement, all
images can be fitted together: every particle gets one place on each motion, which means
the same in all views, and a standard deviation.

This example runs commands as you would type them, with ``manifactor`` before each. It
needs ``pip install '.[cryoem,plots]'``.
"""

# %%
# A project in RELION's format
# ----------------------------
# The molecule is the channel of :doc:`the other example <plot_cryoem_demo>`, whose
# upper part turns while its lower part stretches. Its 1,500 images have random
# directions.
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np

from manifactor.command.main import main
from manifactor.scores import coordinate_correlation

project = TemporaryDirectory()


def manifactor(line):
    """Run a command in the folder of the project."""
    with chdir(project.name):
        assert main(line.split()) == 0


manifactor("simulate molecule --views all --n 1500 --out data")

# %%
# The fit
# -------
# Motions as large as these show down to 44 Angstrom, a sixth of the box; finer
# frequencies would take several times as long here. Leave ``--low-pass`` out for data
# of your own.
manifactor("fit data/particles.star --all-views --low-pass 44 --out run")

# %%
# The places of all particles
# ---------------------------
# The simulation has written the true states. A quarter of a turn shows the same
# molecule again, since it has four equal parts: it is a full circle of states.


def table(name):
    """Read a table of the project."""
    return np.genfromtxt(Path(project.name) / name, delimiter=",", names=True)


found, true = table("run/coordinates.csv"), table("data/truth.csv")
phase = np.radians(4 * true["angle"])
circle = np.column_stack([np.cos(phase), np.sin(phase)])
stretch = coordinate_correlation(found["factor1"], true["stretch_x"][:, None])
turn = coordinate_correlation(np.radians(found["factor2"]), circle)
print(f"correlation of the stretch: {stretch:.3f}; of the turn: {turn:.3f} (circular)")
assert stretch > 0.98
assert turn > 0.95

# %%
# Some images tell less of a motion than others. The fit says which: without the tenth
# of the particles that have the largest deviations, the rest is placed better.
unsure = found["factor2_deviation"] > np.quantile(found["factor2_deviation"], 0.9)
sure = np.radians(found["factor2"])[~unsure]
print(f"turn of the others: {coordinate_correlation(sure, circle[~unsure]):.3f}")

# %%
figure, panels = plt.subplots(1, 2, figsize=(7.5, 2.9), layout="constrained")
drawn = {
    "factor1": ("stretch_x", "true stretch, Angstrom", "factor 1"),
    "factor2": ("angle", "true turn, degrees", "factor 2, degrees"),
}
for axes, (name, (truth, xlabel, ylabel)) in zip(panels, drawn.items(), strict=True):
    order = found[f"{name}_deviation"].argsort()
    points = axes.scatter(
        true[truth][order],
        found[name][order],
        c=found[f"{name}_deviation"][order],
        s=4,
        vmax=np.quantile(found[f"{name}_deviation"], 0.98),
    )
    axes.set(xlabel=xlabel, ylabel=ylabel)
    figure.colorbar(points, ax=axes, label="deviation")
plt.show()

# %%
# Volumes along both motions
# --------------------------
# The fit keeps volumes of the molecule along its motions. This command writes them for
# ChimeraX, on a grid of both motions, with a picture of their projections. The stretch
# changes from row to row, the turn from column to column.
manifactor("average run --factor 1 --factor 2 --bins 5 --out volumes")
picture = plt.imread(Path(project.name) / "volumes" / "averages.png")
figure, axes = plt.subplots(figsize=(6, 5.3), layout="constrained")
axes.imshow(picture, cmap="gray")
axes.set_axis_off()
plt.show()

# %%
# From here, :doc:`cryo-EM step by step </howto-cryoem>` leads to the particles of one
# state.
project.cleanup()
