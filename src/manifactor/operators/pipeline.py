"""The whole way from samples to an Operator, on one page."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import uuid4

import numpy as np
import scipy.sparse as sp

from manifactor._support.errors import NothingFoundError, Warned
from manifactor._support.parameters import Choice, given
from manifactor._support.stages import Stages, fingerprint
from manifactor.models.moves.lagged import in_pairs, settings_for
from manifactor.models.moves.paths import Measured, Moves
from manifactor.models.moves.unfolding import unfolded
from manifactor.operators import laplacian
from manifactor.operators.forecast import Forecast, forecast, forecast_on_device
from manifactor.operators.kernel import Affinity, affinity, dense_affinity
from manifactor.operators.metric import LocalMetric
from manifactor.operators.neighbors import N_NEIGHBORS, NeighborGraph, chosen, neighbor_graph
from manifactor.operators.operator import (
    SAMPLES_PER_FUNCTION,
    DiffusionSettings,
    Operator,
    number_of_functions,
    number_of_neighbors,
    require_diffusion,
)
from manifactor.operators.spectrum import Spectrum
from manifactor.samples.preparation import MOST_COLUMNS, MOST_COMPONENTS, choose_preparation
from manifactor.samples.transformation import choose_transformation

# Samples that flat places are sought of: 10,000 take 15 s.
MOST_UNFOLDED = 20_000


def stage_keys(
    X, settings: DiffusionSettings, stages: Stages, moves: Moves | None = None
) -> dict[str, str]:
    """Return the key of every stage: a fingerprint of all that it depends on."""
    search: Any = settings.neighbors
    if hasattr(search, "get_params"):
        search = f"{type(search).__qualname__} {search.get_params()}"
    elif settings.own_search:
        search = uuid4().hex  # its parameters are unknown
    preparation = fingerprint(
        X,
        settings.precomputed,
        settings.own_search,
        settings.preparation,
        getattr(settings.transformation, "value", settings.transformation),
    )
    neighbours = fingerprint(
        preparation, number_of_neighbors(settings, X.shape[0]).value, search, settings.device
    )
    if moves is not None:
        neighbours = fingerprint(neighbours, *vars(moves).values())
    # The number of functions both as asked for and as chosen: "auto" is settled only when copies
    # are known.
    spectrum = stages.random_key(
        neighbours,
        settings.bandwidth,
        settings.density_correction,
        settings.n_functions,
        settings.solver,
    )
    return {"preparation": preparation, "neighbours": neighbours, "spectrum": spectrum}


@dataclass(frozen=True)
class Walk:
    """What the stage "spectrum" yields: the walk on the graph and its spectrum."""

    graph: NeighborGraph
    affinity: Affinity
    parts: tuple[laplacian.Part, ...]
    spectrum: Spectrum

    @property
    def warned(self) -> tuple[Warned, ...]:
        """What was noticed on the way."""
        weak = laplacian.weak_links(self.affinity)
        return (*self.graph.warned, *weak, *self.spectrum.warned)


def diffuse(
    X,
    settings: DiffusionSettings = DiffusionSettings(),
    *,
    moves: Moves | None = None,
    stages: Stages | None = None,
    rng: np.random.Generator,
) -> Operator:
    """Return the diffusion process on samples, (n_samples, n_features), and its spectrum.

    Where moves are known, distances are in units of these.
    """
    require_diffusion(settings, X.shape[0])
    stages = stages or Stages()
    settings = settings_for(settings, moves, X.shape[0])
    keys = stage_keys(X, settings, stages, moves)

    transformation = choose_transformation(settings.transformation, X)
    if transformation.value is not None:
        X = transformation.value(X)

    def prepare() -> Choice:
        with stages.timed("preparation"):
            if settings.preparation == "none":
                return given(None)
            if settings.own_search or settings.precomputed:
                return Choice(None, "the caller's own search or distances are left alone")
            return choose_preparation(X)

    preparation = stages.recall("preparation", keys["preparation"], prepare)
    samples = X if preparation.value is None else preparation.value(X)
    measured = Measured(samples) if moves is None else moves.measured(samples, preparation.value)
    samples, metric = measured.samples, measured.metric

    def search() -> NeighborGraph:
        with stages.timed("neighbours"):
            return _search(samples, metric, settings=settings)

    def walk_and_solve() -> Walk:
        graph = stages.recall("neighbours", keys["neighbours"], search)
        graph = graph.with_search(samples, settings.n_jobs, metric)
        return _walk(samples, graph, settings, metric=metric, stages=stages, rng=rng)

    # A kept spectrum needs no neighbours: its graph is the one without outliers.
    walk = stages.recall("spectrum", keys["spectrum"], walk_and_solve)
    walk = replace(walk, graph=walk.graph.with_search(samples, settings.n_jobs, metric))
    found = in_pairs(_diffusion(measured, preparation, walk, settings, keys))
    if transformation.value is None:
        return found
    return replace(found, choices={"transformation": transformation, **found.choices})


def in_flat_places(
    diffusion: Operator, angles: Sequence[np.ndarray], *, rng: np.random.Generator
) -> Operator:
    """Return the diffusion by distances in flat places.

    `angles` are those of the circles among the factors, (n_samples,) each.
    """
    samples, settings, metric = diffusion.samples, diffusion.settings, diffusion.metric
    count = max(round(diffusion.dimension), len(angles))
    if metric is not None and count > 1 and len(diffusion.graph.distinct) <= MOST_UNFOLDED:
        metric = unfolded(samples, metric, diffusion.graph, count, angles)
    if metric is None or metric.flat is None:
        raise NothingFoundError("samples must have flat places, and have none.")
    graph = _search(samples, metric, settings=settings)
    walk = _walk(samples, graph, settings, metric=metric, stages=Stages(), rng=rng)
    why = f"differences of places in {count} dimensions are moves in frames that turn with them"
    return replace(
        diffusion,
        graph=walk.graph,
        affinity=walk.affinity,
        distinct=walk.spectrum,
        parts=walk.parts,
        choices={**diffusion.choices, "distances": Choice("flat", why)},
        # A later fit cannot start from this.
        keys={},
        n_requested=len(walk.spectrum.eigenvalues),
        metric=metric,
        warned=walk.warned,
    )


def kept_stages(diffusion: Operator) -> Stages:
    """Return the stages from which another computation can start.

    The neighbours are left out where outliers were removed from the graph, since the graph before
    that is gone. A diffusion without keys is none to start from.
    """
    if not diffusion.keys:
        return Stages()
    first = diffusion.as_requested()
    walk = Walk(first.graph, first.affinity, first.parts, first.distinct)
    results = {"preparation": first.choices["preparation"], "spectrum": walk}
    if not first.graph.outliers.any():
        results["neighbours"] = first.graph
    return Stages({name: (first.keys[name], found) for name, found in results.items()})


def _search(
    samples, metric: LocalMetric | None = None, *, settings: DiffusionSettings
) -> NeighborGraph:
    """Return the neighbour graph of samples."""
    count = N_NEIGHBORS if isinstance(settings.n_neighbors, str) else settings.n_neighbors
    return neighbor_graph(
        samples,
        min(int(count), samples.shape[0] - 1),
        method=settings.neighbors,
        n_jobs=settings.n_jobs,
        device=settings.device,
        metric=metric,
    )


def _walk(
    samples,
    graph: NeighborGraph,
    settings: DiffusionSettings,
    *,
    metric: LocalMetric | None,
    stages: Stages,
    rng: np.random.Generator,
) -> Walk:
    """Return the random walk on the graph without outliers, and its spectrum."""
    n_distinct = len(graph.distinct)
    n_functions = number_of_functions(settings, n_distinct).value
    if n_functions >= n_distinct:
        raise ValueError(
            f"`n_functions` must be smaller than the number of distinct samples; got {n_functions} "
            f"with {n_distinct} distinct samples. Lower it or add samples."
        )
    walk_of = partial(
        affinity, bandwidth=settings.bandwidth, density_correction=settings.density_correction
    )
    with stages.timed("affinity"):
        graph, walk = _affinity(samples, graph.on_device(settings.device), walk_of, settings.dense)
    parts: tuple[laplacian.Part, ...] = ()
    # Halves of fewer samples are cheap.
    many = len(graph.distinct) > laplacian.PARTED_ABOVE
    if many and not settings.dense and not sp.issparse(samples):
        with stages.timed("parts"):
            parts = laplacian.draw_parts(
                chosen(samples, graph.distinct),
                n_functions,
                search=partial(_search, settings=settings),
                metric=None if metric is None else metric.chosen(graph.distinct),
                walk_of=walk_of,
                rng=rng,
            )
    with stages.timed("spectrum"):
        spectrum = laplacian.laplacian_spectrum(
            walk,
            n_functions,
            solver=settings.solver,
            start=next(iter(parts), None),
            progress=partial(stages.report, "spectrum"),
            rng=rng,
        )
    _require_resolved(spectrum, n_functions, walk, settings)
    return Walk(graph, walk, parts, spectrum)


def _affinity(
    samples, graph: NeighborGraph, walk_of: partial[Affinity], dense: bool
) -> tuple[NeighborGraph, Affinity]:
    """Return graph and walk, without samples that have no neighbours."""
    if dense:
        return graph, dense_affinity(samples, graph, **walk_of.keywords)
    walk = walk_of(graph)
    if sp.issparse(samples):  # without points there is no nearest neighbour to join
        return graph, walk
    return laplacian.without_outliers(samples, graph, walk, walk_of=walk_of)


def _diffusion(
    measured: Measured,
    preparation: Choice,
    walk: Walk,
    settings: DiffusionSettings,
    keys: dict[str, str],
) -> Operator:
    """Return the record."""
    # A method may ask for more functions, where a dimension of the data is missing.
    most = min(400, len(walk.graph.distinct) // SAMPLES_PER_FUNCTION)
    return Operator(
        samples=measured.samples,
        graph=walk.graph,
        affinity=walk.affinity,
        distinct=walk.spectrum,
        parts=walk.parts,
        choices=_choices(measured, preparation, walk, settings),
        keys=keys,
        settings=settings,
        max_functions=most if settings.n_functions == "auto" else 0,
        n_requested=len(walk.spectrum.eigenvalues),
        metric=measured.metric,
        path=measured.path,
        time=measured.time,
        warned=(*measured.warned, *walk.warned),
    )


def _choices(
    measured: Measured, preparation: Choice, walk: Walk, settings: DiffusionSettings
) -> dict[str, Choice]:
    """Return what was chosen on the way, and why."""
    samples, bandwidth = measured.samples, walk.affinity.bandwidth
    neighbours = number_of_neighbors(settings, samples.shape[0])
    if settings.own_search or settings.precomputed:
        neighbours = Choice(None, "the caller's own search or distances decide")
    density = given(settings.density_correction)
    if density.value == DiffusionSettings.density_correction:
        why = "eigenfunctions of the manifold, whatever the sampling density"
        density = Choice(density.value, why)
    return {
        "preparation": preparation,
        "outliers": laplacian.outlier_choice(walk.graph),
        "neighbours": neighbours,
        "neighbour search": walk.graph.method,
        "bandwidth": bandwidth.choice,
        "dimension of the data": Choice(
            max(1, round(bandwidth.dimension)),
            f"the kernel's slope gives {bandwidth.dimension:.2f}, corrected for the "
            "finite number of neighbours",
        ),
        "density correction": density,
        "functions": number_of_functions(settings, len(walk.graph.distinct)),
        "eigensolver": walk.spectrum.solver,
        **measured.choices,
    }


def _require_resolved(
    spectrum: Spectrum, n_functions: int, walk: Affinity, settings: DiffusionSettings
) -> None:
    """Raise ValueError where the kernel resolves too few functions."""
    found = len(spectrum.eigenvalues)
    if found < 2:
        raise NothingFoundError(
            "the kernel must resolve more than the constant function; got `bandwidth` "
            f"{walk.bandwidth.value:.3g}, which does not. Lower `bandwidth`."
        )
    # A spectrum of the walk that ends here ended because the kernel resolves no more. Otherwise the
    # solver stopped, and has warned of it.
    exhausted = np.exp(-walk.step * spectrum.eigenvalues[-1]) < 1e-3
    fixed = not isinstance(settings.n_functions, str | Choice)
    if found < n_functions and fixed and exhausted:
        raise ValueError(
            f"the kernel resolves {found} functions of these samples; got "
            f"`n_functions`={n_functions}. Lower it, or lower `bandwidth`."
        )


def forecast_diffusion(
    settings: DiffusionSettings, n_samples: int, n_features: int, *, n_cores: int | None = None
) -> Forecast:
    """Return the memory and time that samples of this shape take.

    They are those of a GPU for a fit there, else those of the CPU. In many columns, the most
    principal components are expected to be kept: how many are kept, only the samples can tell.
    """
    chosen_by_caller = settings.preparation == "none" or settings.own_search
    if n_features > MOST_COLUMNS and not chosen_by_caller:
        n_features = MOST_COMPONENTS
    counts = {
        "n_neighbors": number_of_neighbors(settings, n_samples).value,
        "n_functions": number_of_functions(settings, n_samples).value,
    }
    # The dense kernel is computed by the host on any device.
    kind = str(settings.device).removeprefix("torch:").partition(":")[0]
    if kind == "cuda" and not settings.dense:
        return forecast_on_device(n_samples, n_features, **counts)
    search = "custom" if settings.own_search else settings.neighbors
    return forecast(n_samples, n_features, **counts, search=search, n_cores=n_cores)
