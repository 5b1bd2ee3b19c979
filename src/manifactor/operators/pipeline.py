"""The whole way from samples to an operator, on one page."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy.sparse as sp

from manifactor._support.errors import NothingFoundError, Warned
from manifactor._support.parameters import Choice, given
from manifactor._support.stages import Stages
from manifactor.operators import laplacian
from manifactor.operators.forecast import Forecast, forecast, forecast_on_device
from manifactor.operators.kernel import Affinity, affinity, dense_affinity
from manifactor.operators.laplacian import Spectrum
from manifactor.operators.metric import LocalMetric, Measured, MeasuresMoves
from manifactor.operators.neighbors import N_NEIGHBORS, NeighborGraph, chosen, neighbor_graph
from manifactor.operators.operator import (
    DiffusionSettings,
    Operator,
    number_of_functions,
    number_of_neighbors,
    require_diffusion,
)
from manifactor.samples.preparation import (
    MOST_COLUMNS,
    MOST_COMPONENTS,
    choose_preparation,
    make_transformation,
)


@dataclass(frozen=True)
class Walk:
    """The walk on a graph, and its spectrum."""

    graph: NeighborGraph
    affinity: Affinity
    parts: tuple[laplacian.Part, ...]
    spectrum: Spectrum

    @property
    def warned(self) -> tuple[Warned, ...]:
        """What was noticed on the way."""
        links = laplacian.weak_links(self.affinity)
        return (*self.graph.warned, *links, *self.spectrum.warned)


def diffuse(
    X,
    settings: DiffusionSettings = DiffusionSettings(),
    *,
    moves: MeasuresMoves | None = None,
    choices: Mapping[str, Choice] | None = None,
    stages: Stages | None = None,
    rng: np.random.Generator,
) -> Operator:
    """Return the operator on samples, (n_samples, n_features), and its spectrum.

    Where moves are known, distances are in units of these. `choices` are what a method chose in
    place of the settings: a "transformation", or a number of "functions", or as many as there are.
    """
    require_diffusion(settings, X.shape[0])
    choices, stages = choices or {}, stages or Stages()
    asked = choices.get("transformation", given(settings.transformation))
    transformation = make_transformation(asked.value, X)
    if transformation is not None:
        X = transformation(X)
    with stages.timed("preparation"):
        preparation = _preparation(X, settings)
    samples = X if preparation.value is None else preparation.value(X)
    measured = Measured(samples) if moves is None else moves.measured(samples, preparation.value)
    samples, metric = measured.samples, measured.metric
    functions = choices.get("functions")
    with stages.timed("neighbours"):
        graph = search_neighbors(samples, metric, settings=settings)
    walk = walk_on(samples, graph, settings, functions, metric=metric, stages=stages, rng=rng)
    made = {"preparation": preparation, **_choices(measured, walk, settings, functions)}
    if transformation is not None:
        made = {"transformation": replace(asked, value=transformation), **made}
    if functions is not None:  # the method needs no more of them
        settings = replace(settings, n_functions=len(walk.spectrum.eigenvalues))
    return _operator(measured, walk, settings, made)


def _preparation(X, settings: DiffusionSettings) -> Choice:
    if settings.preparation == "none":
        return given(None)
    if settings.own_search or settings.precomputed:
        return Choice(None, "the caller's own search or distances are left alone")
    return choose_preparation(X)


def _operator(measured: Measured, walk: Walk, settings, choices) -> Operator:
    """Return the record."""
    return Operator(
        samples=measured.samples,
        graph=walk.graph,
        affinity=walk.affinity,
        distinct=walk.spectrum,
        parts=walk.parts,
        choices=choices,
        settings=settings,
        metric=measured.metric,
        path=measured.path,
        time=measured.time,
        warned=(*measured.warned, *walk.warned),
    )


def search_neighbors(
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


def walk_on(
    samples,
    graph: NeighborGraph,
    settings: DiffusionSettings,
    functions: Choice | None = None,
    *,
    metric: LocalMetric | None,
    stages: Stages | None = None,
    rng: np.random.Generator,
) -> Walk:
    """Return the random walk on the graph without outliers, and its spectrum."""
    stages = stages or Stages()
    n_distinct = len(graph.distinct)
    n_functions = number_of_functions(settings, n_distinct, functions).value
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
                search=partial(search_neighbors, settings=settings),
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
    fixed = functions is None and settings.n_functions != "auto"
    _require_resolved(spectrum, n_functions, walk, fixed=fixed)
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


def _choices(
    measured: Measured, walk: Walk, settings: DiffusionSettings, functions: Choice | None
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
        "functions": number_of_functions(settings, len(walk.graph.distinct), functions),
        "eigensolver": walk.spectrum.solver,
        **measured.choices,
    }


def _require_resolved(spectrum: Spectrum, n_functions: int, walk: Affinity, *, fixed: bool) -> None:
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
    if found < n_functions and fixed and exhausted:
        raise ValueError(
            f"the kernel resolves {found} functions of these samples; got "
            f"`n_functions`={n_functions}. Lower it, or lower `bandwidth`."
        )


def forecast_diffusion(
    settings: DiffusionSettings, n_samples: int, n_features: int, *, functions: Choice | None = None
) -> Forecast:
    """Return the memory that samples of this shape take, on their device."""
    prepares = settings.preparation != "none" and not settings.own_search
    if n_features > MOST_COLUMNS and prepares:
        n_features = MOST_COMPONENTS  # only the samples can tell how many are kept
    counts = {
        "n_neighbors": number_of_neighbors(settings, n_samples).value,
        "n_functions": number_of_functions(settings, n_samples, functions).value,
    }
    # The dense kernel is computed by the host on any device.
    kind = str(settings.device).removeprefix("torch:").partition(":")[0]
    if kind == "cuda" and not settings.dense:
        return forecast_on_device(n_samples, n_features, **counts)
    return forecast(n_samples, n_features, **counts)
