"""The explorer's web server: for this machine, its own page, and whoever holds the token.

No name or path from a request reaches the file system. The files of the page are read when the
server starts. Columns and suffixes are looked up among those known. Exports go to the browser, or
into a folder that the command line named, under names chosen here.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache
from importlib import resources
from itertools import count
from pathlib import Path
from secrets import compare_digest
from typing import Annotated, Literal

import numpy as np
import uvicorn
from pydantic import BaseModel, Discriminator, Field, Tag, ValidationError
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Route

from manifactor._support.files import write_new
from manifactor._support.threads import cores, one_blas_thread
from manifactor.runs.folder import factor_names, read_record, write_name
from manifactor.runs.record_form import FACTOR_NAME
from manifactor.views.explorer.previews import Viewpoint
from manifactor.views.explorer.scene import MOST_CORNERS, RunScene

HOST = "127.0.0.1"
HEADERS = {
    # No script, style or picture from elsewhere, and no frame around the page.
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # The first address holds the token.
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    # Another start on the same port may show another run.
    "cache-control": "no-store",
}
MEDIA_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
BYTES = "application/octet-stream"


# Requests: only known columns and finite numbers get through.

# Larger numbers have products that overflow.
Number = Annotated[float, Field(gt=-1e100, lt=1e100, allow_inf_nan=False)]


class NearRequest(BaseModel, strict=True):
    """Coordinates at which samples are averaged."""

    at: list[list[Number]]
    factor: int = Field(0, ge=0)
    mode: Literal["matched", "held"] = "matched"
    count: int | None = None
    axis: int = Field(0, ge=0, le=2)
    depth: Number = 0.5
    view: tuple[Number, Number] = (0.0, 0.0)
    source: str | None = None

    def look(self, scene: RunScene) -> Viewpoint:
        """Return where to look in a scene."""
        limits = [factor["limits"] for factor in scene.factors]
        count = scene.preview.count if self.count is None else self.count
        if list(map(len, self.at)) != list(map(len, limits)):
            raise ValueError(
                f"`at` must have the coordinates on all {len(limits)} factors; got {self.at}."
            )
        _require_below("factor", self.factor, len(limits))
        if not 1 <= count <= scene.most_averaged:
            raise ValueError(f"`count` must lie in [1, {scene.most_averaged}]; got {count}.")
        source, sources = "", scene.preview.sources
        if sources:
            source = next(iter(sources)) if self.source is None else self.source
            _require_known("source", source, sources)
        rot, tilt = self.view
        # Numbers outside are moved to the limit: rounding in a link may move one just outside, and
        # the link may be of an earlier run, whose factor reached further.
        view = (rot % 360, min(max(tilt, 0.0), 180.0))
        depth = min(max(self.depth, 0.0), 1.0)
        at = tuple(
            tuple(np.clip(values, *np.transpose(ends)).tolist())
            for values, ends in zip(self.at, limits, strict=True)
        )
        place = Viewpoint(at, self.factor, self.mode, count)
        return replace(place, axis=self.axis, depth=depth, view=view, source=source)


class GridRequest(NearRequest):
    """Means at even steps along a factor or two."""

    factors: list[Annotated[int, Field(ge=0)]] = Field(min_length=1, max_length=2)
    side: int = Field(5, ge=2, le=12)

    def look(self, scene: RunScene) -> Viewpoint:
        """Return where to look in a scene."""
        _require_below("factors", max(self.factors), len(scene.factors))
        return super().look(scene)


class SampleRequest(BaseModel, strict=True):
    """One of the samples that are drawn."""

    sample: int = Field(ge=0)


class NameRequest(BaseModel, strict=True):
    """A name for a factor, which the run keeps."""

    factor: int = Field(ge=0)
    name: str = Field(max_length=60, pattern=FACTOR_NAME)


class RangeCondition(BaseModel, strict=True):
    """A range of one column."""

    column: str
    low: Number
    high: Number


class LassoCondition(BaseModel, strict=True):
    """A polygon in the plane of two columns."""

    x: str
    y: str
    polygon: list[tuple[Number, Number]] = Field(min_length=3, max_length=MOST_CORNERS)


class SelectRequest(BaseModel, strict=True):
    """Conditions that samples meet, and the kind of file to write them to."""

    conditions: list[
        Annotated[
            Annotated[RangeCondition, Tag("range")] | Annotated[LassoCondition, Tag("lasso")],
            Discriminator(
                lambda it: "lasso" if isinstance(it, dict) and "polygon" in it else "range"
            ),
        ]
    ] = Field(max_length=50)
    suffix: str = ""

    def check(self, scene: RunScene) -> list[dict]:
        """Return the conditions, as `columns.inside` takes them."""
        for each in self.conditions:
            if isinstance(each, LassoCondition):
                _require_known("x", each.x, scene.columns)
                _require_known("y", each.y, scene.columns)
                continue
            _require_known("column", each.column, scene.columns)
            # Otherwise 1000 would silently be 280.
            if scene.columns[each.column].cyclic and max(abs(each.low), abs(each.high)) > 360:
                raise ValueError(
                    "a range of degrees must lie in [-360, 360]; "
                    f"got {each.low:g} to {each.high:g}."
                )
        return [each.model_dump() for each in self.conditions]

    def export(self, scene: RunScene) -> bytes:
        """Return the selected samples as the bytes of a file."""
        # Never a path: the server makes the name.
        _require_known("suffix", self.suffix, scene.exports())
        return scene.export(self.check(scene), self.suffix)


class MeanRequest(SelectRequest):
    """Samples whose mean is shown as near a place, and others whose mean is taken off."""

    near: NearRequest
    other: SelectRequest | None = None


def _require_below(name: str, value: int, count: int) -> None:
    if value >= count:
        raise ValueError(f"`{name}` must be below {count}; got {value}.")


def _require_known(name: str, value: str, choices) -> None:
    if value not in choices:
        # A table may have thousands of columns.
        first = ", ".join(list(choices)[:20])
        raise ValueError(f"`{name}` must be one of {first}; got {value!r:.40}.")


# Answers to the requests of the page.


def application(scene: RunScene, token: str, *, folder: Path | None = None) -> Starlette:
    """Return the ASGI application of a scene."""
    files = page_files()
    routes = [Route(address, file, methods=["GET"]) for address, file in files.items()]
    routes += [Route(f"/api/{name}", read) for name, read in _reads(scene, folder).items()]
    for name, (model, answer) in _answers(scene, folder).items():
        routes.append(Route(f"/api/{name}", _posted(model, answer), methods=["POST"]))
    # Scripts and styles are the same for every run: they hold no secrets.
    public = files.keys() - {"/"}

    async def guarded(request: Request, call_next: Callable) -> Response:
        """Answer requests of the page and of the token's holder only."""
        path = request.url.path
        answer = _refusal(request, None if path in public else token)
        if answer is None and path == "/" and "token" in request.query_params:
            answer = _entrance(request, token)
        answer = answer or await call_next(request)
        answer.headers.update(HEADERS)
        return answer

    return Starlette(
        routes=routes,
        middleware=[
            # The Host gives away a site that took the address of this machine (DNS rebinding).
            Middleware(TrustedHostMiddleware, allowed_hosts=[HOST, "localhost"]),
            Middleware(BaseHTTPMiddleware, dispatch=guarded),
        ],
        exception_handlers={
            ValueError: lambda _, error: JSONResponse({"error": _sentence(error)}, 400),
            # Without the path, which the browser need not know.
            OSError: lambda _, error: JSONResponse({"error": f"{error.strerror or error}."}, 500),
            # Nobody is left to be answered.
            ClientDisconnect: lambda *_: Response(status_code=400),
            Exception: _failed,
        },
    )


