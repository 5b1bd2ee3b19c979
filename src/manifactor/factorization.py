"""The result: factors, the evidence for them, and what was tried."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from manifactor._support.errors import Warned
from manifactor._support.parameters import Choice, require_choice, require_count
from manifactor._support.values import require_values
from manifactor._support.workers import PickledFields
from manifactor.factors.factor import Factor
from manifactor.factors.inversion import PlaceSpace, choose_window, even_steps, values_at
from manifactor.factors.placing import ByFunctions, Locate, Placed, place_blocks
from manifactor.judging.evidence import Evidence, percent, shapes_in_words
from manifactor.models.moves.integration import Integrated
from manifactor.models.moves.motion import MarkovModel, markov_model
from manifactor.models.moves.paths import Pairs
from manifactor.models.peeling.division import Split
from manifactor.models.pieces import ByPieces
from manifactor.models.sums.summands import ByTerms, Sum
from manifactor.models.triplets import Cut, Triplets
from manifactor.operators.operator import Operator
from manifactor.samples import Samples
from manifactor.statistics import NOT_MEASURED

# Results of more samples do not hold the others that were proposed.
MOST_WITH_OTHERS = 100_000


@dataclass(frozen=True)
class Proposal:
    """A result that a model proposed, what was measured of it, and how often such ones are right.

    A model that shows nothing, or could not be solved, has no factors, and a reason `why_not`.
    """

    model: str
    n_factors: int
    shapes: tuple[str, ...] = ()  # of each factor in words, such as "a circle"
    probability: float = NOT_MEASURED
    measured: dict[str, float] = field(default_factory=dict)
    why_not: str = ""

    @property
    def shown(self) -> str:
        """The factors in words, or why there are none."""
        return shapes_in_words(self.shapes) or self.why_not

    def __str__(self) -> str:
        return f"{percent(self.probability):>5}  {self.model:16}  {self.shown}"


class Proposals(tuple[Proposal, ...]):
    """What was proposed: the result that was returned, then the others, likeliest first."""

    def __str__(self) -> str:
        rows = [f"{number:2}  {each}" for number, each in enumerate(self)]
        return "\n".join([" k  right  model             factors", *rows])


@dataclass(frozen=True, repr=False)
class Factorization(PickledFields):
    """Factors, the evidence for them, and the diffusion they were found in."""

    factors: tuple[Factor, ...]  # the one with the smallest eigenvalue first
    evidence: Evidence
    # The one that was given, one of more functions, or one in another sense of a product
    diffusion: Operator
    # How batches of functions fell into blocks, by `method="gradients"`
    splits: tuple[Split, ...] = ()
    triplets: Triplets | None = None
    cut: Cut | None = None  # by `method="triplets"`
    placer: ByFunctions | Integrated | ByTerms | ByPieces = field(default_factory=ByFunctions)
    # "method" and "factors", "sense" where several were looked at, "functions" where more of them
    # were computed than given, and "term 1" where a term of a sum is a surface that may have
    # several factors
    choices: dict[str, Choice] = field(default_factory=dict)
    # What was proposed: the result, then the others, likeliest first
    proposals: tuple[Proposal, ...] = ()
    # What archives do not hold: how to take another proposal; the samples, with rows and moves; and
    # warnings, which the estimator issues
    take: "Callable[[int], Factorization] | None" = field(default=None, repr=False, compare=False)
    drawn: Samples | None = field(default=None, repr=False, compare=False)
    warned: tuple[Warned, ...] = ()

    def __repr__(self) -> str:
        return f"Factorization({self.evidence.verdict}, {list(self.factors)})"

    @property
    def in_graph(self) -> np.ndarray:
        """Whether each sample is in the graph, (n_samples,)."""
        return ~self.diffusion.graph.outliers

    @property
    def coefficients(self) -> tuple[np.ndarray, ...]:
        """The functions of each factor as combinations of the spectrum's; none of a sum."""
        return self.placer.coefficients

    @property
    def sum(self) -> Sum | None:
        """The terms that add up to the samples, if the factors are those."""
        return self.placer.sum if isinstance(self.placer, ByTerms) else None

    def locator(self, n_new: int) -> Locate:
        """Return a function that places prepared samples, about `n_new` in all."""
        if self.diffusion.points is None:
            raise ValueError(
                "new samples are placed by their distances to the training samples, which "
                "a precomputed graph does not have; fit samples instead."
            )
        return self.placer.locator(self.factors, self.diffusion, n_new)

    def places(self) -> PlaceSpace:
        """Return the places of the samples in the graph."""
        return PlaceSpace(
            tuple(factor.topology for factor in self.factors),
            tuple(factor.embedding.shape[1] for factor in self.factors),
            np.hstack([factor.embedding[self.in_graph] for factor in self.factors]),
        )

    @cached_property
    def window(self) -> Choice:
        """How many samples to average at a place; only for samples that are points.

        It is found when first asked for, and is no field: archives and pickles are the same before
        and after.
        """
        points = self.diffusion.points
        assert points is not None
        return choose_window(self.places(), points[self.in_graph])

    def choose(self, k: int) -> "Factorization":
        """Return the result of number `k` of `proposals`, with its own evidence."""
        if k != 0 and len(self.proposals) < 2:
            raise ValueError(f"`k` must be 0, as nothing else was proposed; got {k!r}.")
        k = require_count("k", k, low=0, high=max(len(self.proposals) - 1, 0))
        if self.take is None:
            if k == 0:
                return self
            raise ValueError(
                "a candidate can be chosen only where it was found; results that were loaded or "
                f"unpickled, or are of more than {MOST_WITH_OTHERS:,} samples, hold one. Fit the "
                f"samples again, with `sense={self.proposals[k].model!r}` if that is a sense."
            )
        if self.proposals[k].why_not:
            model, why = self.proposals[k].model, self.proposals[k].why_not
            raise ValueError(
                f"candidate {k} must have factors; the model {model!r} has none: {why}. Choose "
                "another one."
            )
        return replace(self.take(k), proposals=self.proposals, take=self.take)

    def __getstate__(self) -> dict:
        """Return the fields but for the other results, which hold everything that was computed."""
        return super().__getstate__() | {"take": None}

    def settled(self) -> "Factorization":
        """Return the same with everything in the host's memory."""
        return replace(self, diffusion=self.diffusion.settled())

    def searchable(self, n_jobs: int | None) -> "Factorization":
        """Return the same with neighbour searches, which archives do not hold."""
        placer = self.placer.searchable(n_jobs)
        return replace(self, diffusion=self.diffusion.searchable(n_jobs), placer=placer)

    def with_copies(self, given: Samples, rows: np.ndarray, copy_of: np.ndarray) -> "Factorization":
        """Return the result of given samples, of which some `rows` were factored.

        All others are copies of them, and lie where these lie.
        """
        return replace(
            self,
            factors=tuple(factor.with_copies(copy_of) for factor in self.factors),
            diffusion=self.diffusion.with_copies(rows, copy_of),
            placer=self.placer.with_copies(rows, copy_of),
            take=self.take and (lambda k: self.choose(k).with_copies(given, rows, copy_of)),
            drawn=given,
        )

    # Questions to a result. The estimator asks them for arrays of any kind.

    @property
    def names(self) -> list[str]:
        """Names of the columns of embeddings side by side: factor1_0, ..."""
        return [
            f"factor{number}_{column}"
            for number, factor in enumerate(self.factors, start=1)
            for column in range(factor.embedding.shape[1])
        ]

    @property
    def rates(self) -> list[np.ndarray]:
        """Rates at which the functions of each factor are forgotten, where moves are known."""
        unit = self.diffusion.time
        if np.isnan(unit):
            raise AttributeError("`rates_` needs moves of the samples, such as `times`, in `fit`.")
        # In units of moves, a function of eigenvalue l is forgotten at a rate of l / 2.
        return [factor.eigenvalues / (2 * unit) for factor in self.factors]

    def locate(self, X: np.ndarray) -> list[Placed]:
        """Return where new samples, in the columns of the fit, lie on each factor."""
        return place_blocks(self.diffusion.prepared(X), self.locator(len(X)))

    def samples_at(
        self, places: np.ndarray, values: np.ndarray | None = None, n_neighbors: int | str = "auto"
    ) -> np.ndarray:
        """Return samples at places, or other values that were given for each sample of the fit."""
        places = self.checked_places(places)
        given, table = self._values(values)
        if isinstance(n_neighbors, str):
            require_choice("n_neighbors", n_neighbors, ("auto",), "or a number")
            n_neighbors = self.window_of(values).value
        count = require_count("n_neighbors", n_neighbors, low=1, high=len(table))
        at = values_at(self.places(), table, places, count).reshape(len(places), *given.shape[1:])
        return self.diffusion.unprepared(at) if values is None else at

    def window_of(self, values: np.ndarray | None) -> Choice:
        """Return how many samples are averaged at a place, and why."""
        table = self._values(values)[1]
        return self.window if values is None else choose_window(self.places(), table)

    def places_along(
        self, factor: int, n_frames: int = 20, others: np.ndarray | None = None
    ) -> np.ndarray:
        """Return places at even steps along one factor, with the others held at a place."""
        factor = require_count("factor", factor, low=0, high=len(self.factors) - 1)
        n_frames = require_count("n_frames", n_frames, low=2, high=100_000)
        topology, space = self.factors[factor].topology, self.places()
        held = space.typical() if others is None else self.checked_places(others, "others")
        if len(held) != 1:
            raise ValueError(
                f"`others` must be one place; got {len(held)}. Pass one row of `transform`."
            )
        if topology == "other":
            raise ValueError(
                f"`factor` must be an interval or a circle, which have an order; factor {factor} "
                "is a surface. Pass places along a path of your own to inverse_transform."
            )
        parts = space.columns(np.repeat(held, n_frames, axis=0))
        parts[factor] = even_steps(topology, n_frames)
        return np.hstack(parts)

    def along(self, factor: int, n_frames: int = 20) -> np.ndarray:
        """Return samples along one factor, with the others held at a typical place."""
        return self.samples_at(self.places_along(factor, n_frames))

    def markov_model(self, factor: int, moves: Pairs | None, n_states: int = 20) -> MarkovModel:
        """Return a Markov model of moves along one factor."""
        factor = require_count("factor", factor, low=0, high=len(self.factors) - 1)
        if not isinstance(moves, Pairs):
            raise ValueError(
                "a Markov model needs `pairs`, `times` or `trajectories` in `fit`, which this fit "
                "was made without, or loaded from a file without. Fit them again."
            )
        if self.factors[factor].coordinate is None:
            raise ValueError(
                f"`factor` must be an interval or a circle; factor {factor} is a surface. Give its "
                "places, from `locate`, to a clustering of your own."
            )
        high = max(2, len(moves.before) // 10)
        n_states = require_count("n_states", n_states, low=2, high=high)
        first, last = (self.locate(each)[factor] for each in (moves.before, moves.after))
        assert first.coordinate is not None
        assert last.coordinate is not None
        top = 2 * np.pi if self.factors[factor].topology == "circle" else 1.0
        return markov_model(first.coordinate, last.coordinate, n_states, lag=moves.time, top=top)

    def columns(self) -> tuple[np.ndarray, np.ndarray | float]:
        """Return the samples of the fit in their own columns, and variances of dropped noise."""
        points, preparation = self.diffusion.points, self.diffusion.preparation
        if points is None:
            raise ValueError(
                "`X` must be given if the fit knows distances only (`neighbors='precomputed'`); "
                "got None. Pass the samples that the distances are of."
            )
        hidden = 0.0
        if preparation is not None and self.diffusion.transformation is None:
            # It is of the same size in all directions.
            hidden = preparation.noise * (1 - (preparation.components**2).sum(axis=1))
        return self.diffusion.unprepared(points), hidden

    def checked_places(self, places: np.ndarray, argument: str = "X") -> np.ndarray:
        """Return places as they are; refuse those of another shape."""
        if places.shape[1:] != (len(self.names),) or not len(places):
            raise ValueError(
                f"places must have shape (n_places, {len(self.names)}), with one place or more and "
                f"the columns of `transform`: {', '.join(self.names)}; got {places.shape}. A "
                "circle has two columns, cosine and sine of its angle."
            )
        require_values(places, argument=argument)
        return places

    def _values(self, values: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Return values, one entry for each sample, and those in the graph as a table.

        For None, they are the samples of the fit, as prepared; distances have none.
        """
        given = self.diffusion.points if values is None else values
        if given is None:
            raise ValueError(
                "`values` must be given if the fit knows distances only "
                "(`neighbors='precomputed'`); got None. Pass the samples that the "
                "distances are of: inverse_transform(places, values=samples)."
            )
        n_samples = len(self.in_graph)
        if given.ndim == 0 or len(given) != n_samples:
            raise ValueError(
                f"`values` must have one entry for each of the {n_samples} samples of "
                f"the fit; got shape {given.shape}. If samples were drawn for the fit, "
                "`rows_` says which: values[fit.rows_]."
            )
        table = given.reshape(n_samples, -1)
        if values is not None:
            require_values(table, argument="values")
        return given, table[self.in_graph]
