"""Middleware of the page: access control, size and time limits of requests, and security headers of answers."""

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

# Size of a request, uploads included.
MAX_BYTES = 4_000_000
# Seconds within which the body of a request must come.
BODY_SECONDS = 60.0
# A longer body is read up to this size, because a browser shows no answer before it has sent everything.
MAX_DROPPED = 100_000_000
# Paths that need no login.
OPEN = ("/login", "/static/")
# Character sets in a content type.
CHARSET = re.compile(r"charset[^=;]*=\s*\"?([^\";\s]*)")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; connect-src 'self'; style-src-elem 'self'; "
        # For lines and labels of figures.
        "style-src-attr 'unsafe-inline'; "
        "img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Without a referrer, browsers do not send the origin of a form either.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


class Guard:
    """Middleware that refuses requests by the access policy, and requests that are too long or too slow.

    Args:
        app: the application behind it.
        access: the policy of access.
    """

    def __init__(self, app: ASGIApp, access: AccessPolicy) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        answer = _Answer(send)
        try:
            await self._handle(scope, receive, answer)
        except Exception:
            if answer.begun:
                raise
            logging.getLogger("cbo_gym.study").exception("%s %s fails", scope["method"], scope["path"])
            words = "The server failed; its terminal shows the error. Reload the page to see what was recorded."
            await plain_page(500, "This failed", words)(scope, receive, answer)

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
            words = f"The request did not come within {BODY_SECONDS:.0f} s; nothing was done."
            await plain_page(408, "Too slow", words)(scope, receive, send)
            return
        if body is None:
            words = f"The request is larger than {MAX_BYTES / 1e6:.0f} MB; nothing was done."
            await plain_page(413, "Too large", words)(scope, receive, send)
        else:
            await self._app(scope, _replay(body, receive), send)

    def _refusal(self, request: Request) -> Response | None:
        if words := self._access.refusal(request):
            return plain_page(403, "Refused", words)
        for content_type in request.headers.getlist("content-type"):
            if set(CHARSET.findall(content_type.lower())) - {"utf-8", "utf8"}:
                return plain_page(415, "Refused", f"Forms are read in UTF-8; this one is {content_type[:100]}.")
        # Old versions of Starlette build request.url from the Host header.
        if self._access.knows(request) or request.scope["path"].startswith(OPEN):
            return None
        if request.method == "GET":
            return RedirectResponse("/login", 303)
        return plain_page(401, "Please log in", "Log in first, with the token that the server was started with.")


async def _body(request: Request) -> bytes | None:
    """Return the body of a request; None if it is too long."""
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size <= MAX_BYTES:
            chunks.append(chunk)
        elif size > MAX_DROPPED:
            break
    return b"".join(chunks) if size <= MAX_BYTES else None


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a receiver that first repeats a body, then receives new messages."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_next() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_next


class _Answer:
    """Sender of an answer with the security headers, which records whether the answer has begun."""

    def __init__(self, send: Send) -> None:
        self._send, self.begun = send, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
        await self._send(message)
