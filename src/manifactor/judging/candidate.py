"""A candidate: factors that a model proposes, what they were read from, and what was measured."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import count, islice
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.random import Generator

from manifactor._support.errors import Warned
from manifactor._support.parameters import Choice
from manifactor._support.threads import map_threads
from manifactor._support.values import quotient
from manifactor.factors.factor import Factor, Reading
from manifactor.factors.placing import place_blocks
from manifactor.judging.evidence import VERDICTS, verdict_of
from manifactor.judging.measure import Test, Tested
from manifactor.judging.measures import product
from manifactor.judging.measures.density import Evenness, evenness
from manifactor.judging.measures.places import (
    PlacedSamples,
    place_samples,
    prepared_noise,
    signal_share,
)
from manifactor.judging.probability import Sampling
from manifactor.judging.table import CRITERIA, MEASURES, PLACED, SAMPLED
from manifactor.models.moves import motion
from manifactor.models.moves.paths import Pairs
from manifactor.models.peeling.division import Split
from manifactor.models.peeling.peeling import Dimensions, Look, Peeling
from manifactor.models.pieces import Pieces, find_pieces
from manifactor.models.separable.symmetry import Symmetries
from manifactor.operators.operator import Operator
from manifactor.samples import Samples
from manifactor.statistics import NOT_MEASURED, Measurement


@dataclass(frozen=True)
class Peeled:
    """Blocks of functions, and the dimensions that they have."""

    peeling: Peeling
    dimensions: Dimensions  # of the data and of the blocks


# Factors may be noise up to so many times the size of the noise that no factor tells: noise that is
# taken for a factor has 1 to 1.3 times that, and 2 to 3 where it grows by column. At true
# coordinates, with noise of .45 of the smallest factor, there are 1.7 and more.
MAY_BE_NOISE = 3.0


# Models that have random numbers of their own, in the order in which these are spawned.
# New names come last, so that the numbers of the others stay the same.
STREAMS = ("geometry", "sum", "volume", "density", "separable", "ica", "ica of functions")


def streams_of(rng: Generator) -> dict[str, Generator]:
    """Return random numbers for models: what one finds does not depend on the others."""
    # Those of the geometry are the generator itself.
    return dict(zip(STREAMS[1:], rng.spawn(len(STREAMS))[1:], strict=True))


def _nothing(*_: Any, **__: Any) -> Any:
    return None


def density_of(operator: Operator) -> Evenness:
    """Return how even the samples of an operator are; nan where only distances are known."""
    if operator.points is None:
        return Evenness(NOT_MEASURED, NOT_MEASURED)
    samples = np.asarray(operator.distinct_points)
    return evenness(samples, operator.dimension, operator.distinct_metric)


def dropped_variance(operator: Operator, X) -> float:
    """Return the mean variance of the components of samples that their preparation left out."""
    preparation, samples = operator.preparation, operator.points
    if preparation is None or samples is None or sp.issparse(X):
        return 0.0
    n_columns, n_kept = preparation.components.shape
    if n_kept == n_columns:
        return 0.0
    some = slice(None, None, max(1, len(X) // 2000))
    given = operator.transformed(np.asarray(X[some], dtype=float)).var(axis=0).sum()
    kept = np.asarray(samples[some]).var(axis=0).sum()
    return max(0.0, float(given - kept)) / (n_columns - n_kept)


@dataclass(repr=False)
class Facts:
    """What is the same for all models: the samples, the settings, and what is measured once."""

    operator: Operator  # of the samples as they are, by lengths
    n_asked: int | None
    drawn: Samples  # with moves, noise and names of columns
    settings: Any = None  # what the caller set of the factorization
    # Whether all models may be tried, as nothing is set that only some of them know
    is_free: bool = False
    columns: dict[str, tuple[int, ...]] = field(default_factory=dict)  # no measurements
    # Halves that tell structure from noise are always the same: `random_state` decides no verdict
    rng: Generator = field(default_factory=lambda: np.random.default_rng(0))
    streams: dict[str, Generator] = field(default_factory=dict)
    # A further search of other samples, and the result of what was tried
    search: Callable[..., Any] = _nothing
    conclude: Callable[..., Any] = _nothing
    # Operator of the same samples by other settings; the facts of pairs, given a verdict
    diffuse: Callable[[Mapping[str, Choice]], Operator] = _nothing
    again: "Callable[[str], Facts | None] | None" = None
    may_be_counts: bool = False
    report: Callable[[float], None] = _nothing
    results: dict[tuple[int, ...], Any] = field(default_factory=dict)
    agreed: dict[tuple[int, int], Any] = field(default_factory=dict)  # of pairs of candidates
    # Models that were passed over, and why: they could not be solved, or show less than was asked
    passed_over: dict[str, str] = field(default_factory=dict)

    @cached_property
    def density(self) -> Evenness:
        """How even the samples are; nan where only distances are known."""
        return density_of(self.operator)

    @cached_property
    def pieces(self) -> Pieces | None:
        """Pieces that the samples fall into, if these may be copies of each other."""
        return find_pieces(self.operator)

    def renewed(self, operator: Operator) -> "Facts":
        """Return the facts of a further search, whose random numbers start anew."""
        rng = np.random.default_rng(0)
        return replace(
            self,
            operator=operator,
            rng=rng,
            streams=streams_of(rng) if self.is_free else {},
            results={},
            agreed={},
            passed_over={},
            may_be_counts=False,
            again=None,
        )

    def stream(self, name: str) -> Generator:
        """Return the random numbers of a model, which do not depend on what others find."""
        return self.streams.get(name, self.rng)

    @property
    def is_moving(self) -> bool:
        """Whether moves of the samples are known."""
        return self.operator.metric is not None or bool(self.operator.lagged)

    @cached_property
    def sampling(self) -> Sampling:
        """What is known of the samples before any factor is found."""
        operator, spread = self.operator, self.density.spread
        columns = 0 if operator.points is None else operator.points.shape[1]
        return Sampling(len(operator.graph.distinct), operator.dimension, spread, columns)


@dataclass(frozen=True)
class Candidate(Tested):
    """Factors that a model proposes; none where it finds that the data are one factor."""

    model: str  # name of the row of the table of models
    sense: str  # in which the data are a product
    operator: Operator
    facts: Facts = field(repr=False)
    kinds: Set[str] = frozenset()  # kinds of results whose measures are taken
    factors: tuple[Factor, ...] = ()
    placer: Any = None  # of new samples on the factors
    read: Any = None  # what the factors were read from, such as `Peeled` or a `Sum`
    # Factors as they were read, if coordinates were corrected afterwards
    raw: tuple[Factor, ...] = ()
    readings: tuple[Reading, ...] = ()
    rng: Generator | None = None
    halves: float = NOT_MEASURED  # share of a sum that the better half of the samples finds again
    strict: bool = False  # whether it is a further chance to find a product by accident
    numbers: Mapping[str, Measurement] = field(default_factory=dict)
    tests: tuple[Test, ...] = ()
    # How often such results are right, and how often true, if not finished; 0 for one factor, which
    # remains if nothing else is likely; nan where it is not known
    probability: float = NOT_MEASURED
    true: float = NOT_MEASURED
    inputs: Mapping[str, float] = field(default_factory=dict)  # what these follow from
    details: str = ""
    inner: Mapping[int, "Candidate"] = field(default_factory=dict)  # terms that are divided
    choices: Mapping[str, Choice] = field(default_factory=dict)
    warned: tuple[Warned, ...] = ()
    # The circle beside which all else is noise, if there is one, and what places samples on it
    as_circle: tuple[tuple[Factor, ...], Any] | None = None
    alike: Symmetries | None = None  # of a shape that looks the same everywhere, by other models
    # Of one factor, the likeliest division into several, and the tests of models that show one
    instead: "Candidate | None" = None
    undivided: tuple[Test, ...] = ()

    @property
    def as_read(self) -> tuple[Factor, ...]:
        """The factors that are measured."""
        return self.raw or self.factors

    @property
    def looks(self) -> tuple[Look, ...]:
        """The functions and blocks of all samples, then those of parts of them."""
        return self.read.peeling.looks

    @property
    def n_distinct(self) -> int:
        """Number of distinct samples."""
        return len(self.operator.graph.distinct)

    @property
    def rates(self) -> list[float]:
        """The lowest eigenvalue of each factor, of the data as a whole if there are none."""
        if not self.factors:
            return [float(self.operator.spectrum.eigenvalues[1])]
        return [float(factor.eigenvalues[0]) for factor in self.factors]

    @cached_property
    def density(self) -> Evenness:
        """How even the samples of its operator are."""
        ours = self.operator is self.facts.operator
        return self.facts.density if ours else density_of(self.operator)

    @property
    def inliers(self) -> np.ndarray:
        """Whether each sample is in the graph, and no copy of another one, (n_samples,)."""
        graph = self.operator.graph
        rows = graph.undrawn & ~graph.outliers
        rows[graph.distinct] = True
        return rows

    @property
    def distinct_places(self) -> list[np.ndarray]:
        """Places of the `inliers` on each factor, (n, c)."""
        return [factor.embedding[self.inliers] for factor in self.as_read]

    @cached_property
    def untold(self) -> product.Untold:
        """What the factors do not tell of the samples."""
        dropped = dropped_variance(self.operator, self.facts.drawn.columns)
        return product.untold(self.placed, dropped)

    @property
    def beyond_noise(self) -> list[int]:
        """Numbers of the factors above the widest gap of sizes below which all may be noise.

        All of them where none may be, or where the size of noise is not known.
        """
        above = np.array(self.untold.above)
        order = np.argsort(-above, kind="stable")
        following = above[order][1:]
        may_be = following < MAY_BE_NOISE
        if len(above) != len(self.as_read) or not may_be.any():
            return [*range(len(self.as_read))]
        ratio = np.where(may_be, quotient(above[order][:-1], following), 0.0)
        return sorted(order[: int(ratio.argmax()) + 1].tolist())

    @cached_property
    def own_leakage(self) -> np.ndarray:
        """R^2 with which coordinates on factor i predict factor j; terms of a sum are whole."""
        return product.leakage(self.distinct_places)

    @cached_property
    def placed(self) -> PlacedSamples | None:
        """Samples with their coordinates in one unit of length; None if distances are known."""
        if self.operator.points is None:
            return None
        places = [factor.embedding for factor in self.as_read]
        dimensions = [factor.dimension for factor in self.as_read]
        return place_samples(places, dimensions, self.operator.points, inliers=self.inliers)

    @cached_property
    def couplings(self) -> dict[str, Measurement]:
        """How far moves on the factors depend on each other; {} for one factor."""
        path = self.operator.path
        if path is None or len(self.factors) < 2:
            return {}
        moves = path.moves(motion.time_of_move(motion.TESTED_MOVE, max(self.rates)))
        locate = self.placer.locator(self.factors, self.operator, 2 * len(moves[0]))
        places = [[each.embedding for each in place_blocks(some, locate)] for some in moves]
        jointly = isinstance(path, Pairs)
        return motion.couplings(*places, n_repeats=path.n_repeats, jointly=jointly)

    def signal_shares(self) -> list[float]:
        """Return the share of each factor's variance that noise of known size leaves.

        Noise of the same size is added to the samples once more; how far it moves the places
        estimates how far the noise already present has moved them.
        """
        # Placing is written for the host's side of a device.
        operator, facts = self.operator.settled(), self.facts
        samples, preparation = operator.samples, operator.preparation
        assert facts.drawn.noise is not None
        size = facts.drawn.noise
        noise = prepared_noise(size, len(samples), preparation=preparation, rng=facts.rng)
        locate = self.placer.locator(self.factors, operator, len(samples))
        moved = place_blocks(samples + noise, locate)
        pairs = zip(self.factors, moved, strict=True)
        return [signal_share(factor.embedding, after.embedding) for factor, after in pairs]

    @property
    def leakage(self) -> np.ndarray:
        """R^2 with which coordinates on factor i predict factor j, inside of terms, too."""
        if len(self.factors) < 2:
            return np.full((1, 1), NOT_MEASURED)
        if not self.inner:
            return self.own_leakage
        sizes = [len(part) for part in self.terms]
        leakage = np.repeat(np.repeat(self.own_leakage, sizes, axis=0), sizes, axis=1)
        for number, inner in self.inner.items():
            members = np.array(self.terms[number]) - 1
            leakage[np.ix_(members, members)] = inner.leakage
        return leakage

    @property
    def splits(self) -> tuple[Split, ...]:
        """How the functions fell into blocks, step by step."""
        return self.read.peeling.splits if isinstance(self.read, Peeled) else ()

    @property
    def null(self) -> float:
        """Largest noise of the score that functions were divided by, inside of terms, too."""
        noise = NOT_MEASURED
        if isinstance(self.read, Peeled):
            splits = self.read.peeling.splits[: None if self.factors else 1]
            noise = max((float(split.noise.max(initial=0)) for split in splits), default=0.0)
        return float(np.fmax.reduce([noise, *(inner.null for inner in self.inner.values())]))

    @property
    def dependence(self) -> float:
        """Permutation p-value of independent coordinates, inside of terms, too."""
        if len(self.factors) < 2:
            return NOT_MEASURED
        p = np.fmin(self.value("dependence"), self.value("independence"))
        return float(np.fmin.reduce([p, *(inner.dependence for inner in self.inner.values())]))

    @property
    def symmetries(self) -> Symmetries | None:
        """Continuous symmetries; None where they were not looked for."""
        return self.alike or getattr(self.read, "symmetries", None)

    @property
    def terms(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of the factors of each term of a sum, from 1, where a term has several."""
        if not self.inner:
            return ()
        numbers = count(1)
        sizes = [
            len(self.inner[k].factors) if k in self.inner else 1 for k in range(len(self.as_read))
        ]
        return tuple(tuple(islice(numbers, size)) for size in sizes)

    def value(self, name: str) -> float:
        """Return a measured number; nan where it was not measured."""
        return self.numbers[name].value if name in self.numbers else NOT_MEASURED

    @property
    def verdict(self) -> str:
        """The verdict that follows from the probability; from the tests where it is not known."""
        tests = self.tests
        if not np.isnan(self.probability):
            tests = (CRITERIA["certainty"].judge(self.probability),)
        return verdict_of(tests, len(self.factors), self.sense)

    @property
    def has_wrong_lengths(self) -> bool:
        """Whether lengths along a factor depend on others, which coordinates that separate tell."""
        return any(CRITERIA[test.kind].about == "lengths" for test in self.failed)

    @property
    def is_sound(self) -> bool:
        """Whether there are several factors, and no failed test says that coordinates are wrong."""
        return len(self.factors) > 1 and not any(
            CRITERIA[test.kind].coordinates in ("wrong", "incomplete")
            or test.net > CRITERIA[test.kind].wrong_beyond
            for test in self.failed
            # A sum tells how well the axes of a Gaussian cloud are known, by a test of its own.
            if (self.sense, test.name) != ("sum", "identified")
        )

    @property
    def is_likely(self) -> bool:
        """Whether such results are right often enough to be returned."""
        if np.isnan(self.probability):
            return self.verdict == "product"
        return self.probability >= CRITERIA["probability"].limit


