"""The cost of a command as a record: totals, workers, words and tables."""

import pytest

from manifactor.runs.cost import PartCost, cost_of_parts, cost_of_pieces


def test_parts_follow_each_other_and_the_largest_takes_the_memory():
    parts = [PartCost("reading", 2, 3e8), PartCost("fitting", 70, 1e9)]
    cost = cost_of_parts([*parts, PartCost("placing", 0, 9e9)])
    assert (cost.seconds, cost.memory, cost.worker_memory) == (72, 1e9, 0)
    assert str(cost) == "about 1.0 GB and 72 s"
    assert cost.longest.name == "fitting"
    assert cost.as_rows() == [
        ["part", "time", "memory"],
        ["reading", "2 s", "0.3 GB"],
        ["fitting", "70 s", "1.0 GB"],
    ]


def test_a_part_below_a_second_is_no_whole_one():
    cost = cost_of_parts([PartCost("writing", 0.3, 1e9)])
    assert cost.as_rows()[1] == ["writing", "< 1 s", "1.0 GB"]


def test_memory_on_workers_is_not_that_of_the_client():
    fitting = PartCost("fitting", 30, 1e9)
    placing = PartCost("placing", 90, 2e9, on_workers=True)
    cost = cost_of_parts([fitting, placing], n_workers=4)
    assert str(cost) == "about 1.0 GB, 2.0 GB on each of 4 workers, and 2 minutes"
    assert cost.as_rows()[2] == ["placing", "2 minutes", "2.0 GB a worker"]
    alone = cost_of_parts([fitting, placing])
    assert str(alone) == "about 2.0 GB and 2 minutes"


@pytest.mark.parametrize(
    ("seconds", "n_workers", "elapsed"),
    [
        ((10, 10, 10, 10), 2, 20),
        ((10, 10, 100), 2, 100),  # the longest is not divided
        ((10, 20), 8, 20),
    ],
)
def test_pieces_are_divided_over_workers(seconds, n_workers, elapsed):
    pieces = [PartCost(str(k), each, 1e9 + k) for k, each in enumerate(seconds)]
    cost = cost_of_pieces(pieces, n_workers=n_workers)
    assert cost.seconds == elapsed
    assert cost.n_workers == min(n_workers, len(seconds))
    assert cost.worker_memory == 1e9 + len(seconds) - 1
    assert cost.memory == 2e8
