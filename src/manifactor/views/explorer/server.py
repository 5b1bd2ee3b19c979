"""Access control: this machine, the explorer's page, and the holder of the token."""

import json
import logging
import secrets
import socket
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import cache, lru_cache
from html import escape
from importlib import resources
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode

import numpy as np

from manifactor._support.errors import extra
from manifactor._support.threads import cores, one_blas_thread
from manifactor.views.explorer import requests
from manifactor.views.explorer.columns import save_new
from manifactor.views.explorer.connections import (
    Connections,
    ConnectionSettings,
    Listener,
    counted_protocol,
    open_descriptors,
)
from manifactor.views.explorer.scene import Scene
from manifactor.views.markup import stylesheet

# The first is the one that the server listens on.
HOSTS = ("127.0.0.1", "localhost")
HEADERS = {
    # No script, style or picture from elsewhere, and no frame around the page.
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; "
        "img-src 'self' data:; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # The first address holds the token.
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    # Another start on the same port may show another run.
    "cache-control": "no-store",
}
NO_TOKEN = (
    "This page needs the address that `manifactor explore` printed, with its token, "
    "in a browser that keeps cookies; every start has a new one."
)


class Guard:
    """ASGI application for HTTP that passes permitted requests on to another."""

    def __init__(self, app, token: str, *, public: Collection[str] = ()):
        self.app, self.token, self.public = app, token, public

    async def __call__(self, scope, receive, send):
        """Answer one request."""
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        answer = self._answer(scope, headers)
        try:
            await answer(scope, receive, _with_headers(send))
        # A defect of ours: the browser got an answer already, and the server goes on.
        except Exception:
            log = logging.getLogger("manifactor")
            log.exception("the explorer could not answer %s", scope["path"])

    def _answer(self, scope: dict, headers: dict[str, str]):
        """Return the ASGI application that answers a request."""
        path, query = scope["path"], scope["query_string"].decode("latin-1")
        token = None if path in self.public else self.token
        problem = refusal(query, headers, token)
        if problem is not None:
            return _refused(path, headers, problem)
        if path == "/" and "token" in parse_qs(query):
            return _entrance(query, headers["host"], self.token)
        return self.app


def _entrance(query: str, host: str, token: str):
    """Return a redirect to the address without the token, which becomes a cookie.

    The address bar, the history and links that are copied do not show it then. A browser keeps what
    follows # in the address.
    """
    pairs = parse_qsl(query, keep_blank_values=True)
    rest = urlencode([(name, value) for name, value in pairs if name != "token"])
    redirect = extra("starlette.responses").RedirectResponse
    answer = redirect(f"/?{rest}" if rest else "/", status_code=303)
    # Until the browser is closed: it has no date.
    answer.set_cookie(cookie_name(host), token, path="/", httponly=True, samesite="strict")
    return answer


def cookie_name(host: str) -> str:
    """Return the name of the cookie for a Host: explorers differ by their port.

    Browsers send the cookies of one port to all ports of a machine.

    >>> cookie_name("localhost:8642")
    'manifactor-8642'
    """
    return f"manifactor-{_name_and_port(host)[1]}"


def _name_and_port(host: str) -> tuple[str, str]:
    name, _, port = host.rpartition(":")
    numeric = port.isascii() and port.isdigit()
    return (name, port) if numeric else (host, "80")


def _refused(path: str, headers: dict[str, str], problem: str):
    """Return the answer to a request that is refused."""
    responses = extra("starlette.responses")
    # Who is refused gets no connection to keep.
    closed = {"connection": "close"}
    # Browsers send no Strict cookie where a link in another site led here, such as one in a web
    # terminal. They send it when the page is loaded again.
    if path == "/" and _from_elsewhere(headers) and _opens_page(headers):
        page = f'<!doctype html><p>{escape(problem)}</p><script src="/again.js"></script>'
        return responses.HTMLResponse(page, 403, headers=closed)
    return responses.PlainTextResponse(problem, 403, headers=closed)


def _from_elsewhere(headers: dict[str, str]) -> bool:
    # Another port of this machine is the same site for a browser.
    return headers.get("sec-fetch-site") in ("cross-site", "same-site")


def _opens_page(headers: dict[str, str]) -> bool:
    return headers.get("sec-fetch-mode") == "navigate"


