"""What a fit will cost, printed before it starts."""

from argparse import Namespace

from manifactor._support.workers import Here, Workers
from manifactor.command.clusters import chosen_workers
from manifactor.command.terminal import aligned, note, show
from manifactor.runs.cost import Cost
from manifactor.spectral.forecast import Forecast


def n_workers(arguments: Namespace, otherwise: Workers = Here()) -> int:
    """Return how many workers there are: those of --cluster, or others."""
    with chosen_workers(arguments, otherwise) as workers:
        return workers.count


def elsewhere(device: str | None, cost: Forecast) -> str:
    """Return where the cost holds, for a device whose own cost is not known."""
    on_cpu = device in (None, "cpu")
    if on_cpu or cost.device_memory:
        return ""
    return " on the CPU, and less on the device"


def show_cost(cost: Cost, where: str = "", *, of: str = "part") -> None:
    """Print the cost of a fit, and that of each of its parts, or views."""
    dominant = ""
    if of == "part":
        share = cost.longest.seconds / cost.seconds
        dominant = f", {share:.0%} of it {cost.longest.name}"
    show(f"The fit will take {cost}{where}{dominant}.\n", alone=True)
    show(aligned(cost.as_rows(of)), alone=True)


def note_long_fit(cost: Forecast, where: str, *, patience: float = 20.0) -> None:
    """Announce a fit that takes longer than `patience`, in seconds."""
    # Shorter fits are over before the forecast has been read.
    if cost.seconds > patience:
        note(f"the fit will take {cost}{where}.")
