"""Settings from flags, the environment, one TOML file, and defaults, in this order.

The file is the one that --settings or MINDSTREAM_SETTINGS names, else ~/.config/mindstream/settings.toml. Its keys
are the fields of `Settings`; relative paths in it start from its folder. A mindstream.toml in the working directory
is read only if it is named: otherwise the author of a downloaded folder could choose the model that gets the
conversation, and its prompts.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import ErrorDetails

from mindstream import plugins
from mindstream.clock import read_zone
from mindstream.errors import InputError, SettingsError
from mindstream.identifiers import normal_name
from mindstream.location import Location
from mindstream.paths import as_path, is_path, own_folder, read_text, usable, variable

PREFIX = "MINDSTREAM_"
DEFAULT, RULES = "default", "rules"
SECONDS = Field(gt=0, allow_inf_nan=False)
FILE_VARIABLE = "MINDSTREAM_SETTINGS"
HERE = "mindstream.toml"
"""A settings file in the working directory; see `Chosen.unread`."""
MAX_BYTES = 100_000
"""Maximum size of a settings file."""
OTHER_VARIABLES = frozenset({FILE_VARIABLE, "MINDSTREAM_DEBUG", "MINDSTREAM_WEBHOOK_SECRET"})
TABLES = ("memory", "context", "patience_s")
"""Fields that an environment variable may set as JSON."""
MAX_COUNT = 10**15
"""Maximum of a whole number."""
EXPECTED: Mapping[str, str] = {
    "float_parsing": "a number without a unit is expected, as 30 or 2.5",
    "float_type": "a number is expected, as 30 or 2.5",
    "int_parsing": "a whole number without a unit is expected, as 4096",
    "int_from_float": "a whole number is expected, as 4096",
    "int_type": "a whole number is expected, as 4096",
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
"""The expected value, by the type of Pydantic's error."""


def _data() -> Location:
    if (folder := own_folder("XDG_DATA_HOME", ".local/share")) is None:
        raise SettingsError("your home directory is unknown, so say --data DIR")
    return Location(folder)


class Settings(BaseModel):
    """All settings.

    Attributes:
        data: a folder, or the URL of a PostgreSQL database.
        model: the model of every role that `roles` does not name; without either, the rule-based default answers.
        fallback: the model that answers if another one fails: `rules`, or a model; none unless it is set.
        patience_s: timeout until a model's first word and between two, for all models or by name; by default one
            minute and half a minute, for models on this machine five minutes and two.
        prompts: a folder with the user's own prompt texts.
        context: size of a model's window in tokens, for all models or by name; longer requests are cut.
        keep_prompts: store prompts and replies in the log, verbatim, next to their costs.
        reranker: the second stage of recall: none, model, cross:NAME.
        embedder: embeds new memories; a memory with vectors keeps its own embedder, unless this is set.
        memory: how memories recall, and whether they decay (see memory/policy): retention, base, cap_s, …
        timezone: the user's time zone, as Europe/Berlin; "": that of this machine in `chat`, otherwise unknown.
        deadline_s: how long the Talker waits for the Reasoner before it answers without it.
        budget_calls, budget_tokens, budget_usd: limits of model usage: of a life in total, otherwise of one command.
        redact: the redactor of personal data in inbound text (text/personal); "": none.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

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
        """The models by role; the default first if there is one."""
        named = {DEFAULT: self.model} if self.model else {}
        return named | self.roles or {DEFAULT: RULES}

    @property
    def named_embedder(self) -> str | None:
        """The embedder if one is set; None: each memory's own (memory/recall/embedding)."""
        return self.embedder if "embedder" in self.model_fields_set else None

    @property
    def only_stand_ins(self) -> bool:
        """Whether no role has a model."""
        return set(self.models.values()) == {RULES}


@dataclass(frozen=True)
class Chosen:
    """Settings, and the source of each that is not a default: a flag, a variable, or a file.

    Attributes:
        unread: a settings file in the working directory that was not read.
    """

    settings: Settings
    origins: Mapping[str, str]
    file: Path | None
    unread: Path | None = None


def choose(flags: Mapping[str, object] | None = None) -> Chosen:
    """Collect the settings; a flag that is None was not given.

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
        if DEFAULT in table:  # naming a model sets all roles, also those that a lower layer sets
            values["model"], roles = table.pop(DEFAULT), {}
            origins["model"] = origin("model" if "model" in layer else "roles")
            origins = {name: where for name, where in origins.items() if not name.startswith("roles")}
        roles |= table
        origins |= {f"roles.{role}": origin("roles") for role in table}
    values["roles"] = roles
    unread = None if variable(FILE_VARIABLE) or not os.path.lexists(HERE) else Path(HERE)
    return Chosen(_checked(values, origins), origins, file, unread)


def flag_of(name: str) -> str:
    """Return the flag that sets a field."""
    return "--" + {"roles": "role"}.get(name, name.removesuffix("_s")).replace("_", "-")


def settings_file() -> Path | None:
    """Return the settings file: the named one, else the user's own; None if there is none."""
    if named := variable(FILE_VARIABLE):
        with _naming(f"--settings or {FILE_VARIABLE}"):
            return usable(named)
    config = own_folder("XDG_CONFIG_HOME", ".config")
    return config / "settings.toml" if config and os.path.lexists(config / "settings.toml") else None


