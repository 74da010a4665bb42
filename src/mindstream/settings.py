"""Settings from flags, the environment, one TOML file, and defaults; earlier sources take precedence.

The file is the one that --settings or MINDSTREAM_SETTINGS names, otherwise ~/.config/mindstream/settings.toml. Its keys
are the fields of `Settings`; relative paths in it are resolved against its folder. A mindstream.toml in the working
directory is read only if the user names it: otherwise the author of a downloaded folder could choose the prompts and
the model that receives the conversation.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError, field_validator
from pydantic_core import ErrorDetails

from mindstream import plugins
from mindstream.clock import read_zone
from mindstream.errors import InputError, SettingsError
from mindstream.guidance import nearest
from mindstream.identifiers import normal_name
from mindstream.location import Location
from mindstream.paths import as_path, is_path, own_folder, read_text, usable, variable

PREFIX = "MINDSTREAM_"
DEFAULT, RULES = "default", "rules"
SECONDS = Field(gt=0, allow_inf_nan=False)
FILE_VARIABLE = "MINDSTREAM_SETTINGS"
HERE = "mindstream.toml"
"""Name of a settings file in the working directory. It is read only if the user names it; see `Chosen.unread`."""
MAX_BYTES = 100_000
"""Maximum size of a settings file, in bytes."""
OTHER_VARIABLES = frozenset({FILE_VARIABLE, "MINDSTREAM_DEBUG", "MINDSTREAM_WEBHOOK_SECRET"})
TABLES = ("memory", "context", "patience_s")
"""Fields, apart from `roles`, whose environment variable may contain JSON."""
MAX_COUNT = 10**15
"""Maximum value of a setting that is a whole number."""
EXPECTED: Mapping[str, str] = {
    "float_parsing": "a number without a unit is expected, such as 30 or 2.5",
    "float_type": "a number is expected, such as 30 or 2.5",
    "int_parsing": "a whole number without a unit is expected, such as 4096",
    "int_from_float": "a whole number is expected, such as 4096",
    "int_type": "a whole number is expected, such as 4096",
    "bool_parsing": "true or false is expected",
    "bool_type": "true or false is expected",
    "finite_number": "a finite number is expected",
    "greater_than": "a number above {gt:g} is expected",
    "greater_than_equal": "a number of at least {ge:g} is expected",
    "less_than_equal": "a number of at most {le:,} is expected",
    "string_type": "a text is expected",
    "dict_type": "a table is expected",
    "path_type": "a path is expected",
}
"""The expected value, as error messages name it, by the type of Pydantic's error."""


def _data() -> Location:
    if (folder := own_folder("XDG_DATA_HOME", ".local/share")) is None:
        raise SettingsError("your home directory is unknown: name a data folder with --data DIR")
    return Location(folder)


