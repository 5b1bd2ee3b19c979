"""Train an autoencoder of a film and write the data of examples/plot_autoencoder_in_time.py.

    pip install '.[gpu]'
    PYTHONPATH=. python benchmarks/film_latents.py [--seed 1] [--out examples/data]

The film and the autoencoder are those of `python -m studies.dynamics --groups autoencoder`.
"""

import argparse
import textwrap
from pathlib import Path

import numpy as np

from studies.dynamics import LINE, autoencoded, filmed, speeds_of, wandering

TEXT = """\
film-latents.npz: latents of an autoencoder of a film of two moving balls

Made by benchmarks/film_latents.py --seed {seed} with PyTorch {torch} on a CPU. No data of others \
are in it.

Film: {n} frames of 16 x 24 pixels. Each ball diffuses along a line of its own, in steps of .02 \
and .03 of its length, and is reflected at the ends. The lines cross, where the first ball hides \
the second one. Noise of .02 is added to each pixel.

Autoencoder: layers of 384, 128, 64 and 3 units and back, tanh between them, 30 epochs of Adam. It \
does not know the order of the frames.

Arrays:
"""
ARRAYS = """
  latents     (frames, 3), float16
  places      (frames, 2), float16, of both balls along their lines, from 0 to 1
  frames      (8, 16, 24), uint8: every 300th frame, from 0 to 255
"""


def main() -> None:
    import torch

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    root = Path(__file__).parents[1]
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=root / "examples" / "data")
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    kinds, n = (LINE, LINE), 20_000
    places = wandering(kinds, 0.02 * speeds_of(kinds), n, rng)
    film = filmed(places, kinds, rng)
    latents, _ = autoencoded(film, 3, arguments.seed)
    shown = film[:2400:300].reshape(-1, 16, 24)
    np.savez_compressed(
        arguments.out / "film-latents.npz",
        latents=latents.astype(np.float16),
        places=places.astype(np.float16),
        frames=(255 * shown.clip(0, 1)).astype(np.uint8),
    )
    paragraphs = TEXT.format(seed=arguments.seed, torch=torch.__version__, n=n).split("\n\n")
    text = "\n\n".join(textwrap.fill(each, 88) for each in paragraphs)
    (arguments.out / "film-latents.txt").write_text(f"{text}\n{ARRAYS}", encoding="utf-8")


if __name__ == "__main__":
    main()
