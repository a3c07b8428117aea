"""Checks of a request before it is read: its size, its host, its token."""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN = frozenset({"/", "/health", "/docs", "/openapi.json"})
"""Paths that need no token: they tell nothing about the model."""
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}


class Gate:
    """Refuse requests without the token, for other hosts, or with a body that is too large.

    Parameters
    ----------
    app : the application behind it
    token : what ``Authorization: Bearer`` must hold; None for no token
    max_bytes : of a body
    hosts : names of this server in the header Host; None for any. On the loopback address this
        keeps pages of other sites from asking by a name that they let point to it.
    """

    def __init__(
        self, app: App, token: str | None, max_bytes: int, hosts: tuple[str, ...] | None
    ) -> None:
        self._app, self._max_bytes, self._hosts = app, max_bytes, hosts
        self._expected = None if token is None else f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the start and end of the server."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        send = _with_headers(send)
        if self._hosts is not None and _host(headers.get(b"host", b"")) not in self._hosts:
            await refuse(send, 421, "this server does not answer for that host")
        elif not self._may_enter(scope["path"], headers):
            await refuse(send, 401, "a token is needed: Authorization: Bearer ...")
        else:
            body = await self._body(headers, receive)
            if body is None:
                await refuse(send, 413, f"the body has more than {self._max_bytes} bytes")
            else:
                await self._app(scope, _replayed(body, receive), send)

    def _may_enter(self, path: str, headers: dict[bytes, bytes]) -> bool:
        if self._expected is None or path in OPEN:
            return True
        return hmac.compare_digest(headers.get(b"authorization", b""), self._expected)

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes | None:
        """The whole body; None if it is too large."""
        told = headers.get(b"content-length", b"0")
        if told.isdigit() and int(told[:20]) > self._max_bytes:
            return None
        parts, size = [], 0
        while True:
            message = await receive()
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._max_bytes:
                return None
            if message["type"] != "http.request" or not message.get("more_body"):
                return b"".join(parts)


def _host(header: bytes) -> str:
    """The name in a header Host, without the port."""
    name = header.decode("latin-1").lower()
    return name.rpartition("]")[0] + "]" if name.startswith("[") else name.partition(":")[0]


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A receiver that gives the body first."""
    first = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def again() -> MutableMapping[str, Any]:
        return next(first, None) or await receive()

    return again


def _with_headers(send: Send) -> Send:
    added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

    async def sender(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *added]}
        await send(message)

    return sender


async def refuse(send: Send, status: int, reason: str) -> None:
    """Answer with an error document."""
    body = json.dumps({"error": reason}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if status == 413:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
