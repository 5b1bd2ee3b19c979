"""Small results of all methods, and a lab that answers every question with them."""

from dataclasses import dataclass
from functools import cache

import pytest

from manifactor._support.workers import Here
from manifactor.views import plots
from studies.paper.beyond import BeyondSettings, beyond
from studies.paper.fig1 import Fig1Settings, fig1
from studies.paper.fig2 import Fig2Settings, fig2
from studies.paper.fig3 import fig3
from studies.paper.fig4 import Fig4Settings, fig4
from studies.paper.fig6 import Fig6Settings, fig6
from studies.paper.fig7 import Fig7Settings, fig7
from studies.paper.finding import WAYS, Job, find
from studies.paper.lab import COMPARED, Lab
from studies.paper.panels import PanelSettings
from studies.paper.recipes import RECIPES
from studies.paper.section import Settings
from studies.paper.table1 import Table1Settings, table1


class Small(Settings):
    """So few samples that a recipe takes no time; what it finds means nothing."""

    n = 250


# Data sets that stand for all of the paper's, by the methods that are fitted to them.
FITTED = {"torus": WAYS, "rectangle_z": COMPARED, "cube": COMPARED}
# Less than on the page: fewer panels and numbers of functions; everything counts as mixed.
FEWER = {
    "fig1": (fig1, Fig1Settings(n_shown=4, n_columns=2)),
    "fig2": (fig2, Fig2Settings(panels=PanelSettings(n_functions=2))),
    "fig3": (fig3, PanelSettings(n_functions=2)),
    "fig4": (fig4, Fig4Settings(n_panels=3)),
    "fig6": (fig6, Fig6Settings(mixed_r2=1.1)),
    "fig7": (fig7, Fig7Settings(most_rows=6)),
    "beyond": (beyond, BeyondSettings(n_poses=2)),
    "table1": (table1, Table1Settings(quick_n_functions=(12, 20))),
}


@dataclass
class StandIn(Lab):
    """Answers every job with what its method found in a small data set, the torus for most."""

    found: dict = None

    def find(self, jobs):
        asked = [(job.case.replace("_xyz", "_z"), job.method) for job in jobs]
        return [self.found.get(key, self.found["torus", key[1]]) for key in asked]

    def measure(self, jobs):
        return [found.numbers for found in self.find(jobs)]


@pytest.fixture(scope="session")
def small():
    return Small(quick=True)


@pytest.fixture(scope="session")
def lab():
    keys = [(case, method) for case, methods in FITTED.items() for method in methods]
    return StandIn(Here(), found={key: find(Job(*key, 250, 0)) for key in keys})


@pytest.fixture(scope="session")
def made(small, lab):
    """The section of a recipe by its name, each made once."""

    @cache
    def make(name):
        recipe, *settings = FEWER.get(name, (RECIPES[name],))
        with plots.style():
            return recipe(small, lab, **({"recipe": settings[0]} if settings else {}))

    return make
