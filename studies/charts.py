"""Draw the charts of docs/accuracy.md and docs/peers.md from the tables on these pages.

python -m studies.charts
"""

import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from manifactor.scores import wilson_interval
from manifactor.views import plots

DOCS = Path(__file__).parents[1] / "docs"
# Inches: as wide as a narrow screen, on which the letters stay as large as those of the text.
WIDTH = 4.4
# Methods of the first table of docs/accuracy.md that are compared with manifactor.
SIMPLER = ("triplets", "ica", "pca")


def svg_file(svg: str) -> bytes:
    """Return a drawing of `plots.svg` as the content of an .svg file.

    The file has a background of its own, and colours for light and for dark screens.
    """
    width, height = re.findall(r'viewBox="0 0 (\S+) (\S+)"', svg)[0]
    attributes = (
        'xmlns="http://www.w3.org/2000/svg" '
        'xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{width}pt" height="{height}pt"'
    )
    colours = resources.files("manifactor.views").joinpath("templates", "colours.css")
    style = f"{colours.read_text(encoding='utf-8')}svg {{ color: var(--ink) }}"
    # The attribute `fill` is for programs that know no variables.
    ground = 'width="100%" height="100%" fill="#fff" style="fill: var(--ground)"'
    opening, body = svg.split(">", 1)
    opening = opening.replace("<svg ", f"<svg {attributes} ", 1)
    return f"{opening}><style>{style}</style><rect {ground}/>{body}\n".encode()


def table(page: str, first: str) -> list[dict[str, str]]:
    """Return the rows of a table, by the titles of its columns.

    >>> table("text\\n\\n| a | b |\\n|---|---|\\n| 1 | 2 |\\n\\ntext", "a")
    [{'a': '1', 'b': '2'}]
    """
    start = page.index(f"| {first} |")
    lines = page[start:].partition("\n\n")[0].splitlines()
    head, _, *rows = ([cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines)
    return [dict(zip(head, row, strict=True)) for row in rows if len(row) == len(head)]


def share(text: str) -> tuple[int, int]:
    """Return the two numbers of a cell such as "4 of 5"."""
    right, n = re.match(r"(\d+) of (\d+)", text).groups()
    return int(right), int(n)


def solved(rows: list[dict[str, str]], method: str) -> dict[str, tuple[int, int]]:
    """Return how many draws of each data set a method of docs/peers.md solved."""
    own = (row for row in rows if row["method"].partition(" (")[0] == method)
    return {row["data"]: share(row["solved"]) for row in own}


def peers(ax, page: str) -> None:
    """Draw a dot for each draw, filled if a method solved it, and the sum below."""
    rows = table(page, "data")
    methods = list(dict.fromkeys(row["method"].partition(" (")[0] for row in rows))
    names = list(dict.fromkeys(row["data"] for row in rows))
    for column, method in enumerate(methods):
        counts = solved(rows, method)
        colour = plots.colour(1 if method == "manifactor" else 0)
        for line, name in enumerate(names):
            right, n = counts[name]
            places = [column + (k - (n - 1) / 2) * 0.16 for k in range(n)]
            faces = [colour if k < right else "none" for k in range(n)]
            ax.scatter(places, [line] * n, s=9, c=faces, edgecolors=colour, linewidths=0.6)
        total = f"{sum(right for right, _ in counts.values())}"
        ax.text(column, len(names), total, ha="center", va="center", weight="bold", color=colour)
    most = sum(n for _, n in counts.values())
    labels = [name.replace(", ", ",\n") for name in names] + [f"all {most}"]
    ax.set_yticks(range(len(labels)), labels=labels)
    ax.set_xticks(range(len(methods)), labels=[wrapped(m) for m in methods], rotation=90)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set(xlim=(-0.5, len(methods) - 0.5), ylim=(len(names) + 0.5, -0.6))


def wrapped(method: str) -> str:
    """Return the name of a method in lines of about equal length."""
    return {
        "the same, manifactor's kernel": "the same,\nmanifactor's kernel",
        "published algorithm": "published\nalgorithm",
    }.get(method, method)


def accuracy(ax, page: str) -> None:
    """Draw the share of solved runs of each group with its interval."""
    rows = [row for row in table(page, "group") if row["group"] != "twisted"]
    rates = []
    for row in rows:
        low, high = (float(end.rstrip("%")) for end in row["95 % interval"].split("-"))
        simpler = row["group"].endswith(SIMPLER) and ":" in row["group"]
        rates.append((row["group"], float(row["solved"].rstrip("%")), low, high, simpler))
    draw_rates(ax, rates)
    ax.set_xlabel("solved runs, %, and 95 % interval")


def calibration(ax, page: str) -> None:
    """Draw the share of right answers of each kind of problem with its interval."""
    rates = []
    for row in table(page, "kind"):
        n = int(row["problems"])
        right = float(row["right"].rstrip("%"))
        low, high = wilson_interval(round(right * n / 100), n)
        rates.append((f"{row['kind']} ({n})", right, 100 * low, 100 * high, False))
    draw_rates(ax, rates)
    ax.set_xlabel("right answers, %, and 95 % interval")


def draw_rates(ax, rates) -> None:
    """Draw a line for each rate: name, share, both ends of its interval, grey or not."""
    for line, (_, value, low, high, grey) in enumerate(rates):
        colour = plots.GREY if grey else plots.colour(0)
        ax.plot((low, high), (line, line), color=colour, linewidth=1.2)
        ax.plot(value, line, "o", color=colour, markersize=4)
    ax.set_yticks(range(len(rates)), labels=[name for name, *_ in rates])
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color=plots.GREY, alpha=0.25, linewidth=0.6)
    ax.set(xlim=(-2, 102), ylim=(len(rates) - 0.4, -0.6))


def settings(ax, page: str) -> None:
    """Draw how many verdicts change where a setting is 1.5 times as large or as small."""
    rows = table(page, "setting")
    for k, (change, name) in enumerate((("x 1.5", "1.5 times"), ("/ 1.5", "divided by 1.5"))):
        counts = [int(row[f"verdicts, {change}"]) for row in rows]
        lines = [line + (k - 0.5) * 0.36 for line in range(len(rows))]
        ax.barh(lines, counts, height=0.34, color=plots.colour(k), label=name)
    ax.set_yticks(range(len(rows)), labels=[row["setting"] for row in rows])
    ax.tick_params(axis="y", length=0)
    ax.set(ylim=(len(rows) - 0.4, -0.6), xlabel="verdicts that change, of 26")
    ax.legend(frameon=False, loc="lower right")


# The page of each chart, and its inches of height.
CHARTS = {
    peers: ("peers", 4.6),
    accuracy: ("accuracy", 7.6),
    calibration: ("accuracy", 2.3),
    settings: ("accuracy", 4.2),
}


def drawn() -> Iterator[tuple[str, bytes]]:
    """Yield the name of each chart and the content of its file."""
    for draw, (page, height) in CHARTS.items():
        with plots.style(plots.PAGE):
            figure = plots.new_figure(WIDTH, height)
            draw(figure.subplots(), (DOCS / f"{page}.md").read_text(encoding="utf-8"))
            yield draw.__name__, svg_file(plots.svg(figure, draw.__name__))


if __name__ == "__main__":
    for name, content in drawn():
        (DOCS / "figures" / f"{name}.svg").write_bytes(content)
