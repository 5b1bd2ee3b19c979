"""The commands that show a run, `report` and `explore`, and `views`: directions of particles."""

from collections.abc import Sequence
from getpass import getuser
from glob import escape
from pathlib import Path
from secrets import token_urlsafe
from signal import SIGINT
from socket import gethostname
from textwrap import fill

import numpy as np

from manifactor._support.errors import extra, shell_line
from manifactor._support.files import require_writable, write_bytes
from manifactor.command import signals
from manifactor.command.arguments import ExploreOptions, ReportOptions, ShownOptions, ViewsOptions
from manifactor.command.exporting import reported_volumes
from manifactor.command.outputs import own, require_ending, require_new
from manifactor.command.terminal import aligned, note, show
from manifactor.cryoem.all_views.shown import Shown, Wanted, open_shown
from manifactor.cryoem.directions import (
    PopulatedView,
    known_directions,
    populated_views,
    sphere_cells,
)
from manifactor.cryoem.files.formats import read_particles
from manifactor.cryoem.given_volumes import read_volumes
from manifactor.cryoem.one_view import can_flip
from manifactor.estimators import ManifoldFactorizer
from manifactor.runs.folder import read_run
from manifactor.runs.run import Run, open_run
from manifactor.views import plots
from manifactor.views.report import REPORT_NAME, write_movies, write_report
from manifactor.views.words import TEXT_WIDTH, report_text, volume_sentences


def report(options: ReportOptions) -> None:
    """Print a run as text, and write the page that shows it."""
    folder = Path(options.run)
    record, estimator = read_run(folder)
    # Before anything is drawn, which takes seconds.
    out = _page_of(options)
    # The text first: it needs no matplotlib, the page does.
    run = open_run(folder, some=True)
    wanted = _wanted(options, run)
    show(report_text(record, estimator))
    shown = _shown(run, estimator, wanted)
    for sentence in volume_sentences(shown):
        show(fill(sentence, TEXT_WIDTH))
    for number, cone in enumerate(shown.cones, start=1):
        # Along a factor of more dimensions there are no averages.
        if run.place(number).topology != "other":
            show(f"Factor {number}: averages of {cone}")
    show(f"Report: {write_report(folder, estimator, out=out, shown=shown)}")
    if options.movies:
        written = write_movies(folder, page=out, shown=shown)
        movies = ", ".join(map(str, written))
        show(f"Movies: {movies or 'none, as no factor has one dimension'}")


def _wanted(options: ShownOptions, run: Run) -> Wanted:
    """Return what the user asked to see; refuse what the run cannot show."""
    folder, factor = options.volumes, options.volumes_along
    if factor is not None and folder is None:
        raise ValueError(
            "--volumes-along is the factor of a series of volumes; give its folder "
            "with --volumes, or leave it out."
        )
    volumes = None if folder is None else read_volumes(folder, run, factor=factor)
    wanted = Wanted(options.view, options.width, volumes)
    wanted.check(run)
    return wanted


def _shown(run: Run, fit: ManifoldFactorizer, wanted: Wanted) -> Shown:
    """Return what is shown of particles of all views, with a bar for what is slow."""
    with reported_volumes(run) as stages:
        return open_shown(run, fit, wanted, stages=stages)


def _page_of(options: ReportOptions) -> Path:
    """Return the file of the page; refuse one that cannot be written."""
    if options.out is not None:
        out = require_ending(options.out, ".html")
        movies = out.parent.glob(f"{escape(out.stem)}-factor*")
        require_new(out, overwrite=options.overwrite)
        for path in movies if options.movies else []:
            require_new(path, overwrite=options.overwrite)
        return out
    folder = Path(options.run)
    require_writable(folder, remedy="Give another file with --out.")
    own(folder / REPORT_NAME)
    return folder / REPORT_NAME


def explore(options: ExploreOptions) -> None:
    """Serve a page on a run until interrupted."""
    # A missing package must show before the run is read, not after.
    for package in ("jinja2", "pydantic", "starlette", "uvicorn"):
        extra(package)
    # Imported here: no other command needs the explorer.
    from manifactor.views.explorer.scene import scene_of
    from manifactor.views.explorer.server import application, listening, serve, warm_up

    folder = None if options.save_to is None else Path(options.save_to)
    if folder is not None:
        require_writable(folder)
    # Other users of this machine can reach the port; the token keeps them out.
    token = token_urlsafe(16)
    run = open_run(options.run, some=True)
    wanted = _wanted(options, run)
    with listening(options.port) as bound:
        _, fit = read_run(run.folder)
        shown = _shown(run, fit, wanted)
        if shown.why:
            note(f"no volumes along the factors: {shown.why}")
        scene = scene_of(run, fit, shown)
        warm_up(scene)
        _show_address(bound.getsockname()[1], token)
        try:
            with signals.answered_inside():
                serve(application(scene, token, folder=folder), bound)
        except KeyboardInterrupt as stop:
            # Ctrl-C is the way to stop the server, not an error.
            if signals.signal_of(stop) != SIGINT:
                raise
    show("Stopped.")


def _show_address(port: int, token: str) -> None:
    show(f"Open in a browser on this machine: http://127.0.0.1:{port}/?token={token}")
    tunnel = f"ssh -L {port}:127.0.0.1:{port} {_user()}@{gethostname()}"
    show(f"From another machine, first run there: {tunnel}")
    show("Stop with Ctrl-C.")


def _user() -> str:
    # In some containers the user has no name; Python 3.13 raises OSError then, earlier versions
    # KeyError, and Windows ImportError.
    try:
        return getuser()
    except (KeyError, OSError, ImportError):
        return "you"


# From which directions particles are seen.


def views(options: ViewsOptions) -> None:
    """List the most populated viewing directions, and draw a map of all of them."""
    path = Path(options.input)
    out = Path(options.out or f"{path.stem}-views.png")
    if out.suffix not in (".png", ".svg", ".pdf"):
        raise ValueError(f"the picture must end in .png, .svg, .pdf; got {out.name}.")
    particles = read_particles(path)
    directions = known_directions(particles)
    require_new(out, overwrite=options.overwrite)
    width = options.width
    found = populated_views(directions, width=width, n_views=options.rows)
    # The text first: it needs no matplotlib, the picture does.
    show(_table(found, len(directions), width))
    best = found[0]
    # Below some hundreds of images, a fit is mostly refused or "cannot tell".
    if best.n_particles < 300:
        note(
            f"a fit of one view needs some hundreds of particles; the fullest has "
            f"{best.n_particles}. Enlarge --width, or fit all views (--all-views)."
        )
    # Without it, the defocus shows as a factor.
    flip = " --phase-flip" if can_flip(particles) else ""
    direction = f"--view {best.rot:g},{best.tilt:g} --width {width:g}{flip}"
    fit_command = shell_line("manifactor", "fit", path)
    show(f"Best view for a fit of one: {fit_command} {direction}")
    _draw(out, directions, found)
    show(f"Picture: {out}")


def _table(found: Sequence[PopulatedView], n_particles: int, width: float) -> str:
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


def _draw(out: Path, directions: np.ndarray, found: Sequence[PopulatedView]) -> None:
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