# Probabilities that differ by less are nearly the same.
NEARLY = 0.1


def rank(candidate: Candidate, highest: float = NOT_MEASURED) -> tuple:
    """Return what candidates are compared by: the greatest is the best.

    Likely ones come first; among those that are nearly as likely as the likeliest, a product, then
    coordinates that separate, then a product whose lengths are not one's: these also say how the
    factors belong together. Then the probability, where it is known; where it is not, the failed
    tests: how many say that coordinates are wrong, how many in all, and the error of the
    coordinates.
    """
    tests, probability = candidate.failed, np.nan_to_num(candidate.probability)
    wrong = sum(CRITERIA[test.kind].coordinates == "wrong" for test in tests)
    # The share of the samples that coordinates do not explain, and the squared cosine between
    # directions. With the cosine alone, which is noisy itself, 47 of 67 ellipsoids of 800 to 1,700
    # samples had right coordinates; with both, 56.
    error = 1 - candidate.value("explained") + candidate.value("crossing") ** 2
    return (
        candidate.is_likely,
        not probability < highest - NEARLY,
        # A product with wrong lengths comes after "separable", before "partial".
        -[*VERDICTS].index(candidate.verdict) - 1.5 * candidate.has_wrong_lengths,
        probability,
        *(-wrong, -len(tests), -np.nan_to_num(error)),
    )