def page_files() -> dict[str, Response]:
    """Return the files of the page by address."""
    views = resources.files("manifactor.views")
    # Tables are shared with the report, so that those of both look alike.
    files = [views / "templates" / "tables.css", *(views / "explorer" / "page").iterdir()]
    return {
        f"/{file.name}".removesuffix("index.html"): Response(file.read_bytes(), media_type=kind)
        for file in files
        if (kind := MEDIA_TYPES.get(Path(file.name).suffix))
    }


def _reads(scene: RunScene, folder: Path | None) -> dict[str, Callable]:
    """Return what answers each GET request, by name."""

    def column(request: Request) -> Response:
        found = scene.columns.get(request.path_params["name"])
        if found is None:
            return JSONResponse({"error": "the run has no column of that name."}, 404)
        # The byte order and precision of a Float32Array.
        values = np.asarray(found.values[scene.shown], dtype="<f4")
        return Response(values.tobytes(), media_type=BYTES)

    made_once = cache(lambda make: make())

    def about(_: Request) -> Response:
        # Names may be given meanwhile.
        names = factor_names(read_record(scene.run.folder))
        return JSONResponse({**made_once(scene.about), "saves": folder is not None, "names": names})

    parts = (scene.spectrum, scene.angles, scene.evidence)
    # No coroutines, so that each runs in a thread of its own.
    reads = {make.__name__: lambda _, make=make: JSONResponse(made_once(make)) for make in parts}
    return {"about": about, "column/{name}": column, **reads}


