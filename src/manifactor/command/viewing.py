"""The command `views`: from which directions particles are seen."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from manifactor._support.errors import shell_line
from manifactor._support.files import write_bytes
from manifactor.command.arguments import ViewsOptions
from manifactor.command.outputs import require_new_file
from manifactor.command.terminal import aligned, note, show
from manifactor.cryoem.directions import Cone, known_directions, populated_views, sphere_cells
from manifactor.cryoem.files.formats import read_particles
from manifactor.cryoem.files.particles import Particles
from manifactor.cryoem.one_view import can_flip
from manifactor.views import plots

PICTURES = (".png", ".svg", ".pdf")


def views(options: ViewsOptions) -> None:
    """List the most populated viewing directions, and draw a map of all of them."""
    path = Path(options.input)
    out = Path(options.out or f"{path.stem}-views.png")
    if out.suffix not in PICTURES:
        raise ValueError(f"the picture must end in {', '.join(PICTURES)}; got {out.name}.")
    particles = read_particles(path)
    directions = known_directions(particles)
    require_new_file(out, overwrite=options.overwrite)
    width = options.width
    found = populated_views(directions, width=width, n_views=options.rows)
    # The text first: it needs no matplotlib, the picture does.
    show(_table(found, len(directions), width))
    _note_few_particles(found[0])
    show(f"Best view for a fit of one: {_fit_command(particles, found[0], width)}")
    _draw(out, directions, found)
    show(f"Picture: {out}")


def _table(found: Sequence[Cone], n_particles: int, width: float) -> str:
    """Return the populated directions as a table, below a line that describes it."""
    # The share of the sphere that a cone covers.
    even = n_particles * (1 - np.cos(np.radians(width))) / 2
    heading = ["view", "rot", "tilt", "particles", "share", "relative to uniform"]
    rows = [
        [
            str(number),
            f"{view.rot:g}",
            f"{view.tilt:g}",
            str(view.n_particles),
            f"{view.n_particles / n_particles:.1%}",
            f"{view.n_particles / even:.2f}",
        ]
        for number, view in enumerate(found, start=1)
    ]
    about = f"{n_particles} particles; those within {width:g} degrees of a direction:"
    return f"{about}\n{aligned([heading, *rows])}"


def _note_few_particles(best: Cone) -> None:
    # Below some hundreds of images, a fit is mostly refused or "cannot tell".
    if best.n_particles < 300:
        note(
            f"a fit of one view needs some hundreds of particles; the fullest has "
            f"{best.n_particles}. Enlarge --width, or fit all views (--all-views)."
        )


def _fit_command(particles: Particles, view: Cone, width: float) -> str:
    """Return the command that fits the particles of a view."""
    # Without it, the defocus shows as a factor.
    flip = " --phase-flip" if can_flip(particles) else ""
    direction = f"--view {view.rot:g},{view.tilt:g} --width {width:g}"
    return f"{shell_line('manifactor', 'fit', particles.path)} {direction}{flip}"


def _draw(out: Path, directions: np.ndarray, found: Sequence[Cone]) -> None:
    cells = sphere_cells()
    with plots.style(plots.CLEAR):
        figure = plots.new_figure(6.4, 3.2)
        plots.sphere(
            figure.subplots(),
            cells,
            cells.counts(directions),
            label=f"particles in 1/{len(cells)} of the sphere",
            marks=[view.direction for view in found],
        )
        drawn = plots.clear_picture(figure, out.suffix)
    write_bytes(out, drawn)