def refusal(query: str, headers: dict[str, str], token: str | None) -> str | None:
    """Return why a request is refused; None for one that may be answered.

    The Host of a request gives away a site that took the address of this machine (DNS rebinding),
    its Origin a script of another site.

    >>> refusal("token=abc", {"host": "127.0.0.1:8642"}, "abc") is None
    True
    >>> refusal("token=abc", {"host": "example.org"}, "abc")
    'The address must be that of this machine: 127.0.0.1 or localhost.'
    """
    host = headers.get("host", "")
    if _name_and_port(host)[0] not in HOSTS:
        return f"The address must be that of this machine: {' or '.join(HOSTS)}."
    origin = headers.get("origin")
    # Browsers leave it out where a page asks by GET, even one of another port, to which the cookie
    # is sent. A link may lead here from anywhere.
    foreign = origin not in (None, f"http://{host}", f"https://{host}")
    if foreign or (_from_elsewhere(headers) and not _opens_page(headers)):
        return "Requests of other sites are refused."
    if token is None or _has_token(query, headers, token):
        return None
    return NO_TOKEN


def _has_token(query: str, headers: dict[str, str], token: str) -> bool:
    given = [
        headers.get("x-manifactor-token", ""),
        *parse_qs(query).get("token", []),
        *_cookies(headers.get("cookie", ""), cookie_name(headers["host"])),
    ]
    # In constant time, so that a wrong token cannot be improved letter by letter.
    matches = [secrets.compare_digest(each.encode(), token.encode()) for each in given]
    return any(matches)


def _cookies(header: str, name: str) -> list[str]:
    """Return the cookies of a name: other servers of this machine may set more."""
    pairs = [each.strip().partition("=") for each in header.split(";")]
    return [value for found, _, value in pairs if found == name]


def _with_headers(send: Callable) -> Callable:
    async def sent(message):
        if message["type"] == "http.response.start":
            more = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            message = {**message, "headers": [*message["headers"], *more]}
        await send(message)

    return sent


# Endpoints: how requests become calls of functions, and their results answers.


def of_file(content: bytes, kind: str) -> Callable:
    """Return the endpoint of a file."""

    async def answer(request):
        return extra("starlette.responses").Response(content, media_type=kind)

    return answer


def of_get(make: Callable[[], dict]) -> Callable:
    """Return the endpoint of what a function makes, as JSON."""
    # Always the same: made once.
    content = cache(lambda: json_answer(make()).body)

    # No coroutine, so that it runs in a thread of its own.
    def answer(request):
        return json_bytes(content())

    return answer


def _in_turn() -> Callable:
    """Return an awaitable call of a function in a thread, a few of them at a time.

    More than there are cores would take no less time together, but more memory: each reads images.
    Whoever has waited longest is next.
    """
    anyio = extra("anyio")
    limiter = cache(lambda: anyio.CapacityLimiter(cores() + 1))

    async def call(make: Callable[[Any], Any], body: Any) -> Any:
        return await anyio.to_thread.run_sync(make, body, limiter=limiter())

    return call


def of_post(make: Callable[[Any], Any], largest: int) -> Callable:
    """Return the endpoint of a JSON body, which must be declared as such.

    It is answered by a function in a thread.
    """
    # Each for itself: a count does not wait for images.
    call = _in_turn()
    responses = extra("starlette.responses")
    disconnected = extra("starlette.requests").ClientDisconnect

    async def answer(request):
        try:
            # Forms of other sites cannot send this type.
            kind = request.headers.get("content-type", "none").partition(";")[0]
            if kind.lower() != "application/json":
                raise ValueError(f"a request must have the type application/json; got {kind}.")
            body = _parsed(await _body(request, largest))
            return await call(make, body)
        except ValueError as error:
            return responses.JSONResponse({"error": str(error)}, status_code=400)
        except OSError as error:
            # Without the path, which the browser need not know.
            problem = f"{error.strerror or error}."
            return responses.JSONResponse({"error": problem}, status_code=500)
        except disconnected:  # nobody is left to be answered
            return responses.Response(status_code=400)

    return answer


async def _body(request, largest: int) -> bytes:
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > largest:
            raise ValueError(f"a request must have at most {largest} bytes.")
    return content


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError("a request must be JSON; what came is not.") from error


def json_answer(value: dict):
    """Return a value as JSON."""
    return extra("starlette.responses").JSONResponse(value)


def json_bytes(content: bytes):
    """Return bytes that are JSON already."""
    response = extra("starlette.responses").Response
    return response(content, media_type="application/json")


def json_of_pictures(
    *, image: str | None = None, thumbnails: str | None = None, **others: Any
) -> bytes:
    """Return JSON whose pictures are not searched for characters to escape.

    They are base64, which has none, and nearly all of the text.
    """
    text = json_answer(others).body.decode().removesuffix("}")
    for name, picture in {"image": image, "thumbnails": thumbnails}.items():
        if picture is not None:
            text += f',"{name}":"{picture}"'
    return f"{text}}}".encode()


# The explorer's web server, on this machine only.
#
# No name or path from a request reaches the file system. The files of the page are read when the
# server starts. Columns and suffixes are looked up among those known. Exports go to the browser, or
# into a folder that the command line named, under names chosen here.

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
