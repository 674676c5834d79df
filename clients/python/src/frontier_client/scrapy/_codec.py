"""Requests as text, and back.

A request is stored as JSON, never as a pickle: whoever may write to the server
must not be able to run code in a crawler. Tuples, bytes and sets are kept as such.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from scrapy import Request, Spider
from scrapy.utils.request import RequestFingerprinterProtocol, request_from_dict
from w3lib.url import canonicalize_url

MAX_META = 60 << 10
"""The server takes 64 KiB of meta for a URL, its framing included."""

_TAG = "\x00"
_UNSTORED = ("download_slot", "download_latency", "_scheme_proxy")


class Unstorable(ValueError):
    """The request cannot be stored on the server."""


def _pack(v: Any) -> Any:
    if v is None or isinstance(v, (str, bool, int, float)):
        return v
    if isinstance(v, list):
        return [_pack(x) for x in v]
    if isinstance(v, dict):
        if all(isinstance(k, str) and not k.startswith(_TAG) for k in v):
            return {k: _pack(x) for k, x in v.items()}
        return {_TAG + "dict": [[_pack(k), _pack(x)] for k, x in v.items()]}
    if isinstance(v, tuple):
        return {_TAG + "tuple": [_pack(x) for x in v]}
    if isinstance(v, (set, frozenset)):
        return {_TAG + type(v).__name__: [_pack(x) for x in v]}
    if isinstance(v, bytes):
        return {_TAG + "bytes": base64.b64encode(v).decode()}
    raise Unstorable(f"a {type(v).__module__}.{type(v).__qualname__} is no JSON value")


def _unpack(v: Any) -> Any:
    if isinstance(v, list):
        return [_unpack(x) for x in v]
    if not isinstance(v, dict):
        return v
    if len(v) == 1 and (tag := next(iter(v))).startswith(_TAG):
        x = v[tag]
        match tag[1:]:
            case "dict":
                return {_unpack(k): _unpack(y) for k, y in x}
            case "tuple":
                return tuple(_unpack(y) for y in x)
            case "set":
                return {_unpack(y) for y in x}
            case "frozenset":
                return frozenset(_unpack(y) for y in x)
            case "bytes":
                return base64.b64decode(x)
    return {k: _unpack(x) for k, x in v.items()}


_DEFAULTS = Request("http://x.invalid/").to_dict()


def dump(request: Request, spider: Spider) -> str:
    """The request as JSON, without what it has by default.

    Raises Unstorable where something in it has no JSON form, or a callback is no
    method of the spider."""
    try:
        d = request.to_dict(spider=spider)
    except ValueError as e:
        raise Unstorable(str(e)) from e
    d["meta"] = {k: v for k, v in d["meta"].items() if k not in _UNSTORED}
    d = {k: v for k, v in d.items() if k not in _DEFAULTS or v != _DEFAULTS[k]}
    try:
        text = json.dumps(_pack(d), separators=(",", ":"), allow_nan=True)
    except RecursionError as e:
        raise Unstorable("it contains itself") from e
    if len(text) > MAX_META:
        raise Unstorable(f"it has {len(text)} bytes; {MAX_META} can be stored")
    return text


def load(text: str, spider: Spider) -> Request:
    """The request of dump."""
    return request_from_dict({**_DEFAULTS, **_unpack(json.loads(text))}, spider=spider)


def bare(text: str) -> bool:
    """Whether a request of dump is no more than its URL."""
    d = json.loads(text)
    return not d.keys() - {"url", "dont_filter", "meta"} and not d.get("meta", {}).keys() - {"depth", "is_start_request"}


def digest(text: str) -> str:
    """A hash of a request of dump, whatever its depth."""
    d = json.loads(text)
    d.get("meta", {}).pop("depth", None)
    return hashlib.sha256(json.dumps(d).encode()).hexdigest()[:32]


def key(request: Request, fingerprinter: RequestFingerprinterProtocol, plain: bool) -> str:
    """The URL under which the server knows the request: two requests are one if
    their keys are. A GET without a body is known by its URL in canonical form;
    another, or any with a fingerprinter of the user's (plain is false), by URL and
    fingerprint."""
    url = canonicalize_url(request.url)
    if plain and request.method == "GET" and not request.body:
        return url
    return f"{url}#{fingerprinter.fingerprint(request).hex()}"
