"""Access control: checks of a request's headers before its body is read."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field
from ipaddress import ip_address

from starlette.requests import Request

# Methods of requests that change nothing.
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
# Smallest number of characters of a token.
MIN_TOKEN = 16
COOKIE = "cbo-gym-study"
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
# A Host header: a name, an IPv4 address or an IPv6 address in brackets; then the port.
HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::[0-9]{1,5})?", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True)
class AccessPolicy:
    """Secrets of one server process, and the checks of requests against them.

    Attributes:
        host: the address on which the server listens.
        token: the token for logging in; None if no login is needed.
        forgery: the token in each form, which other sites do not know, so that they cannot send forms.
        session: the value of the cookie of a visitor who has logged in.
    """

    host: str = "127.0.0.1"
    token: str | None = None
    forgery: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    session: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    def refusal(self, request: Request) -> str:
        """Return the reason to refuse a request; an empty string if it is accepted.

        On the loopback address only the names of this machine are accepted. This prevents DNS rebinding, in which
        another site reaches the server by a name that it lets resolve to this machine.
        """
        host = ",".join(request.headers.getlist("host"))
        parsed = HOST.fullmatch(host)
        if is_loopback(self.host) and (
            parsed is None or (parsed[1] or parsed[2]).lower() not in {*LOCAL_NAMES, self.host}
        ):
            return "This server answers to localhost only: open it by the address that it printed when it started."
        if parsed is None:
            return "The request names no host, or a host that is not a name or an address."
        origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site", "none")
        if request.method in SAFE_METHODS:
            embedded = site == "cross-site" and request.headers.get("sec-fetch-mode") != "navigate"
            return "Other sites may link to this page, not load it." if embedded else ""
        if origin not in (None, f"http://{host}", f"https://{host}") or site not in ("none", "same-origin"):
            return "This form was sent from another site, so nothing was done."
        return ""

    def is_logged_in(self, request: Request) -> bool:
        """Return whether the visitor has logged in, or does not need to."""
        return self.token is None or equal_in_constant_time(request.cookies.get(COOKIE, ""), self.session)


def equal_in_constant_time(string: str, expected: str) -> bool:
    """Return whether two strings are equal, in a time that does not tell how much of them is equal."""
    return secrets.compare_digest(string.encode("utf-8", "surrogatepass"), expected.encode())


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches a server that listens on this address."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
