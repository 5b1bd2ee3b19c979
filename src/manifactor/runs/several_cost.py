"""Memory and time of several inputs or views that are fitted side by side."""

from collections.abc import Sequence

from manifactor._support.threads import cores
from manifactor.runs.cost import Cost, PartCost, cores_of_worker, cost_of_pieces
from manifactor.runs.input_cost import InputRates
from manifactor.runs.several import named_tasks
from manifactor.runs.task import Task


def forecast_side_by_side(
    tasks: Sequence[Task],
    *,
    n_workers: int | None = None,
    n_cores: int | None = None,
    rates: InputRates = InputRates(),
) -> Cost:
    """Return what it costs to fit tasks side by side, each with one worker."""
    count = n_workers or cores()
    each = cores_of_worker(count, n_cores)
    pieces = [_piece(name, task, each) for name, task in named_tasks(tasks).items()]
    return cost_of_pieces(pieces, n_workers=count, client=rates.process_bytes)


def _piece(name: str, task: Task, n_cores: int) -> PartCost:
    cost = task.forecast(task.open(), n_cores=n_cores)
    return PartCost(name, cost.seconds, cost.memory)
