"""How soon does the explorer show a run, and how soon does the image follow a slider?

The images show a bright spot on a small or a large ring: a circle times an interval.
They are written as a stack and a STAR file, factored by their true places, and looked
at with a real browser on this machine. The first view is complete when all pictures are
drawn and the mean image is loaded, an answer when the new image is loaded.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import mrcfile
import numpy as np
from playwright.sync_api import Page, sync_playwright

from manifactor.command.main import main as manifactor

from record import record

MOVES = 20
MOVE = """value => new Promise(done => {
  const image = document.querySelector("#seen img");
  const slider = document.querySelector("input.slide");
  const start = performance.now();
  image.addEventListener("load", () => done(performance.now() - start), { once: true });
  slider.value = value;
  slider.dispatchEvent(new Event("input"));
})"""
RANGE = """bounds => new Promise(done => {
  const fields = document.querySelectorAll(".factor input[type=number]");
  const [low, high] = [fields[1], fields[2]];
  const start = performance.now();
  const changed = new MutationObserver(() => done(performance.now() - start));
  changed.observe(document.body, { attributeFilter: ["data-selected"] });
  [low.value, high.value] = bounds;
  high.dispatchEvent(new Event("input"));
})"""


def written(folder: Path, n: int, size: int, turned: bool) -> list[str]:
    """Write n images into the folder; return the arguments of `manifactor fit`."""
    rng = np.random.default_rng(0)
    angle, far = rng.uniform(0, 2 * np.pi, n), rng.uniform(size=n)
    np.save(folder / "places.npy", np.column_stack([np.cos(angle), np.sin(angle), 4 * far]))
    grid = (np.arange(size) + 0.5) / size - 0.5
    with mrcfile.new_mmap(folder / "spots.mrcs", (n, size, size), mrc_mode=2) as stack:
        for start in range(0, n, 2000):
            part = slice(start, start + 2000)
            radius = 0.12 + 0.25 * far[part]
            x, y = radius * np.cos(angle[part]), radius * np.sin(angle[part])
            across = np.exp(-(((grid - x[:, None]) / 0.08) ** 2))
            down = np.exp(-(((grid - y[:, None]) / 0.08) ** 2))
            noise = rng.normal(scale=0.5, size=(len(radius), size, size))
            stack.data[part] = down[:, :, None] * across[:, None] + noise
    psi = rng.uniform(-180, 180, n) if turned else np.zeros(n)
    names = ["rlnImageName", "rlnAngleRot", "rlnAngleTilt", "rlnAnglePsi"]
    with (folder / "spots.star").open("w") as star:
        star.write(
            "data_particles\n\nloop_\n"
            + "".join(f"_{name} #{i}\n" for i, name in enumerate(names, start=1))
        )
        star.writelines(f"{i + 1}@spots.mrcs 0.0 0.0 {psi[i]:.3f}\n" for i in range(n))
    places, particles = str(folder / "places.npy"), str(folder / "spots.star")
    return ["fit", places, "--particles", particles]


def looked_at(run: Path, **known) -> None:
    command = [sys.executable, "-m", "manifactor.__main__"]
    command += ["explore", str(run), "--port", "0"]
    begun = time.perf_counter()
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,
        sync_playwright() as playwright,
    ):
        try:
            address = re.search(r"http\S+", server.stdout.readline()).group()
            known["seconds_to_address"] = round(time.perf_counter() - begun, 2)
            flags = ["--no-sandbox", "--enable-unsafe-swiftshader"]
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=flags
            )
            measure(browser.new_page(), address, known)
        finally:
            server.terminate()
    record("explorer", **known)


def measure(page: Page, address: str, known: dict) -> None:
    views = []
    for _ in range(3):
        start = time.perf_counter()
        page.goto("about:blank")
        page.goto(address)
        page.wait_for_selector("body[data-ready][data-near]")
        views.append(time.perf_counter() - start)
    known["seconds_to_first_view"] = [round(view, 2) for view in views]
    for mode in ("matched", "held"):
        page.get_by_label(mode).check()
        page.wait_for_timeout(1500)
        moves = [
            page.evaluate(MOVE, float(value))
            for value in np.random.default_rng(1).uniform(0.02, 0.98, MOVES)
        ]
        known[f"milliseconds_to_{mode}_image"] = {
            "median": round(np.median(moves)),
            "most": round(max(moves)),
        }
    counts = [
        page.evaluate(RANGE, [f"{low:.2f}", f"{low + 0.3:.2f}"])
        for low in np.linspace(0, 0.6, MOVES)
    ]
    known["milliseconds_to_count"] = {
        "median": round(np.median(counts)),
        "most": round(max(counts)),
    }
    known["milliseconds_to_count_of_a_lasso"] = [round(lassoed(page)) for _ in range(3)]


def lassoed(page: Page) -> float:
    """Return milliseconds from the end of a lasso to the count of its samples."""
    page.get_by_role("button", name="Clear").click()
    page.wait_for_selector("#selected:has-text('All')")
    plot = page.locator(".cloud.joint .plot > svg")
    plot.scroll_into_view_if_needed()
    box, before = plot.bounding_box(), page.evaluate("document.body.dataset.selected")
    turns = np.linspace(0, 2 * np.pi, 100)
    page.mouse.move(box["x"] + 0.9 * box["width"], box["y"] + 0.5 * box["height"])
    page.mouse.down()
    for x, y in zip(0.5 + 0.4 * np.cos(turns), 0.5 + 0.4 * np.sin(turns), strict=True):
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
    start = time.perf_counter()
    page.mouse.up()
    page.wait_for_function("before => document.body.dataset.selected !== before", arg=before)
    return 1e3 * (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--size", type=int, help="pixels (108 up to 100,000 images, 48 above)")
    parser.add_argument(
        "--in-plane", action="store_true", help="turn each image back, as for images of any psi"
    )
    parser.add_argument("--run", type=Path, help="look at this run only")
    arguments = parser.parse_args()
    if arguments.run is not None:
        looked_at(arguments.run, name=arguments.run.name)
        return
    for n in arguments.samples:
        size = arguments.size or (108 if n <= 100_000 else 48)
        with tempfile.TemporaryDirectory() as folder:
            fit = written(Path(folder), n, size, arguments.in_plane)
            assert manifactor([*fit, "--out", f"{folder}/run"]) == 0
            looked_at(Path(folder) / "run", samples=n, pixels=size, in_plane=arguments.in_plane)


if __name__ == "__main__":
    main()
