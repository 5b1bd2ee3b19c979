"""The explorer's web server, on this machine only.

No name or path from a request reaches the file system: the page's files are read when the server starts, columns and
endings are looked up among those known, and exports go to the browser, or into a folder that the command line named,
under names chosen here.
"""

import json
import socket
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import numpy as np

from manifactor._support.extras import extra
from manifactor._support.files import write_whole
from manifactor.views.explorer import asked
from manifactor.views.explorer.guard import HOSTS, Guard
from manifactor.views.explorer.scene import Scene

PORT = 8642  # taken if free, and any free one otherwise
MOST_BYTES = 2**20  # of a request
PATIENCE = 1  # seconds that a request may take after Ctrl-C
TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}


def application(scene: Scene, token: str, *, folder: Path | None = None) -> Guard:
    """The ASGI application for a scene.

    Parameters
    ----------
    scene : Scene
    token : str
    folder : Path or None
        Where selections may be saved; without one they go to the browser only.
    """
    route, files = extra("starlette.routing").Route, page_files()
    routes = [route(address, _file(*file)) for address, file in files.items()]
    routes.append(route("/api/column/{name}", _column(scene)))
    reads = {"about": lambda: {**scene.about(), "saves": folder is not None}}
    reads |= {
        "spectrum": scene.spectrum,
        "angles": scene.angles,
        "evidence": scene.evidence,
    }
    routes += [route(f"/api/{name}", _get(answer)) for name, answer in reads.items()]
    posts = {
        "near": _near(scene),
        "select": _select(scene),
        "export": _export(scene),
        "save": _save(scene, folder),
    }
    routes += [
        route(f"/api/{name}", _post(answer), methods=["POST"])
        for name, answer in posts.items()
    ]
    app = extra("starlette.applications").Starlette(routes=routes)
    return Guard(app, token, public=[address for address in files if address != "/"])


def page_files() -> dict[str, tuple[bytes, str]]:
    """The files of the page by address: their bytes and types."""
    files = resources.files("manifactor.views.explorer").joinpath("page").iterdir()
    named = {
        f"/{file.name}".replace("/index.html", "/"): file
        for file in files
        if Path(file.name).suffix in TYPES
    }
    return {
        address: (file.read_bytes(), TYPES[Path(file.name).suffix])
        for address, file in named.items()
    }


def _file(content: bytes, kind: str) -> Callable:
    async def answer(request):
        return extra("starlette.responses").Response(content, media_type=kind)

    return answer


def _get(make: Callable[[], dict]) -> Callable:
    def answer(request):  # no coroutine: it runs in a thread of its own
        return _json(make())

    return answer


def _column(scene: Scene) -> Callable:
    responses = extra("starlette.responses")

    def answer(request):
        column = scene.columns.get(request.path_params["name"])
        if column is None:
            return responses.JSONResponse(
                {
                    "error": "the column must be one of the run's; there is none of that name."
                },
                status_code=404,
            )
        values = np.asarray(column.values[scene.shown], dtype="<f4")
        return responses.Response(
            values.tobytes(), media_type="application/octet-stream"
        )

    return answer


def _post(make: Callable[[Any], Any]) -> Callable:
    """An answer to JSON, which must come as such: other sites' forms cannot send it."""
    responses, run_in_threadpool = (
        extra("starlette.responses"),
        extra("starlette.concurrency").run_in_threadpool,
    )
    gone = extra("starlette.requests").ClientDisconnect

    async def answer(request):
        try:
            kind = request.headers.get("content-type", "none").partition(";")[0]
            if kind.lower() != "application/json":
                raise ValueError(
                    f"a request must have the type application/json; got {kind}."
                )
            return await run_in_threadpool(make, _parsed(await _body(request)))
        except ValueError as error:
            return responses.JSONResponse({"error": str(error)}, status_code=400)
        except OSError as error:
            return responses.JSONResponse(
                {"error": f"{error.strerror or error}."}, status_code=500
            )
        except gone:  # nobody is left to be answered
            return responses.Response(status_code=400)

    return answer


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError("a request must be JSON; what came is none.") from error


async def _body(request) -> bytes:
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > MOST_BYTES:
            raise ValueError(f"a request must have at most {MOST_BYTES} bytes.")
    return content


def _near(scene: Scene) -> Callable:
    return lambda body: _json(scene.near(**asked.near(body, scene)))


def _select(scene: Scene) -> Callable:
    return lambda body: _json(scene.selected(asked.conditions(body, scene.columns)))


def _export(scene: Scene) -> Callable:
    def answer(body):
        conditions, suffix = (
            asked.conditions(body, scene.columns),
            asked.suffix(body, scene),
        )
        return extra("starlette.responses").Response(
            scene.exported(conditions, suffix), media_type="application/octet-stream"
        )

    return answer


def _save(scene: Scene, folder: Path | None) -> Callable:
    one_at_a_time = Lock()

    def answer(body):
        if folder is None:
            raise ValueError(
                "saving needs a folder: start the explorer with --save-to FOLDER."
            )
        conditions, suffix = (
            asked.conditions(body, scene.columns),
            asked.suffix(body, scene),
        )
        content = scene.exported(conditions, suffix)
        with one_at_a_time:
            path = free_name(folder, suffix)
            write_whole(path, lambda file: file.write(content))
        return _json({"saved": str(path.resolve())})

    return answer


def free_name(folder: Path, suffix: str) -> Path:
    """The first of selection-001, selection-002, ... that is not there."""
    names = (folder / f"selection-{i:03d}{suffix}" for i in range(1, 100_000))
    return next(path for path in names if not path.exists())


def _json(value: dict):
    return extra("starlette.responses").JSONResponse(value)


def listening(port: int | None) -> socket.socket:
    """A socket of this machine that no other can reach, at the given port, or at a free one."""
    for wanted in (PORT, 0) if port is None else (port,):
        bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((HOSTS[0], wanted))
            bound.listen()  # from now on whoever comes waits until the server answers
            return bound
        except (OSError, OverflowError) as error:
            bound.close()
            problem = error
    why = getattr(problem, "strerror", None) or str(problem).rstrip(".")
    raise ValueError(
        f"--port must be free and from 0 to 65535; got {port}: {why}. Leave it out for a free one."
    )


def serve(app: Guard, bound: socket.socket) -> None:
    """Answer requests until interrupted."""
    uvicorn = extra("uvicorn")
    quiet = {
        "log_level": "critical",
        "access_log": False,
        "server_header": False,
    }  # the guard tells of mistakes
    config = uvicorn.Config(
        app, ws="none", lifespan="off", timeout_graceful_shutdown=PATIENCE, **quiet
    )
    uvicorn.Server(config).run(sockets=[bound])


def warm_up(scene: Scene) -> Thread:
    """A thread that makes ready what the first move of a slider needs."""
    thread = Thread(target=lambda: scene.strata, daemon=True)
    thread.start()
    return thread
