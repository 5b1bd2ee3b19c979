"""Endpoints: how requests become calls of functions, and their results answers."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from manifactor._support.extras import extra
from manifactor._support.threads import cores


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
