"""The bridge to cryoDRGN, whose model decodes points in its coordinates."""

import re
from dataclasses import dataclass
from pathlib import Path

from manifactor.inputs.pickles import read_pickled_array
from manifactor.runs.bridges.commands import command, comment
from manifactor.runs.bridges.request import Request


@dataclass(frozen=True)
class _Model:
    """The files of a trained model."""

    weights: Path
    config: Path

    @property
    def is_there(self) -> bool:
        return self.weights.is_file() and self.config.is_file()

    @property
    def box(self) -> int | None:
        """Side of its volumes in voxels; None where the config does not state it."""
        found = re.fullmatch(r"\d{1,6}", self._stated("lattice_args", "D"))
        # The lattice of an even box has one point more, to be symmetric about 0.
        side = int(found[0]) - 1 if found else 0
        return side if side > 0 else None

    def trained_width(self) -> float | None:
        """Return the width in Angstrom of the images that it was trained on."""
        path = Path(self._stated("dataset_args", "ctf").strip("\"'"))
        if not path.is_file():
            return None
        try:
            table = read_pickled_array(path)
        except ValueError:
            return None
        if table.ndim != 2 or not len(table) or table.shape[1] < 2:
            return None
        # The first two columns are the box and the pixel size.
        width = float(table[0, 0]) * float(table[0, 1])
        return width if 0 < width < float("inf") else None

    def _stated(self, section: str, entry: str) -> str:
        """Return what a section of the config says; "" where it does not say it."""
        # Before version 2 the config was a pickle, which is not read here.
        if self.config.suffix != ".yaml":
            return ""
        inside = False
        for line in self.config.read_text("utf-8", "replace").splitlines():
            name, _, value = line.partition(":")
            if not line[:1].isspace():
                inside = name == section
            elif inside and name.strip() == entry:
                return value.strip()
        return ""


def cryodrgn_files(request: Request) -> dict[str, bytes]:
    """Return points for `cryodrgn eval_vol`, and the command."""
    points = request.points(request.latents())
    model = _model(request)
    commands = comment("volumes along the factor, by the model of the coordinates:")
    if model.is_there:
        commands += command("cd", request.folder)
        commands += _evaluation(model, _pixel_size(request, model))
        commands += comment("to see them along the factor, on the page of the run:")
        commands += f"# {_shown(request)}"
    else:
        commands += comment(
            f"the model was not found: there is no {model.weights.name} with a "
            f"config.yaml in {model.weights.parent}. Export again with --training "
            "FOLDER, the output folder of cryodrgn train_vae, for the command."
        )
    return {"z_values.txt": points, "commands.txt": commands.encode()}


def _shown(request: Request) -> str:
    """Return the command that shows the volumes."""
    run = request.run.folder.absolute()
    return command("manifactor", "report", run, "--volumes", request.folder)


def _evaluation(model: _Model, pixel_size: float | None) -> str:
    """Return the command that decodes the points."""
    words = ["cryodrgn", "eval_vol", str(model.weights), "-c", str(model.config)]
    words += ["--zfile", "z_values.txt", "-o", "volumes"]
    if pixel_size is not None:
        return command(*words, "--Apix", f"{pixel_size:.6g}")
    note = "the pixel size is not known: without --Apix, volumes have 1 A a voxel"
    return comment(note) + command(*words)


def _model(request: Request) -> _Model:
    """Return where the model of the coordinates lies."""
    given = request.run.input
    folder = (request.training or given.parent).absolute()
    # An epoch's coordinates, z.20.pkl, belong to its weights, weights.20.pkl.
    epoch = re.fullmatch(r"z(\.\d+)?\.pkl", given.name)
    weights = folder / f"weights{(epoch and epoch[1]) or ''}.pkl"
    old = folder / "config.pkl"
    return _Model(weights, old if old.is_file() else folder / "config.yaml")


def _pixel_size(request: Request, model: _Model) -> float | None:
    """Return the voxel size in Angstrom of the model's volumes.

    The model may have been trained on downsampled images: the width is what they share.
    """
    width = model.trained_width()
    if width is None:
        width = _width_of_images(request)
    box = model.box
    return None if width is None or box is None else width / box


def _width_of_images(request: Request) -> float | None:
    """Return the width in Angstrom of the run's images, None where it is unknown."""
    particles, image = request.particles, request.first_image
    if particles is None or particles.pixel_size is None or image is None:
        return None
    return image.shape[-1] * particles.pixel_size