class Settings(BaseModel, frozen=True, extra="forbid"):
    """All settings.

    Attributes:
        data: a folder, or the URL of a PostgreSQL database.
        model: the model of every role that is not in `roles`. Without `model`, rules answer for these roles.
        fallback: the model that answers if another model fails: `rules`, or a model's name; "": no fallback.
        patience_s: timeout, in seconds, for a model's first word and between two words, for all models or by model
            name. Default: 60 for the first word and 30 between words; 300 and 120 for models on this machine or in the
            local network.
        prompts: a folder with the user's own prompt texts.
        context: size of a model's window in tokens, for all models or by model name; longer requests are shortened.
        keep_prompts: whether prompts and replies are stored verbatim in the log, next to their costs.
        reranker: the second stage of recall: none, model, cross:NAME.
        embedder: name of the embedder of new memories. A memory with vectors uses the embedder that made the vectors,
            unless this setting is set.
        memory: how memories recall, and whether they decay (see memory/policy): retention, base, cap_s, …
        timezone: the user's time zone, such as Europe/Berlin; "": the time zone of this machine.
        deadline_s: maximum time, in seconds, that the Talker waits for the Reasoner before it answers by itself.
        budget_calls, budget_tokens, budget_usd: limits of model usage: of a life in total, otherwise of one command.
        redact: the redactor of personal data in inbound text (text/personal); "": none.
    """

    data: Location = Field(default_factory=_data)
    user: str = "you"
    pack: str = "sleep"
    model: str | None = None
    fallback: str = ""
    patience_s: Annotated[float, SECONDS] | dict[str, Annotated[float, SECONDS]] | None = None
    roles: dict[str, str] = Field(default_factory=dict)
    gate: str = ""
    embedder: str = "wordllama"
    reranker: str = ""
    memory: dict[str, str | int | float] = Field(default_factory=dict)
    prompts: Path | None = None
    context: (
        Annotated[int, Field(ge=512, le=MAX_COUNT)] | dict[str, Annotated[int, Field(ge=512, le=MAX_COUNT)]] | None
    ) = None
    keep_prompts: bool = False
    timezone: str = ""
    deadline_s: float = Field(30.0, gt=0, allow_inf_nan=False)
    budget_calls: int | None = Field(None, ge=0, le=MAX_COUNT)
    budget_tokens: int | None = Field(None, ge=0, le=MAX_COUNT)
    budget_usd: float | None = Field(None, ge=0, allow_inf_nan=False)
    redact: str = ""

    @field_validator("user")
    @classmethod
    def _normal_user(cls, user: str) -> str:
        return normal_name(user)

    @property
    def models(self) -> dict[str, str]:
        """The models by role; a default model comes first. If no model is set at all, the default is `rules`."""
        named = {DEFAULT: self.model} if self.model else {}
        return named | self.roles or {DEFAULT: RULES}

    @property
    def named_embedder(self) -> str | None:
        """The embedder that the user has set; None: each memory uses its own (memory/recall/embedding)."""
        return self.embedder if "embedder" in self.model_fields_set else None

    @property
    def only_stand_ins(self) -> bool:
        """Whether all roles are answered by rules and no role has a model."""
        return set(self.models.values()) == {RULES}


@dataclass(frozen=True)
class Chosen:
    """The settings and their sources.

    Attributes:
        origins: the source of each value that is not a default: a flag, an environment variable, or a file.
        file: the settings file that was read; None: none.
        unread: a settings file in the working directory that exists but was not read.
    """

    settings: Settings
    origins: Mapping[str, str]
    file: Path | None
    unread: Path | None = None


def choose(flags: Mapping[str, object] | None = None) -> Chosen:
    """Combine the settings of all sources; a flag that is None was not given.

    Raises:
        SettingsError: a value is invalid; the message names its source.
    """
    file = settings_file()
    layers: list[tuple[Callable[[str], str], dict[str, Any]]] = [
        (lambda _: str(file), _of_file(file) if file else {}),
        (lambda name: PREFIX + name.upper(), _of_environment()),
        (flag_of, {name: value for name, value in (flags or {}).items() if value not in (None, [], ())}),
    ]
    layers = [(origin, _tidied(layer, origin)) for origin, layer in layers]
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    roles: dict[str, str] = {}
    for origin, layer in layers:
        values |= layer
        origins |= {name: origin(name) for name in layer if name != "roles"}
        table = _table(layer, origin("roles"))
        if DEFAULT in table:  # it also replaces the models of single roles from sources of lower precedence
            values["model"], roles = table.pop(DEFAULT), {}
            origins["model"] = origin("model" if "model" in layer else "roles")
            origins = {name: where for name, where in origins.items() if not name.startswith("roles")}
        roles |= table
        origins |= {f"roles.{role}": origin("roles") for role in table}
    values["roles"] = roles
    unread = None if variable(FILE_VARIABLE) or not os.path.lexists(HERE) else Path(HERE)
    return Chosen(_checked(values, origins), origins, file, unread)


def flag_of(name: str) -> str:
    """Return the command-line flag that sets a field."""
    return "--" + {"roles": "role"}.get(name, name.removesuffix("_s")).replace("_", "-")


def settings_file() -> Path | None:
    """Return the settings file that the user names, otherwise the user's default settings file; None: there is none."""
    if named := variable(FILE_VARIABLE):
        with _naming(f"--settings or {FILE_VARIABLE}"):
            return usable(named)
    config = own_folder("XDG_CONFIG_HOME", ".config")
    return config / "settings.toml" if config and os.path.lexists(config / "settings.toml") else None


