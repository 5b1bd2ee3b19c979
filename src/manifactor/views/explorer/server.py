"""The explorer's web server, on this machine only.

No name or path from a request reaches the file system. The files of the page are read when the
server starts. Columns and suffixes are looked up among those known. Exports go to the browser, or
into a folder that the command line named, under names chosen here.
"""

import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np

from manifactor._support.extras import extra
from manifactor._support.threads import one_blas_thread
from manifactor.views.explorer import requests
from manifactor.views.explorer.connections import (
    Connections,
    ConnectionSettings,
    Listener,
    counted_protocol,
    open_descriptors,
)
from manifactor.views.explorer.endpoints import (
    json_answer,
    json_bytes,
    json_of_pictures,
    of_file,
    of_get,
    of_post,
)
from manifactor.views.explorer.guard import HOSTS, Guard
from manifactor.views.explorer.saving import save_new
from manifactor.views.explorer.scene import Scene
from manifactor.views.markup import stylesheet

MEDIA_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class ServerSettings:
    """Settings of the server."""

    # The port if it is free; any free one otherwise. A fixed one keeps ssh tunnels.
    port: int = 8642

    # Bytes of a request: a lasso of a thousand corners has forty thousand.
    largest_request: int = 2**20

    # Answers of `near` that are kept: whoever opens a page asks for the same first one. With images
    # of 512 pixels they have half a megabyte each.
    kept_answers: int = 32

    # Seconds that a request may take after Ctrl-C.
    grace: int = 1

    connections: ConnectionSettings = field(default_factory=ConnectionSettings)


def application(
    scene: Scene,
    token: str,
    *,
    folder: Path | None = None,
    settings: ServerSettings = ServerSettings(),
) -> Guard:
    """Return the ASGI application of a scene."""
    route = extra("starlette.routing").Route
    files = page_files()
    routes = [route(address, of_file(*file)) for address, file in files.items()]
    routes.append(route("/api/column/{name}", _column(scene)))
    for name, read in _reads(scene, folder).items():
        routes.append(route(f"/api/{name}", of_get(read)))
    for name, answer in _answers(scene, folder, settings.kept_answers).items():
        posted = of_post(answer, settings.largest_request)
        routes.append(route(f"/api/{name}", posted, methods=["POST"]))
    app = extra("starlette.applications").Starlette(routes=routes)
    # Scripts and styles are the same for every run: they hold no secrets.
    return Guard(app, token, public=[address for address in files if address != "/"])


def page_files() -> dict[str, tuple[bytes, str]]:
    """Return the files of the page by address: bytes and media types."""
    # Shared with the report, so that tables of both look alike.
    shared = stylesheet("tables.css").encode()
    files = {"/tables.css": (shared, MEDIA_TYPES[".css"])}
    folder = resources.files("manifactor.views.explorer").joinpath("page")
    for file in folder.iterdir():
        media_type = MEDIA_TYPES.get(Path(file.name).suffix)
        if media_type is not None:
            address = "/" if file.name == "index.html" else f"/{file.name}"
            files[address] = file.read_bytes(), media_type
    return files


def _reads(scene: Scene, folder: Path | None) -> dict[str, Callable[[], dict]]:
    """Return what GET requests are answered with, by name."""
    return {
        "about": lambda: {**scene.about(), "saves": folder is not None},
        "spectrum": scene.spectrum,
        "angles": scene.angles,
        "evidence": scene.evidence,
    }


def _column(scene: Scene) -> Callable:
    responses = extra("starlette.responses")

    def answer(request):
        column = scene.columns.get(request.path_params["name"])
        if column is None:
            problem = "the column must be one of the run's; there is none of that name."
            return responses.JSONResponse({"error": problem}, status_code=404)
        # The byte order and precision of a Float32Array.
        values = np.asarray(column.values[scene.shown], dtype="<f4")
        media_type = "application/octet-stream"
        return responses.Response(values.tobytes(), media_type=media_type)

    return answer


def _answers(scene: Scene, folder: Path | None, kept: int) -> dict[str, Callable[[Any], Any]]:
    """Return what POST requests are answered with, by name."""

    @lru_cache(maxsize=kept)
    def near_place(**place):
        return json_of_pictures(**scene.near(**place))

    def near(body):
        return json_bytes(near_place(**requests.place(body, scene)))

    def select(body):
        return json_answer(scene.selected(requests.conditions(body, scene)))

    def export(body):
        media_type = "application/octet-stream"
        response = extra("starlette.responses").Response
        return response(_exported(body, scene), media_type=media_type)

    def save(body):
        if folder is None:
            raise ValueError("saving needs a folder: start the explorer with --save-to FOLDER.")
        suffix, content = requests.suffix(body, scene), _exported(body, scene)
        path = save_new(folder, suffix, content)
        # Without following the file itself, which is no link.
        return json_answer({"saved": str(folder.resolve() / path.name)})

    return {"near": near, "select": select, "export": export, "save": save}


def _exported(body: Any, scene: Scene) -> bytes:
    conditions = requests.conditions(body, scene)
    return scene.exported(conditions, requests.suffix(body, scene))


def listening(port: int | None, *, settings: ServerSettings = ServerSettings()) -> socket.socket:
    """Return a listening socket that no other machine can reach.

    At the given port; without one at the usual port, or at any free one.
    """
    for wanted in (settings.port, 0) if port is None else (port,):
        bound = Listener(queue=settings.connections.queue)
        # A port is free again at once after a restart.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((HOSTS[0], wanted))
            # From now on whoever connects waits until the server answers.
            bound.listen()
            return bound
        except (OSError, OverflowError) as error:
            bound.close()
            problem = error
    why = getattr(problem, "strerror", None) or str(problem).rstrip(".")
    raise ValueError(
        f"--port must be free and from 0 to 65535; got {port}: {why}. Leave it out for a free one."
    )


def web_server(app: Callable, *, settings: ServerSettings = ServerSettings()) -> Any:
    """Return the uvicorn server of an ASGI application, with its limits."""
    uvicorn = extra("uvicorn")
    limits = settings.connections
    most = limits.affordable(open_descriptors())
    config = uvicorn.Config(
        app,
        http=counted_protocol(Connections(limits, most)),
        loop="asyncio",
        ws="none",
        lifespan="off",
        # Answered with 503 from here on: all connections are at work then.
        limit_concurrency=most + limits.ahead,
        backlog=limits.batch,
        timeout_graceful_shutdown=settings.grace,
        # The guard logs what goes wrong.
        log_level="critical",
        access_log=False,
        server_header=False,
    )
    return uvicorn.Server(config)


def serve(app: Guard, bound: socket.socket, *, settings: ServerSettings = ServerSettings()) -> None:
    """Answer requests until interrupted."""
    # Requests are answered in threads; those of BLAS would wait for each other.
    with one_blas_thread():
        web_server(app, settings=settings).run(sockets=[bound])


def warm_up(scene: Scene) -> Thread:
    """Start and return a thread that builds what the first move of a slider needs."""
    thread = Thread(target=lambda: scene.strata, daemon=True)
    thread.start()
    return thread