def likeliest(candidates: Sequence[Candidate]) -> Candidate:
    """Return the best candidate; of equal ones, the first."""
    division = likeliest_division(candidates)
    highest = division.probability if division else 0.0
    return max(candidates, key=lambda candidate: rank(candidate, highest))


def likeliest_division(candidates: Sequence[Candidate]) -> Candidate | None:
    """Return the likeliest division into several factors, if the probability of one is known."""
    known = (c for c in candidates if len(c.factors) > 1 and not np.isnan(c.probability))
    return max(known, key=lambda candidate: candidate.probability, default=None)


def measured(candidate: Candidate, kinds: Set[str] = frozenset()) -> Candidate:
    """Return a candidate with measures of its kinds, or of others, and with their tests."""
    facts, kinds = candidate.facts, kinds or candidate.kinds
    rows = [row for row in MEASURES if row.models & kinds]
    # Made once, before several threads ask for them.
    if kinds & PLACED and candidate.placed is not None:
        _ = candidate.placed.local_fits, candidate.placed.halves
    if kinds & SAMPLED:
        _ = candidate.untold
    if "moves" in kinds:
        _ = candidate.couplings
    # Only one of them draws random numbers: results do not depend on the order of threads.
    values = map_threads(lambda row: row.of(candidate, facts), rows)
    numbers, tests = dict(candidate.numbers), list(candidate.tests)
    n_samples = None if candidate.operator.points is None else len(candidate.operator.points)
    for row, value in zip(rows, values, strict=True):
        if value is None:
            continue
        number = value if isinstance(value, Measurement) else Measurement(float(value))
        numbers[row.name] = number
        if not row.is_test:
            continue
        judge = partial(CRITERIA[row.name].judge, n_samples=n_samples, sense=candidate.sense)
        test = judge(number, strict=candidate.strict)
        if not (test.passed and row.only_failed):
            tests.append(test)
        # Tests of one factor after the first that fails rest on what it denies.
        if "one" in row.models and not test.passed:
            break
    return replace(candidate, numbers=numbers, tests=tuple(tests))
