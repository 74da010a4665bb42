"""What a person may set, and from where: flags, then the environment, then one TOML file, then the defaults.

The file is the one that --settings or MINDSTREAM_SETTINGS names, else ~/.config/mindstream/settings.toml. Its keys are
the fields of `Settings`; paths in it start from its own folder. A mindstream.toml in the working directory is read only
where it is named: whoever wrote that folder could else choose who gets to hear the talk, and in whose words it is led.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping
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
"""A settings file that may lie in the working directory; see `Chosen.unread`."""
MOST_BYTES = 100_000
"""The largest settings file."""
OTHER_VARIABLES = frozenset({FILE_VARIABLE, "MINDSTREAM_DEBUG", "MINDSTREAM_WEBHOOK_SECRET"})
TABLES = ("memory", "context", "patience_s")
"""Fields that an environment variable may set as JSON."""
MOST = 10**15
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
"""What a value must be, by the type of Pydantic's finding."""


def _data() -> Location:
    if (folder := own_folder("XDG_DATA_HOME", ".local/share")) is None:
        raise SettingsError("nobody knows your home directory, and so where memory lives: say --data DIR")
    return Location(folder)


class Settings(BaseModel):
    """All that can be set.

    Attributes:
        data: a folder, or the URL of a PostgreSQL database.
        model: who answers for every role that `roles` does not name; where neither names anybody, stand-ins answer.
        fallback: who answers in the place of a model that fails: `rules`, or another model; nobody, unless it is named.
        patience_s: how long a model may be silent, before its first word and between two, of all models or by name;
            else one minute and half of one, on this machine and beside it five minutes and two.
        prompts: a folder with a person's own words for prompts.
        context: how many tokens fit into a model's window, of all models or by name; longer requests are cut.
        keep_prompts: what models were asked and answered is kept in the log, word by word, beside what it cost.
        reranker: the second stage of recall: none, model, cross:NAME.
        embedder: makes the vectors of new memories; one that has vectors keeps its own, unless this is set.
        memory: how memories recall, and whether they decay (see memory/policy): retention, base, cap_s, …
        timezone: where the user lives, as Europe/Berlin; "": as this machine, in `chat`, and else nobody knows.
        deadline_s: how long the Talker waits for the Reasoner before it speaks without it.
        budget_calls, budget_tokens, budget_usd: what models may spend: of a life in all, else while a command runs.
        redact: who takes out of what comes in what says who somebody is (text/personal); "": nobody.
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
    context: Annotated[int, Field(ge=512, le=MOST)] | dict[str, Annotated[int, Field(ge=512, le=MOST)]] | None = None
    keep_prompts: bool = False
    timezone: str = ""
    deadline_s: float = Field(30.0, gt=0, allow_inf_nan=False)
    budget_calls: int | None = Field(None, ge=0, le=MOST)
    budget_tokens: int | None = Field(None, ge=0, le=MOST)
    budget_usd: float | None = Field(None, ge=0, allow_inf_nan=False)
    redact: str = ""

    @field_validator("user")
    @classmethod
    def _normal_user(cls, user: str) -> str:
        return normal_name(user)

    @property
    def models(self) -> dict[str, str]:
        """The table role -> model, the default first where there is one."""
        named = {DEFAULT: self.model} if self.model else {}
        return named | self.roles or {DEFAULT: RULES}

    @property
    def named_embedder(self) -> str | None:
        """The embedder, where one is set; None: each memory's own (memory/recall/embedding)."""
        return self.embedder if "embedder" in self.model_fields_set else None

    @property
    def only_stand_ins(self) -> bool:
        """No model is named for any role."""
        return set(self.models.values()) == {RULES}


@dataclass(frozen=True)
class Chosen:
    """Settings, and where each that is not a default came from: a flag, a variable's name, a file.

    Attributes:
        unread: a settings file in the working directory that nobody named.
    """

    settings: Settings
    origins: Mapping[str, str]
    file: Path | None
    unread: Path | None = None


def choose(flags: Mapping[str, object] | None = None) -> Chosen:
    """Gather the settings; a flag that is None was not given.

    Raises:
        SettingsError: something does not fit; the message says where it stands.
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
    for origin, layer in layers:
        table = _table(layer, origin("roles"))
        if DEFAULT in table:  # who names a model means all roles, whatever a layer below said of some of them
            values["model"], values["roles"] = table.pop(DEFAULT), {}
            origins["model"] = origin("model" if "model" in layer else "roles")
            origins = {name: where for name, where in origins.items() if not name.startswith("roles")}
        values["roles"] = {**values.get("roles", {}), **table}
        origins |= {f"roles.{role}": origin("roles") for role in table}
        rest = {name: value for name, value in layer.items() if name not in ("model", "roles")}
        values |= rest
        origins |= {name: origin(name) for name in rest}
    unread = None if variable(FILE_VARIABLE) or not os.path.lexists(HERE) else Path(HERE)
    return Chosen(_checked(values, origins), origins, file, unread)


def flag_of(name: str) -> str:
    """Return the flag that sets a field."""
    return "--" + {"roles": "role"}.get(name, name.removesuffix("_s")).replace("_", "-")


def settings_file() -> Path | None:
    """Find the settings file: the one that is named, else the person's own; None where there is none."""
    if named := variable(FILE_VARIABLE):
        return _path(named, f"--settings or {FILE_VARIABLE}")
    config = own_folder("XDG_CONFIG_HOME", ".config")
    return config / "settings.toml" if config and os.path.lexists(config / "settings.toml") else None


