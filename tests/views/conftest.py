"""A small run of particle images, a server on it, and a browser."""

import json
import os
import re
import shutil
import threading
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from html.parser import HTMLParser
from itertools import count

import numpy as np
import pytest

from manifactor import ManifoldFactorizer, NoProductStructureWarning, datasets
from manifactor.cryoem.all_views.model import motion_records
from manifactor.cryoem.all_views.volumes import MODEL_FILE
from manifactor.cryoem.simulate.writing import write_dataset
from manifactor.runs.folder import read_places, read_run, write_run
from manifactor.runs.options import FitOptions
from manifactor.runs.task import Task
from manifactor.views import plots
from manifactor.views.explorer.server import NearRequest, application, listening, web_server
from tests.views.scenes import open_scene

from ..cryoem.moving import moving_model, moving_views

N = 400
TOKEN = "a-token"


def run_of_coordinates(simulation, folder):
    """A run of coordinates that another program might have found in simulated particles."""
    write_dataset(folder, simulation, name="data")
    turn, stretch = simulation.truth
    np.save(folder / "z.npy", np.column_stack([turn, 4 * stretch / np.ptp(stretch)]))
    task = Task(folder / "z.npy", FitOptions(particles=str(folder / "particles.star")))
    task.fit(task.read(), folder.parent / "run")
    return folder.parent / "run"


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """A run of images of a molecule that turns and stretches."""
    folder = tmp_path_factory.mktemp("explored") / "data"
    folder.mkdir()
    simulation = datasets.simulate_particles(
        N, size=28, pixel_size=8, signal_to_noise=100, random_state=0
    )
    return run_of_coordinates(simulation, folder)


@pytest.fixture(scope="session")
def scene(run):
    return open_scene(run)


NAMES = ["alpha", "beta", "a long name of a column", "x"]


def fitted(path, options):
    """Fit a file and return the folder of the run, which lies beside it."""
    task = Task(path, options)
    task.fit(task.read(), path.parent / "run")
    return path.parent / "run"


@pytest.fixture(scope="session")
def torus_run(tmp_path_factory):
    """A run of a table of plain numbers: 600 samples of a torus."""
    folder = tmp_path_factory.mktemp("torus")
    X = datasets.sample("torus", 600, random_state=0)[0]
    np.savetxt(folder / "torus.csv", X, delimiter=",", header=",".join(NAMES), comments="")
    return fitted(folder / "torus.csv", FitOptions(n_factors=2, seed=3))


@pytest.fixture(scope="session")
def torus(torus_run):
    """The fit of that run."""
    return read_run(torus_run)[1]


@pytest.fixture(scope="session")
def sum_torus():
    """Factors of a sum, which have no functions of the data's spectrum."""
    X, _ = datasets.sample("torus", 400, random_state=0)
    return ManifoldFactorizer(method="sum", random_state=0).fit(X)


@pytest.fixture(scope="session")
def disk():
    """One factor, a surface."""
    X, _ = datasets.sample("disk", 900, random_state=0)
    return ManifoldFactorizer(1, random_state=0).fit(X)


@pytest.fixture(scope="session")
def annulus_run(tmp_path_factory):
    """A run of 1,000 samples of an annulus, whose radius and angle separate."""
    folder = tmp_path_factory.mktemp("annulus")
    np.save(folder / "annulus.npy", datasets.sample("annulus", 1000, random_state=0)[0])
    return fitted(folder / "annulus.npy", FitOptions(sense="separable"))


@pytest.fixture(scope="session")
def annulus(annulus_run):
    """The fit of that run."""
    return read_run(annulus_run)[1]


@pytest.fixture(scope="session")
def hexagonal_run(tmp_path_factory):
    """A run of 1,500 samples of a hexagonal torus, 1,200 of them fitted."""
    folder = tmp_path_factory.mktemp("hexagonal")
    np.save(folder / "torus.npy", datasets.sample("hexagonal_torus", 1500, random_state=0)[0])
    with pytest.warns(NoProductStructureWarning):
        return fitted(folder / "torus.npy", FitOptions(sense="separable", fit_samples=1200))


@pytest.fixture
def ax():
    return plots.new_figure(3, 3).subplots()


