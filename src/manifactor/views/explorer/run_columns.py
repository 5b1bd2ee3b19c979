"""All columns of a run's samples, and why some are missing."""

from manifactor._support.errors import one_line
from manifactor.runs.motions import is_of_all_views
from manifactor.runs.run import Run
from manifactor.views.explorer.columns import (
    Column,
    ColumnSettings,
    feature_columns,
    particle_columns,
    place_columns,
)
from manifactor.views.explorer.molecule import Molecule
from manifactor.views.explorer.previews import Features, Preview


def run_columns(
    run: Run, preview: Preview, *, settings: ColumnSettings = ColumnSettings()
) -> tuple[dict[str, Column], tuple[str, ...]]:
    """Return places, particles and input as columns, and sentences on what is missing."""
    columns = place_columns(run.places, settings=settings)
    missing = []
    sources = {
        "particles": lambda: _of_particles(run),
        "the input": lambda: _of_input(run, preview, settings),
    }
    for name, read in sources.items():
        try:
            columns |= read()
        except (ValueError, OSError) as error:
            problem = one_line(error)
            if problem not in preview.why:
                missing.append(f"There are no columns of {name}: {problem}")
    return columns, tuple(missing)


def _of_particles(run: Run) -> dict[str, Column]:
    return particle_columns(run.particles) if "particles" in run.record else {}


def _of_input(run: Run, preview: Preview, settings: ColumnSettings) -> dict[str, Column]:
    """Return the numbers that were fitted: images have too many pixels to list."""
    if isinstance(preview, Features):
        samples = preview.samples
    elif isinstance(preview, Molecule) and not is_of_all_views(run.record):
        samples = run.samples()
    else:
        return {}
    return feature_columns(samples, run.column_names, settings=settings)