def unknown_variables() -> dict[str, str]:
    """Return the environment variables with our prefix that are not read, with the names that may be meant, or ""."""
    known = {PREFIX + name.upper() for name in Settings.model_fields} | OTHER_VARIABLES
    unknown = sorted(name for name in os.environ if name.upper().startswith(PREFIX) and name not in known)
    return {name: next(iter(difflib.get_close_matches(name.upper(), known, 1, 0.85)), "") for name in unknown}


def role(text: str, origin: str = "--role") -> tuple[str, str]:
    """Read `ROLE=MODEL`.

    Raises:
        SettingsError: it has no such form.
    """
    name, equals, model = text.partition("=")
    if not (equals and name.strip() and model.strip()):
        raise SettingsError(
            f"{origin}: a role is set by ROLE=MODEL, as in talker=openai:gpt-5-mini, not by {shown(text)}"
        )
    return name.strip(), model.strip()


def shown(value: object) -> str:
    """Write a value for an error message: shortened, and without the password of a URL in it."""
    text = re.sub(r"//[^/@\s]*@", "//***@", repr(value) if isinstance(value, str) else str(value))
    return text if len(text) <= 80 else f"{text[:77]}…"


def one_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a table of a JSON object's entries (`object_pairs_hook`).

    Raises:
        KeyError: a key is there twice.
    """
    table = dict(pairs)
    if len(table) < len(pairs):
        names = [name for name, _ in pairs]
        raise KeyError(next(name for name in names if names.count(name) > 1))
    return table


def _tidied(layer: Mapping[str, Any], origin: Callable[[str], str]) -> dict[str, Any]:
    """Return the values of a layer without white space around texts, which scripts with CRLF leave there.

    An empty text switches off what is off by default; in a file it leaves unset what has no default.

    Raises:
        SettingsError: an empty text is given for what always has a value.
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
    """Return what a variable says as JSON.

    Raises:
        SettingsError: it is none, or names a key twice.
    """
    try:
        return json.loads(text, object_pairs_hook=one_each)
    except KeyError as error:
        raise SettingsError(f"{where}: the key {error} is there twice") from None
    except (ValueError, RecursionError):
        raise SettingsError(f"{where}: {shown(text)} is not JSON") from None


def _of_file(file: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(read_text(file, MOST_BYTES))
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
        found["data"] = _location(found["data"], f"{file}: data").under(file.parent)
    for name in ("prompts", "pack"):
        value = found.get(name)
        if isinstance(value, str) and (name != "pack" or is_path(value)):
            path = file.parent / _path(value, f"{file}: {name}")
            found[name] = as_path(path) if name == "pack" else str(path)
    return found


def _table(layer: Mapping[str, Any], origin: str) -> dict[str, str]:
    """Return what a layer says of who answers, role -> model."""
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
        settings = Settings.model_validate(values)
    except ValidationError as error:
        by_name = {}
        for found in error.errors(include_url=False):  # of a union, the finding about the kind of value that is there
            name = str(found["loc"][0])
            if name not in by_name or isinstance(values[name], dict):
                by_name[name] = found
        raise SettingsError("; ".join(_finding(found, origins) for found in by_name.values())) from None
    except InputError as error:
        raise SettingsError(f"{origins.get('data', 'data')}: {error}") from None
    if settings.timezone:
        try:
            read_zone(settings.timezone)
        except InputError as error:
            raise SettingsError(f"{_place('timezone', origins['timezone'])}: {error}") from None
    changed: dict[str, object] = {}
    if settings.prompts is not None:
        changed["prompts"] = _path(settings.prompts, origins.get("prompts", "prompts"))
    if is_path(settings.pack):
        changed["pack"] = as_path(_path(settings.pack, origins.get("pack", "pack")))
    return settings.model_copy(update=changed)


def _finding(found: ErrorDetails, origins: Mapping[str, str]) -> str:
    """Say where a value is, what is expected there, and what was found."""
    name = str(found["loc"][0])
    inner = [str(each) for each in found["loc"][1:] if not str(each).startswith(("constrained-", "dict["))]
    where = ".".join([_place(name, origins.get(name, name)), *inner])
    usual = found["msg"].removeprefix("Value error, ")
    expected = EXPECTED.get(found["type"], usual[:1].lower() + usual[1:]).format(**found.get("ctx", {}))
    return f"{where}: {expected}, found {shown(found['input'])}"


def _location(data: str, where: str) -> Location:
    try:
        return Location.of(data)
    except InputError as error:
        raise SettingsError(f"{where}: {error}") from None


def _path(path: str | Path, where: str) -> Path:
    try:
        return usable(path)
    except InputError as error:
        raise SettingsError(f"{where}: {error}") from None