def unknown_variables() -> dict[str, str]:
    """Return environment variables with our prefix that are not settings, each with a similar setting or ""."""
    known = {PREFIX + name.upper() for name in Settings.model_fields} | OTHER_VARIABLES
    unknown = sorted(name for name in os.environ if name.upper().startswith(PREFIX) and name not in known)
    return {name: next(iter(difflib.get_close_matches(name.upper(), known, 1, 0.85)), "") for name in unknown}


def role(text: str, origin: str = "--role") -> tuple[str, str]:
    """Parse `ROLE=MODEL`.

    Raises:
        SettingsError: it has another form.
    """
    name, equals, model = text.partition("=")
    if not (equals and name.strip() and model.strip()):
        raise SettingsError(
            f"{origin}: a role is set by ROLE=MODEL, as in talker=openai:gpt-5-mini, not by {shown(text)}"
        )
    return name.strip(), model.strip()


def shown(value: object) -> str:
    """Format a value for an error message: shortened, and without the password of a URL."""
    text = re.sub(r"//[^/@\s]*@", "//***@", repr(value) if isinstance(value, str) else str(value))
    return text if len(text) <= 80 else f"{text[:77]}…"


def one_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a table from a JSON object's entries (`object_pairs_hook`).

    Raises:
        KeyError: a key occurs twice.
    """
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _ in pairs]
        raise KeyError(next(name for name in names if names.count(name) > 1))
    return table


def _tidied(layer: Mapping[str, Any], origin: Callable[[str], str]) -> dict[str, Any]:
    """Strip texts of a layer, since scripts with CRLF leave white space there.

    An empty text switches off a setting that is off by default; in a file it leaves a setting without a default unset.

    Raises:
        SettingsError: an empty text is given for a setting that always has a value.
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
            raise SettingsError(f"{_place(name, origin(name))}: a value is expected, found an empty text; leave it out")
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
    """Parse a variable as JSON.

    Raises:
        SettingsError: it is invalid, or a key occurs twice.
    """
    try:
        return json.loads(text, object_pairs_hook=one_each)
    except KeyError as error:
        raise SettingsError(f"{where}: the key {error} is there twice") from None
    except (ValueError, RecursionError):
        raise SettingsError(f"{where}: {shown(text)} is not JSON") from None


def _of_file(file: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(read_text(file, MAX_BYTES))
    except InputError as error:
        raise SettingsError(f"the settings file {file} {error}") from None
    except RecursionError:
        raise SettingsError(f"the settings file {file} is nested too deeply") from None
    except ValueError as error:
        why = str(error).replace("Cannot overwrite a value", "a key is there twice")
        raise SettingsError(f"the settings file {file} is not TOML: {why}") from None
    for name in found:
        if name not in Settings.model_fields:
            near = difflib.get_close_matches(name, Settings.model_fields, 1)
            advice = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(Settings.model_fields)}"
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
    """Return the models that a layer names, by role."""
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
            raise SettingsError(f"{origin}: the role {twice!r} is given two models; name it once")
    if not (isinstance(roles, dict) and all(isinstance(model, str) and model.strip() for model in roles.values())):
        raise SettingsError(f"{origin}: roles is a table from role to the name of a model, not {shown(roles)}")
    for name in roles:
        if name not in (*plugins.roles(), DEFAULT):
            near = difflib.get_close_matches(name, (*plugins.roles(), DEFAULT), 1)
            meant = f"did you mean {near[0]!r}? " if near else ""
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
        for found in error.errors(include_url=False):  # for a union, the error about the type of the value
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
    """Describe an invalid value: its place, the expected value, and the value found."""
    name = str(found["loc"][0])
    inner = [str(each) for each in found["loc"][1:] if not str(each).startswith(("constrained-", "dict["))]
    where = ".".join([_place(name, origins.get(name, name)), *inner])
    usual = found["msg"].removeprefix("Value error, ")
    expected = EXPECTED.get(found["type"], usual[:1].lower() + usual[1:]).format(**found.get("ctx", {}))
    return f"{where}: {expected}, found {shown(found['input'])}"


@contextlib.contextmanager
def _naming(where: str) -> Iterator[None]:
    """Turn an InputError into a SettingsError that names the place of the value."""
    try:
        yield
    except InputError as error:
        raise SettingsError(f"{where}: {error}") from None
