import pytest

from manifactor import SampleWarning
from manifactor.factoring.judging.criteria import EvidenceSettings
from manifactor.factoring.judging.weighing import warn_of_few_samples
from manifactor.factoring.measures.density import evenness


def test_more_samples_are_advised_only_where_samples_are_even(rng):
    even = evenness(rng.uniform(size=(1000, 2)), 2)
    uneven = evenness(rng.normal(size=(1000, 2)), 2)
    with pytest.warns(SampleWarning, match="About 700 samples would help"):
        warn_of_few_samples(700, "few", even, settings=EvidenceSettings())
    with pytest.warns(SampleWarning, match="more samples of the same kind may not"):
        warn_of_few_samples(700, "few", uneven, settings=EvidenceSettings())