def _answers(scene: RunScene, folder: Path | None) -> dict[str, tuple[type[BaseModel], Callable]]:
    """Return the model of each POST request and what answers it, by name."""
    # Whoever opens a page asks for the same first answer. With images of 512 pixels, an answer has
    # half a megabyte.
    near = lru_cache(maxsize=32)(lambda look: JSONResponse(scene.near(look)))
    grids = lru_cache(maxsize=4)(lambda *given: JSONResponse(scene.grid(*given)))

    def grid(asked: GridRequest) -> Response:
        return grids(asked.look(scene), tuple(asked.factors), asked.side)

    def movie(asked: NearRequest) -> Response:
        return Response(scene.movie(asked.look(scene)), media_type="image/gif")

    def mean(asked: MeanRequest) -> Response:
        both = [each.check(scene) for each in (asked, asked.other) if each]
        return JSONResponse(scene.mean(both, asked.near.look(scene)))

    def sample(asked: SampleRequest) -> Response:
        _require_below("sample", asked.sample, len(scene.shown))
        return JSONResponse(scene.sample(asked.sample))

    def name(asked: NameRequest) -> Response:
        _require_below("factor", asked.factor, len(scene.factors))
        write_name(scene.run.folder, asked.factor, asked.name.strip())
        return JSONResponse({})

    def save(asked: SelectRequest) -> Response:
        if folder is None:
            raise ValueError("saving needs a folder: start the explorer with --save-to FOLDER.")
        path = save_new(folder, asked.suffix, asked.export(scene))
        # Without following the file itself, which is not a link.
        return JSONResponse({"saved": str(folder.resolve() / path.name)})

    return {
        "near": (NearRequest, lambda asked: near(asked.look(scene))),
        "grid": (GridRequest, grid),
        "movie": (NearRequest, movie),
        "mean": (MeanRequest, mean),
        "sample": (SampleRequest, sample),
        "name": (NameRequest, name),
        "select": (SelectRequest, lambda asked: JSONResponse(scene.select(asked.check(scene)))),
        "export": (SelectRequest, lambda asked: Response(asked.export(scene), media_type=BYTES)),
        "save": (SelectRequest, save),
    }


def _posted(model: type[BaseModel], make: Callable[[BaseModel], Response]) -> Callable:
    """Return the endpoint of a JSON body, which a function answers in a thread."""
    # More threads than cores would take no less time together, but more memory, since each reads
    # images. Every endpoint has its own, so that a count does not wait for images.
    threads = ThreadPoolExecutor(cores() + 1)

    async def answer(request: Request) -> Response:
        # Forms of other sites cannot send this type.
        kind = request.headers.get("content-type", "none").partition(";")[0]
        if kind.lower() != "application/json":
            raise ValueError(f"a request must have the type application/json; got {kind}.")
        content = b""
        async for part in request.stream():
            content += part
            # A lasso of a thousand corners has forty thousand bytes.
            if len(content) > 2**20:
                raise ValueError("a request must have at most 1 MiB.")
        asked = model.model_validate_json(content)
        return await asyncio.get_running_loop().run_in_executor(threads, make, asked)

    return answer


