"""Draw the figures of docs/method.md: those of the examples plot_method_*.py."""

import runpy
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

from manifactor import plots

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "docs" / "figures"


def draw(example: Path) -> None:
    """Run an example; save its figures as NAME-1.png and so on."""
    runpy.run_path(str(example))
    name = example.stem.removeprefix("plot_").replace("_", "-")
    for number in plt.get_fignums():
        path = FIGURES / f"{name}-{number}.png"
        path.write_bytes(plots.picture(plt.figure(number))[".png"])
        print(path.relative_to(ROOT))
    plt.close("all")


if __name__ == "__main__":
    FIGURES.mkdir(exist_ok=True)
    for path in sorted((ROOT / "examples").glob("plot_method_*.py")):
        draw(path)