@pytest.fixture(scope="session")
def moving_run(run, tmp_path_factory):
    """The same run as that of particles of all views, with a molecule of blobs."""
    record, fit = read_run(run)
    rng = np.random.default_rng(0)
    places = tuple(
        replace(place, deviation=rng.uniform(0.01, 0.03, len(place)))
        for place in read_places(run)[1]
    )
    assert [place.topology for place in places] == ["interval", "circle"]
    found = {
        "symmetry": "C1",
        "agreement": [0.99, 0.9, 0.8, 0.2],
        "information": [30.0, 20.0, 9.0],
        "consistency": [0.98, 0.95],
        "motions": motion_records(moving_views(), places),
    }
    out = tmp_path_factory.mktemp("moving") / "run"
    write_run(
        fit,
        out,
        record={**record, "all_views": found},
        places=places,
        trees={MODEL_FILE: moving_model()},
    )
    return out


def copied(run, folder, **entries):
    """A copy of a run whose record has other entries."""
    return changed(shutil.copytree(run, folder / "run"), **entries)


def changed(run, **entries):
    """A run after its record got other entries, and lost those that are None."""
    record = {**json.loads((run / "run.json").read_text()), **entries}
    kept = {name: value for name, value in record.items() if value is not None}
    (run / "run.json").write_text(json.dumps(kept))
    return run


def near_look(body, scene):
    """Where a request for samples near a place looks."""
    return NearRequest.model_validate_json(json.dumps(body)).look(scene)


@contextmanager
def serving(scene, **options):
    """The port of a server on a scene."""
    with running(application(scene, TOKEN, **options)) as port:
        yield port


@contextmanager
def running(app):
    """The port of a server on an ASGI application."""
    with listening(0) as bound:
        server = web_server(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
        thread.start()
        try:
            yield bound.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(10)


@pytest.fixture(scope="session")
def port(scene, tmp_path_factory):
    """The port of a server that may save, too."""
    with serving(scene, folder=tmp_path_factory.mktemp("saved")) as port:
        yield port


class Reader(HTMLParser):
    """What a page holds, after checking that every element is closed where it should be."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.headings, self.words = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in ("img", "meta"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)

    def values(self, name):
        return [attributes[name] for _, attributes in self.elements if name in attributes]


BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


@pytest.fixture(scope="session")
def browser():
    """A real browser without a window; tests are skipped where none is installed."""
    path = next((found for found in map(shutil.which, BROWSERS) if found), None)
    if path is None:
        pytest.skip(f"no browser found: install one of {', '.join(BROWSERS)}")
    options = ["--enable-unsafe-swiftshader", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with pytest.importorskip("playwright.sync_api").sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=options)
        yield opened
        opened.close()


READY = "body[data-ready][data-near][data-selected]"


def address(port, view=""):
    return f"http://127.0.0.1:{port}/?token={TOKEN}{view}"


@contextmanager
def watched(context):
    """A page of a context; whatever it complains of fails the test."""
    complaints = []
    page = context.new_page()
    page.set_default_timeout(120_000)  # guards against a hang only
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page, complaints
    if not page.is_closed():
        complaints += page.locator("#problem:visible").all_inner_texts()
    assert complaints == []


@pytest.fixture
def window(browser):
    """Opens pages of a size, light or dark."""
    with ExitStack() as opened:

        def open_page(*, width=1280, height=900, scheme="light", **options):
            size = {"width": width, "height": height}
            context = browser.new_context(viewport=size, color_scheme=scheme, **options)
            opened.callback(context.close)
            return opened.enter_context(watched(context))[0]

        yield open_page


@pytest.fixture(scope="session")
def visited(browser, port):
    """A page of the explorer, in which many tests look at one thing after the other."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    waiting = set()
    with watched(context) as (page, complaints):
        page.on("request", lambda request: waiting.add(request))
        for end in ("requestfinished", "requestfailed"):
            page.on(end, lambda request: waiting.discard(request))
        page.goto(address(port))
        page.wait_for_selector(READY)
        yield page, waiting, complaints
    context.close()


@pytest.fixture
def explorer(visited):
    """Shows a view in the page that is open, and waits until it stands."""
    page, waiting, complaints = visited
    views = count()

    def show(view=""):
        while waiting:
            page.wait_for_timeout(5)
        page.evaluate("delete document.body.dataset.near; delete document.body.dataset.selected")
        # What the page does not know it leaves out; another address each time.
        page.goto(f"{page.url.partition('#')[0]}#visit={id(show)}-{next(views)}&{view}")
        page.wait_for_selector(READY)
        return page

    yield show
    assert complaints == []
    assert page.locator("#problem:visible").count() == 0