def _sentence(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"])) or "request"
    return f"`{where}` is not valid: {first['msg']}."


async def _failed(request: Request, error: Exception) -> Response:
    """Answer where our own code has a defect; the server goes on."""
    log = logging.getLogger("manifactor")
    log.error("the explorer could not answer %s", request.url.path, exc_info=error)
    return PlainTextResponse("The explorer has a defect.", 500, headers=HEADERS)


def save_new(folder: Path, suffix: str, content: bytes) -> Path:
    """Write a file whole under the first free name, and return its path; replace nothing."""
    # Other explorers may save into the same folder at the same time.
    for number in count(1):
        path = folder / f"selection-{number:03d}{suffix}"
        with suppress(FileExistsError):
            write_new(path, lambda file: file.write(content))
            break
    return path


# Access.


def _refusal(request: Request, token: str | None) -> Response | None:
    """Return the answer to a request that is refused; None for one that may be answered."""
    host, origin = request.headers["host"], request.headers.get("origin")
    # The Origin gives away a script of another site. Browsers leave it out where a page asks by
    # GET, even one of another port, to which the cookie is sent.
    foreign = origin not in (None, f"http://{host}", f"https://{host}")
    # Another port of this machine is the same site for a browser. A link may lead here from
    # anywhere.
    elsewhere = request.headers.get("sec-fetch-site") in ("cross-site", "same-site")
    link = elsewhere and request.headers.get("sec-fetch-mode") == "navigate"
    if foreign or (elsewhere and not link):
        return PlainTextResponse("Requests of other sites are refused.", 403)
    tokens = [
        request.headers.get("x-manifactor-token"),
        request.query_params.get("token"),
        request.cookies.get(_cookie_name(host)),
    ]
    # In constant time, so that a wrong token cannot be improved letter by letter.
    if token is None or any(compare_digest((t or "").encode(), token.encode()) for t in tokens):
        return None
    problem = (
        "This page needs the address that `manifactor explore` printed, with its token, "
        "in a browser that keeps cookies; every start has a new one."
    )
    if link and request.url.path == "/":
        # Browsers send no Strict cookie where a link in another site led here, such as one in a web
        # terminal. They send it when the page is loaded again.
        page = f'<!doctype html><p>{problem}</p><script src="/again.js"></script>'
        return HTMLResponse(page, 403)
    return PlainTextResponse(problem, 403)


def _cookie_name(host: str) -> str:
    """Return the name of the cookie for a Host: browsers send cookies to all ports of a machine."""
    port = host.partition(":")[2]
    return f"manifactor-{port if port.isdecimal() else 80}"


def _entrance(request: Request, token: str) -> Response:
    """Return a redirect to the address without the token, which becomes a cookie."""
    # The history and links that are copied do not show it; a browser keeps what follows #.
    query = request.url.remove_query_params("token").query
    answer = RedirectResponse(f"/?{query}" if query else "/", status_code=303)
    # Until the browser is closed: it has no date.
    name = _cookie_name(request.headers["host"])
    answer.set_cookie(name, token, path="/", httponly=True, samesite="strict")
    return answer


# The server.


def listening(port: int | None) -> socket.socket:
    """Return a socket of this machine alone, at the given port, or at the usual or a free one."""
    # A fixed port keeps ssh tunnels.
    for wanted in (8642, 0) if port is None else (port,):
        bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        # A port is free again at once after a restart.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((HOST, wanted))
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


def web_server(app: Callable) -> uvicorn.Server:
    """Return the uvicorn server of an ASGI application, with its limits."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            loop="asyncio",
            http="h11",
            ws="none",
            lifespan="off",
            # Browsers have six connections for each page; further ones are answered with 503.
            limit_concurrency=512,
            # Seconds that a request may take after Ctrl-C.
            timeout_graceful_shutdown=1,
            # `_failed` logs what goes wrong.
            log_level="critical",
            access_log=False,
            server_header=False,
        )
    )


def serve(app: Callable, bound: socket.socket) -> None:
    """Answer requests until interrupted."""
    # Requests are answered in threads; those of BLAS would wait for each other.
    with one_blas_thread():
        web_server(app).run(sockets=[bound])
