"""Settings of the measures of a factorization."""

from dataclasses import dataclass, field

from manifactor.factoring.measures.evenness import EvennessSettings
from manifactor.factoring.measures.filling import FillingSettings
from manifactor.factoring.measures.folding import FoldSettings
from manifactor.factoring.measures.gaussianity import GaussianSettings
from manifactor.factoring.measures.metric import MetricSettings
from manifactor.factoring.measures.placed_samples import PlacedSettings
from manifactor.factoring.measures.poles import PoleSettings
from manifactor.factoring.prediction import PredictionSettings
from manifactor.factoring.sums.independence import IndependenceSettings


@dataclass(frozen=True)
class PlaceTestSettings:
    """Settings of the measures that need places and samples only."""

    placed: PlacedSettings = field(default_factory=PlacedSettings)
    folds: FoldSettings = field(default_factory=FoldSettings)
    filling: FillingSettings = field(default_factory=FillingSettings)
    metric: MetricSettings = field(default_factory=MetricSettings)
    gaussian: GaussianSettings = field(default_factory=GaussianSettings)
    poles: PoleSettings = field(default_factory=PoleSettings)


@dataclass(frozen=True)
class MeasureSettings:
    """Settings of all measures."""

    # Measures of all samples are taken from as many, drawn at random: the error of a share is then
    # below 1/sqrt(20,000) = .007.
    samples: int = 20_000
    # Fewest functions of the low spectrum: a few pure functions without any product between them
    # would explain only themselves.
    low_functions: int = 16
    # The low spectrum ends above the products of the factors' lowest functions, with room for the
    # error of an eigenvalue.
    above_products: float = 1.1
    # Products are taken up to this ratio above the low spectrum, and the spectrum must reach as
    # far: an eigenfunction is a mixture of products a little above and below.
    product_margin: float = 1.3
    # An eigenfunction is a product if this share of it lies in the span of products.
    spanned: float = 0.5
    # Lowest functions of a factor that those of another look are compared with.
    spanning_functions: int = 8
    # Samples that two looks are compared at, and that places are shuffled at.
    compared_samples: int = 5_000
    # Principal components that are looked at; main directions are those with at least this share of
    # the variance.
    most_components: int = 20
    main_variance: float = 0.01
    # Permutations, which make 1/200 the smallest p-value.
    permutations: int = 199
    # Waves of an interval's ranks that places are compared by: the width of a square that stands on
    # its corner is one of two waves, in each of two clusters of four.
    waves: int = 6
    # Features weaker than this, relative to the strongest, are redundant.
    independent_feature: float = 1e-3
    # Samples that the modulation of a chart is averaged over: a mean square of 4,000 is accurate to
    # some 3 %.
    modulation_samples: int = 4000
    # How factors are predicted from places.
    prediction: PredictionSettings = field(default_factory=PredictionSettings)
    # Which parts of the samples are independent of all others.
    parts: IndependenceSettings = field(default_factory=IndependenceSettings)
    # How even samples are, and which clusters they fall into.
    evenness: EvennessSettings = field(default_factory=EvennessSettings)
    # Measures that need places and samples only.
    places: PlaceTestSettings = field(default_factory=PlaceTestSettings)
