"""A local OIDC issuer: it signs tokens and serves its keys over HTTP."""

from __future__ import annotations

import json
import threading
import time
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from jwt.warnings import InsecureKeyLengthWarning

AUDIENCE = "https://mind.example.org/mcp"


class LocalIssuer:
    """An issuer; a context manager.

    Attributes:
        asked: the paths that were asked for, in order.
        named: what its configuration says that it is called; "": its address.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.named = ""
        self.is_away = False
        self._private: dict[str, Any] = {}
        self._public: list[dict[str, Any]] = []
        issuer = self

        class Answers(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked.append(self.path)
                told = issuer.answer(self.path)
                self.send_response(503 if issuer.is_away else 200 if told else 404)
                self.end_headers()
                self.wfile.write(b"" if issuer.is_away else json.dumps(told).encode())

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.add_key("rsa")

    def answer(self, path: str) -> object:
        """Return the response for a path; None if there is none."""
        if path == "/.well-known/openid-configuration":
            return {"issuer": self.named or self.url, "jwks_uri": f"{self.url}/keys"}
        return {"keys": self._public} if path == "/keys" else None

    def add_key(self, name: str, *, bits: int = 2_048, is_shown: bool = True) -> None:
        """Make a key: elliptic curve if it is named ec, otherwise RSA."""
        algorithm: Any
        if name.startswith("ec"):
            key: Any = ec.generate_private_key(ec.SECP256R1())
            algorithm, way = ECAlgorithm, "ES256"
        else:
            key = rsa.generate_private_key(65_537, bits)
            algorithm, way = RSAAlgorithm, "RS256"
        self._private[name] = key
        if is_shown:
            public = algorithm.to_jwk(key.public_key(), as_dict=True)
            self._public.append({**public, "kid": name, "alg": way, "use": "sig"})

    def token(
        self, key: str = "rsa", way: str = "", head: dict[str, Any] | None = None, **claims: Any
    ) -> dict[str, str]:
        """Sign a token and return the header that holds it; a claim that is None is left out."""
        now = time.time()
        told = {
            "iss": self.url, "aud": AUDIENCE, "sub": "someone", "iat": now, "exp": now + 60, "tenant": "acme",
            "scope": "openid read write",
        } | claims  # fmt: skip
        with warnings.catch_warnings(action="ignore", category=InsecureKeyLengthWarning):
            signed = jwt.encode(
                {name: each for name, each in told.items() if each is not None},
                "" if way == "none" else self._private[key],
                way or ("ES256" if key.startswith("ec") else "RS256"),
                {"kid": key} if head is None else head,
            )
        return {"Authorization": f"Bearer {signed}"}

    def __enter__(self) -> LocalIssuer:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
