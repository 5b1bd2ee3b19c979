"""The commands that show a run: `report` and `explore`."""

from getpass import getuser
from glob import escape
from pathlib import Path
from secrets import token_urlsafe
from signal import SIGINT
from socket import gethostname
from textwrap import fill

from manifactor._support.errors import extra
from manifactor._support.files import require_writable
from manifactor.command import signals
from manifactor.command.arguments import ExploreOptions, ReportOptions, ShownOptions
from manifactor.command.exporting import reported_volumes
from manifactor.command.outputs import own, require_ending, require_new_file, require_replaceable
from manifactor.command.terminal import note, show
from manifactor.cryoem.all_views.shown import Shown, Wanted, open_shown, read_volumes
from manifactor.estimators import ManifoldFactorizer
from manifactor.runs.folder import read_run
from manifactor.runs.run import Run, open_run
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
        require_new_file(out, overwrite=options.overwrite)
        for path in movies if options.movies else []:
            require_replaceable(path, overwrite=options.overwrite)
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
