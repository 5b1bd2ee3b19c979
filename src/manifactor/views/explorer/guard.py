"""Who may ask: this machine, the explorer's own page, and whoever has the token."""

import logging
import secrets
from collections.abc import Callable, Collection
from urllib.parse import parse_qs

from manifactor._support.extras import extra

HOSTS = ("127.0.0.1", "localhost")
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",  # the address holds the token
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}
NO_TOKEN = "This page needs the address that `manifactor explore` printed, with its token; every start has a new one."


class Guard:
    """An ASGI application for HTTP around another, which is asked only what may be answered.

    Parameters
    ----------
    app : ASGI application
    token : str
    public : collection of str
        Addresses without secrets, for which no token is asked.
    """

    def __init__(self, app, token: str, *, public: Collection[str] = ()):
        self.app, self.token, self.public = app, token, public

    async def __call__(self, scope, receive, send):
        """Answer one request."""
        headers = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in scope["headers"]
        }
        token = None if scope["path"] in self.public else self.token
        problem = refusal(scope["query_string"].decode("latin-1"), headers, token)
        answer = self.app
        if problem is not None:
            answer = extra("starlette.responses").PlainTextResponse(
                problem, status_code=403
            )
        try:
            await answer(scope, receive, _with_headers(send))
        except Exception:  # a mistake of ours: the browser was told, and goes on
            logging.getLogger("manifactor").exception(
                "the explorer could not answer %s", scope["path"]
            )


def refusal(query: str, headers: dict[str, str], token: str | None) -> str | None:
    """Why a request is refused; None for one that may be answered.

    Another site that gives itself this machine's address (DNS rebinding) is told by its Host, another site's script by
    its Origin.

    Parameters
    ----------
    query : str
        What follows the question mark.
    headers : dict of str to str
        Names in lower case.
    token : str or None
        None where none is needed.

    Examples
    --------
    >>> refusal("token=abc", {"host": "127.0.0.1:8642"}, "abc") is None
    True
    >>> refusal("token=abc", {"host": "example.org"}, "abc")
    'The address must be that of this machine: 127.0.0.1 or localhost.'
    """
    host = headers.get("host", "")
    name, _, port = host.rpartition(":")
    if (name if port.isdigit() else host) not in HOSTS:
        return f"The address must be that of this machine: {' or '.join(HOSTS)}."
    origin = headers.get("origin")
    if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
        return "Requests of other sites are refused."
    if token is None:
        return None
    given = (
        headers.get("x-manifactor-token") or (parse_qs(query).get("token") or [""])[0]
    )
    return None if secrets.compare_digest(given.encode(), token.encode()) else NO_TOKEN


def _with_headers(send: Callable) -> Callable:
    async def sent(message):
        if message["type"] == "http.response.start":
            more = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            message = {**message, "headers": [*message["headers"], *more]}
        await send(message)

    return sent
