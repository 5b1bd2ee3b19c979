"""Access control: this machine, the explorer's page, and the holder of the token."""

import logging
import secrets
from collections.abc import Callable, Collection
from urllib.parse import parse_qs

from manifactor._support.extras import extra

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
    # The address holds the token.
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    # Another start on the same port may show another run.
    "cache-control": "no-store",
}
NO_TOKEN = (
    "This page needs the address that `manifactor explore` printed, with its token; "
    "every start has a new one."
)


class Guard:
    """ASGI application for HTTP that passes permitted requests on to another.

    Parameters
    ----------
    app : ASGI application
    token : str
    public : collection of str
        Addresses without secrets, which need no token.
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
            refuse = extra("starlette.responses").PlainTextResponse
            answer = refuse(problem, status_code=403)
        try:
            await answer(scope, receive, _with_headers(send))
        # A defect of ours: the browser got an answer already, and the server goes on.
        except Exception:
            log = logging.getLogger("manifactor")
            log.exception("the explorer could not answer %s", scope["path"])


def refusal(query: str, headers: dict[str, str], token: str | None) -> str | None:
    """Return why a request is refused; None for one that may be answered.

    The Host of a request gives away a site that took the address of this machine (DNS
    rebinding), its Origin a script of another site.

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
    # Browsers leave it out where a page asks its own server by GET.
    if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
        return "Requests of other sites are refused."
    if token is None or _has_token(query, headers, token):
        return None
    return NO_TOKEN


def _has_token(query: str, headers: dict[str, str], token: str) -> bool:
    in_query = parse_qs(query).get("token") or [""]
    given = headers.get("x-manifactor-token") or in_query[0]
    # In constant time, so that a wrong token cannot be improved letter by letter.
    return secrets.compare_digest(given.encode(), token.encode())


def _with_headers(send: Callable) -> Callable:
    async def sent(message):
        if message["type"] == "http.response.start":
            more = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            message = {**message, "headers": [*message["headers"], *more]}
        await send(message)

    return sent