def unknown_variables() -> dict[str, str]:
    """Return the environment variables that begin with MINDSTREAM_ but are not settings.

    Each has the name of the variable of a similar setting, or "".
    """
    known = {PREFIX + name.upper() for name in Settings.model_fields} | OTHER_VARIABLES
    unknown = sorted(name for name in os.environ if name.upper().startswith(PREFIX) and name not in known)
    return {name: nearest(name.upper(), known, 0.85) for name in unknown}


def role(text: str, origin: str = "--role") -> tuple[str, str]:
    """Parse `ROLE=MODEL` into role and model.

    Raises:
        SettingsError: the text has another form.
    """
    name, equals, model = text.partition("=")
    if not (equals and name.strip() and model.strip()):
        raise SettingsError(f"{origin}: ROLE=MODEL is expected, such as talker=openai:gpt-5-mini, found {shown(text)}")
    return name.strip(), model.strip()


def shown(value: object) -> str:
    """Format a value for an error message: at most 80 characters, without the user name and password of a URL."""
    text = re.sub(r"//[^/@\s]*@", "//***@", repr(value) if isinstance(value, str) else str(value))
    return text if len(text) <= 80 else f"{text[:77]}…"


def one_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a dictionary from the entries of a JSON object (for `object_pairs_hook`).

    Raises:
        KeyError: a key occurs twice; the key is the error's argument.
    """
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _ in pairs]
        raise KeyError(next(name for name in names if names.count(name) > 1))
    return table


def _tidied(layer: Mapping[str, Any], origin: Callable[[str], str]) -> dict[str, Any]:
    """Strip white space from the texts of one source; from paths, strip only line ends.

    Scripts with CRLF line ends add this white space. The meaning of an empty text depends on the setting:

    - The setting is off by default, or is `roles`: the empty text is kept.
    - The default is None: the setting is not set, but an empty flag is refused.
    - Any other setting: the empty text is refused.

    Raises:
        SettingsError: an empty text is refused.
    """
    tidied: dict[str, Any] = {}
    for name, value in layer.items():
        text = value.strip("\r\n\ufeff") if isinstance(value, str) else None
        if text is not None and (name not in ("data", "prompts", "pack") or not text.strip()):
            text = text.strip()
        usual = Settings.model_fields[name].default
        if text == "" and usual is None and not origin(name).startswith("--"):
            continue
        if text == "" and usual != "" and name != "roles":
            raise SettingsError(
                f"{_place(name, origin(name))}: a value is expected, found an empty text; remove it to use the default"
            )
        tidied[name] = value if text is None else text
    return tidied


def _place(name: str, where: str) -> str:
    return where if where.startswith(("-", PREFIX)) else f"{where}: {name}"


def _of_environment() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in Settings.model_fields:
        if value := variable(PREFIX + name.upper()):
            is_json = name in TABLES and value[0] in "{["
            found[name] = _of_json(value, PREFIX + name.upper()) if is_json else value
    return found


def _of_json(text: str, where: str) -> Any:
    """Parse an environment variable as JSON.

    Raises:
        SettingsError: the JSON is invalid, or a key occurs twice.
    """
    try:
        return json.loads(text, object_pairs_hook=one_each)
    except KeyError as error:
        raise SettingsError(f"{where}: the key {error} occurs twice; remove one") from None
    except (ValueError, RecursionError):
        raise SettingsError(f"{where}: valid JSON is expected, found {shown(text)}") from None


def _of_file(file: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(read_text(file, MAX_BYTES))
    except InputError as error:
        raise SettingsError(f"the settings file {file} {error}") from None
    except RecursionError:
        raise SettingsError(f"the settings file {file} is nested too deeply") from None
    except ValueError as error:
        why = str(error).replace("Cannot overwrite a value", "a key occurs twice")
        raise SettingsError(f"the settings file {file} is not valid TOML: {why}") from None
    for name in found:
        if name not in Settings.model_fields:
            near = nearest(name, Settings.model_fields)
            advice = f"did you mean {near!r}?" if near else f"known keys are {', '.join(Settings.model_fields)}"
            raise SettingsError(f"{file}: unknown key {name!r}; {advice}")
    if isinstance(found.get("data"), str):
        with _naming(f"{file}: data"):
            found["data"] = Location.of(found["data"]).under(file.parent)
    for name in ("prompts", "pack"):
        value = found.get(name)
        if isinstance(value, str) and (name != "pack" or is_path(value)):
            with _naming(f"{file}: {name}"):
                path = file.parent / usable(value)
            found[name] = as_path(path) if name == "pack" else str(path)
    return found


def _table(layer: Mapping[str, Any], origin: str) -> dict[str, str]:
    """Return the models that one source sets, by role, the default model first.

    Raises:
        SettingsError: a role is unknown or has two models, or the source has an invalid form.
    """
    roles = layer.get("roles", {})
    if isinstance(roles, str) and roles.lstrip().startswith("{"):
        roles = _of_json(roles, origin)
    elif isinstance(roles, str):
        roles = [part for part in re.split(r"[,;\s]+", roles) if part]
    if isinstance(roles, list) and all(isinstance(part, str) for part in roles):
        pairs = list(dict.fromkeys(role(part, origin) for part in roles))
        roles = dict(pairs)
        if len(roles) < len(pairs):
            twice = next(name for name, model in pairs if roles[name] != model)
            raise SettingsError(f"{origin}: the role {twice!r} has two models; name it once")
    if not (isinstance(roles, dict) and all(isinstance(model, str) and model.strip() for model in roles.values())):
        raise SettingsError(f"{origin}: a table from role to model name is expected, found {shown(roles)}")
    for name in roles:
        if name not in (*plugins.roles(), DEFAULT):
            near = nearest(name, (*plugins.roles(), DEFAULT))
            meant = f"did you mean {near!r}? " if near else ""
            raise SettingsError(
                f"{origin}: there is no role {name!r}; {meant}the roles are {', '.join(plugins.roles())}"
            )
    roles = {name: model.strip() for name, model in roles.items()}
    return {**({DEFAULT: layer["model"]} if "model" in layer else {}), **roles}


def _checked(values: Mapping[str, Any], origins: Mapping[str, str]) -> Settings:
    try:
        with _naming(origins.get("data", "data")):
            settings = Settings.model_validate(values)
    except ValidationError as error:
        by_name = {}
        # A value that may have several types gets one error per type. Keep the first error. If the value is a table,
        # keep the last error, which is about the type table.
        for found in error.errors(include_url=False):
            name = str(found["loc"][0])
            if name not in by_name or isinstance(values[name], dict):
                by_name[name] = found
        raise SettingsError("; ".join(_finding(found, origins) for found in by_name.values())) from None
    if settings.timezone:
        with _naming(_place("timezone", origins["timezone"])):
            read_zone(settings.timezone)
    changed: dict[str, object] = {}
    if settings.prompts is not None:
        with _naming(origins.get("prompts", "prompts")):
            changed["prompts"] = usable(settings.prompts)
    if is_path(settings.pack):
        with _naming(origins.get("pack", "pack")):
            changed["pack"] = as_path(usable(settings.pack))
    return settings.model_copy(update=changed)


def _finding(found: ErrorDetails, origins: Mapping[str, str]) -> str:
    """Describe an invalid value: where it is set, what was expected, and what was found."""
    name = str(found["loc"][0])
    inner = [str(each) for each in found["loc"][1:] if not str(each).startswith(("constrained-", "dict["))]
    where = ".".join([_place(name, origins.get(name, name)), *inner])
    usual = found["msg"].removeprefix("Value error, ")
    expected = EXPECTED.get(found["type"], usual[:1].lower() + usual[1:]).format(**found.get("ctx", {}))
    return f"{where}: {expected}, found {shown(found['input'])}"


@contextlib.contextmanager
def _naming(where: str) -> Iterator[None]:
    """Turn an InputError into a SettingsError that begins with `where`."""
    try:
        yield
    except InputError as error:
        raise SettingsError(f"{where}: {error}") from None
