"""The order of the examples in the gallery."""

from dataclasses import dataclass

# From the first example to read to the special ones; others follow by name.
ORDER = (
    "plot_torus.py",
    "plot_number_of_factors.py",
    "plot_no_product.py",
    "plot_new_samples.py",
    "plot_columns.py",
    "plot_movie_along_a_factor.py",
    "plot_pipeline.py",
    "plot_soft_densities.py",
    "plot_weak_factors.py",
    "plot_spectra.py",
    "plot_robot_camera.py",
    "plot_pendulums_in_time.py",
    "plot_molecular_dynamics.py",
    "plot_grid_cells.py",
    "plot_head_direction.py",
    "plot_cryoem_demo.py",
    "plot_cryoem_all_views.py",
    "plot_cryodrgn_latents.py",
    "plot_million.py",
)


@dataclass(frozen=True)
class GalleryOrder:
    """Sort key of an example's file name, as sphinx-gallery wants it.

    Attributes
    ----------
    src_dir : str
        Folder of the examples; not used.

    Examples
    --------
    >>> names = ["plot_a.py", "plot_million.py", "plot_torus.py"]
    >>> sorted(names, key=GalleryOrder(""))
    ['plot_torus.py', 'plot_million.py', 'plot_a.py']
    """

    src_dir: str

    def __call__(self, filename: str) -> tuple[int, str]:
        """Return the place of an example in the order, then its name."""
        known = filename in ORDER
        return (ORDER.index(filename) if known else len(ORDER), filename)
