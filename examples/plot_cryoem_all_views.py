"""
All views of a molecule, one coordinate for each motion
=======================================================

Particles are seen from all directions. A motion looks different in each of them, and
some directions do not show it at all. With known poses, as after a 3D refinement, all
images can be fitted together: every particle gets one place on each motion, which means
the same in all views, and a standard deviation.

This example runs the commands that you would type. It needs ``pip install
'manifactor[cryoem,plots]'``.
"""

# %%
# A project in RELION's format
# ----------------------------
# The molecule is the channel of :doc:`plot_cryoem_demo`, seen from random directions.
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import numpy as np

from manifactor import plots
from manifactor.scores import coordinate_correlation

project = Path(mkdtemp())


def manifactor(line):
    """Run a command of manifactor in the project, and print what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "manifactor", *line.split()],
        cwd=project,
        capture_output=True,
        text=True,
        check=True,
    )
    print(f"$ manifactor {line}\n{done.stdout}")


manifactor("simulate molecule --views all --n 1500 --out data")

# %%
# The fit
# -------
# Frequencies down to 44 Angstrom, a sixth of the box, are enough for motions of this
# size and take a fifth of the time. Leave ``--low-pass`` out for data of your own.
manifactor("fit data/particles.star --all-views --low-pass 44 --out run")

# %%
# Volumes along a motion
# ----------------------
manifactor("average run --factor 1 --bins 6")
