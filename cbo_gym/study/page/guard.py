"""Middleware of the page: access control, size and time limits of requests, and security headers of responses."""

from __future__ import annotations

import asyncio
import logging
import re

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cbo_gym.study.page.access import AccessPolicy
from cbo_gym.study.page.templates import plain_page

# Largest body of a request, uploads included.
MAX_BYTES = 4_000_000
# Seconds within which the whole body of a request must arrive.
BODY_SECONDS = 60.0
# The rest of a body that is too large is read and discarded up to this size, because a browser shows the response only
# after it has sent the whole body.
MAX_DISCARDED_BYTES = 100_000_000
# Paths that need no login.
PUBLIC_PATHS = ("/login", "/static/")
# Encoding that a content type names.
CHARSET = re.compile(r"charset[^=;]*=\s*\"?([^\";\s]*)")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; connect-src 'self'; style-src-elem 'self'; "
        # Figures have inline styles on lines and labels.
        "style-src-attr 'unsafe-inline'; "
        "img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not "no-referrer": browsers would then also leave out the origin of a form, which the access policy checks.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


class Guard:
    """Middleware that refuses requests if the access policy forbids them, or if they are too large or too slow."""

    def __init__(self, app: ASGIApp, access: AccessPolicy) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        sender = _ResponseSender(send)
        try:
            await self._handle(scope, receive, sender)
        except Exception:
            if sender.started:
                raise
            logging.getLogger("cbo_gym.study").exception("%s %s failed", scope["method"], scope["path"])
            message = "The server failed; its terminal shows the error. Reload the page to see what was recorded."
            await plain_page(500, "Server error", message)(scope, receive, sender)

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if (refusal := self._refusal(request)) is not None:
            await refusal(scope, receive, send)
            return
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await _body(request)
        except ClientDisconnect:
            return
        except TimeoutError:
            message = f"The request did not arrive within {BODY_SECONDS:.0f} s; nothing was done."
            await plain_page(408, "Too slow", message)(scope, receive, send)
            return
        if body is None:
            message = f"The request is larger than {MAX_BYTES / 1e6:.0f} MB; nothing was done."
            await plain_page(413, "Too large", message)(scope, receive, send)
        else:
            await self._app(scope, _replay(body, receive), send)

    def _refusal(self, request: Request) -> Response | None:
        if reason := self._access.refusal(request):
            return plain_page(403, "Refused", reason)
        for content_type in request.headers.getlist("content-type"):
            if set(CHARSET.findall(content_type.lower())) - {"utf-8", "utf8"}:
                return plain_page(415, "Refused", f"Forms must be in UTF-8; this one is {content_type[:100]}.")
        # The path comes from the scope, because old versions of Starlette build request.url from the Host header.
        if self._access.is_logged_in(request) or request.scope["path"].startswith(PUBLIC_PATHS):
            return None
        if request.method == "GET":
            return RedirectResponse("/login", 303)
        return plain_page(401, "Please log in", "Log in first, with the token that the server was started with.")


async def _body(request: Request) -> bytes | None:
    """Return the body of a request; None if it is too large."""
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size <= MAX_BYTES:
            chunks.append(chunk)
        elif size > MAX_DISCARDED_BYTES:
            break
    return b"".join(chunks) if size <= MAX_BYTES else None


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return an ASGI ``receive`` that first returns a body that was already read, then waits for new messages."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_next() -> Message:
        return pending.pop() if pending else await receive()

    return receive_next


class _ResponseSender:
    """ASGI ``send`` that adds the security headers, and records whether the response has started."""

    def __init__(self, send: Send) -> None:
        self._send, self.started = send, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
        await self._send(message)
