"""What was given with an input, and whether it goes with it."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from manifactor._support.regular_files import require_regular_file
from manifactor.inputs.columns import ColumnChoice
from manifactor.inputs.particle_choice import ParticleChoice


@dataclass(frozen=True)
class ImageSettings:
    """Settings that turn images into samples; None is chosen from the data.

    `standardise` is also for tables: it scales the components of images, or the columns of a table,
    to unit variance.
    """

    # The defaults go with every input; any other value is refused without images.
    phase_flip: bool = False
    mask_radius: float | None = None
    low_pass: float | None = None
    components: int | None = None
    standardise: bool = False


@dataclass(frozen=True)
class Given:
    """What was given with an input.

    What does not go with it is refused, not ignored: the caller would believe that it took effect.
    """

    particles: Any
    indices: Any
    view: tuple[float, float] | None
    settings: ImageSettings
    columns: ColumnChoice
    choice: ParticleChoice

    def require_volumes(self) -> None:
        """Refuse all that does not go with volumes, which have no particles."""
        of_images = self.settings != ImageSettings()
        given = {
            "--particles": self.particles is not None,
            "--ind": self.indices is not None,
            "--view": self.view is not None,
            "settings of images": of_images,
            "--columns": self.columns.columns is not None,
            "--drop": self.columns.drop is not None,
            **{name: bool(value) for name, value in self.choice.options.items()},
        }
        for name, is_given in given.items():
            if is_given:
                raise ValueError(f"{name} cannot be given for a folder of volumes. Leave it out.")

    def require_stack(self, path: Path) -> None:
        """Refuse what needs a file of particles, which a bare stack does not have."""
        require_regular_file(path)
        if self.view is not None:
            raise ValueError(
                f"a view can be picked where angles are known; {path} is a stack "
                "without any. Give its STAR or .cs file instead."
            )
        options = self.choice.options
        for name in ("--datadir", "--class", "--optics-group"):
            if options[name]:
                raise ValueError(
                    f"{name} goes with a file of particles; {path} is a stack. Give "
                    "its STAR or .cs file instead."
                )
        self.require_images(path)

    def require_images(self, path: Path) -> None:
        """Refuse particles and columns, which images have already."""
        # The results of a job in cryoSPARC, and its passthrough file.
        joined = is_cs(path) and self.particles is not None and is_cs(self.particles)
        if (self.particles is not None and not joined) or self.indices is not None:
            raise ValueError(
                f"--particles and --ind go with coordinates; {path} already is a file "
                "of particles. Leave them out."
            )
        if self.columns != ColumnChoice():
            raise ValueError(
                f"--columns and --drop go with tables; {path} holds images. Leave them out."
            )

    def require_table(self, path: Path) -> None:
        """Refuse a view and settings of images, which a table does not have."""
        of_images = replace(self.settings, standardise=False) != ImageSettings()
        if self.view is not None or of_images:
            raise ValueError(
                f"a view and settings of images go with particle images; {path} holds "
                "coordinates. Leave them out."
            )
        if self.choice.of_some:
            raise ValueError(
                f"--class and --optics-group choose particle images; {path} holds "
                "coordinates. Fit all, and choose afterwards: manifactor select "
                "--column rlnClassNumber 3 3."
            )
        if self.choice != ParticleChoice() and self.particles is None:
            raise ValueError(
                f"--datadir and --pixel-size go with particles; {path} holds "
                "coordinates. Give their particles with --particles."
            )

    def require_large_table(self, path: Path) -> None:
        """Refuse what does not go with a table whose rows are read in parts."""
        self.require_table(path)
        if self.particles is not None or self.indices is not None:
            raise ValueError(
                "--particles and --ind go with coordinates that are read as a whole; "
                f"{path} is read in parts. Add --coordinates csv."
            )


def is_cs(path) -> bool:
    """Return whether a file is one of cryoSPARC, by its name."""
    return Path(path).suffix.lower() == ".cs"
