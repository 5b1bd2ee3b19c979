"""Access control: this machine, the explorer's page, and the holder of the token."""

import logging
import secrets
from collections.abc import Callable, Collection
from html import escape
from urllib.parse import parse_qs, parse_qsl, urlencode

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
