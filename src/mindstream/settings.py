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

from mindstream import rooms
from mindstream.errors import InputError, SettingsError
from mindstream.identifiers import normal_name
from mindstream.location import Location
from mindstream.paths import as_path, is_path, own_folder, read_text, usable

PREFIX = "MINDSTREAM_"
DEFAULT, RULES = "default", "rules"
SECONDS = Field(gt=0, allow_inf_nan=False)
FILE_VARIABLE = "MINDSTREAM_SETTINGS"
HERE = "mindstream.toml"
"""A settings file that may lie in the working directory; see `Chosen.unread`."""
MOST_BYTES = 100_000
"""The largest settings file."""
OTHER_VARIABLES = frozenset({FILE_VARIABLE, "MINDSTREAM_DEBUG"})


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
        memory: how memories recall and fade (see memory/policy): base, cap_s, …
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
    context: Annotated[int, Field(ge=512)] | dict[str, Annotated[int, Field(ge=512)]] | None = None
    keep_prompts: bool = False
    timezone: str = ""
    deadline_s: float = Field(30.0, gt=0, allow_inf_nan=False)
    budget_calls: int | None = Field(None, ge=0)
    budget_tokens: int | None = Field(None, ge=0)
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
    unread = None if os.environ.get(FILE_VARIABLE) or not os.path.lexists(HERE) else Path(HERE)
    return Chosen(_checked(values, origins), origins, file, unread)


def flag_of(name: str) -> str:
    """Return the flag that sets a field."""
    return "--" + {"roles": "role"}.get(name, name.removesuffix("_s")).replace("_", "-")


def settings_file() -> Path | None:
    """Find the settings file: the one that is named, else the person's own; None where there is none."""
    if named := os.environ.get(FILE_VARIABLE):
        return _path(named, f"--settings or {FILE_VARIABLE}")
    config = own_folder("XDG_CONFIG_HOME", ".config")
    return config / "settings.toml" if config and os.path.lexists(config / "settings.toml") else None


def unknown_variables() -> list[str]:
    """Name the variables that begin as ours do and that nothing reads: mostly a slip of the pen."""
    known = {PREFIX + name.upper() for name in Settings.model_fields} | OTHER_VARIABLES
    return sorted(name for name in os.environ if name.startswith(PREFIX) and name not in known)


def role(text: str) -> tuple[str, str]:
    """Read `ROLE=MODEL`.

    Raises:
        SettingsError: it has no such form.
    """
    name, equals, model = text.partition("=")
    if not (equals and name.strip() and model.strip()):
        raise SettingsError(f"a role is set by ROLE=MODEL, as in talker=openai:gpt-5-mini, not by {text!r}")
    return name.strip(), model.strip()


def _of_environment() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in Settings.model_fields:
        if value := os.environ.get(PREFIX + name.upper()):
            found[name] = _of_json(value) if name == "memory" else value
    return found


def _of_json(text: str) -> Any:
    """Return what a variable says as JSON; else its text, which the check refuses."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _of_file(file: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(read_text(file, MOST_BYTES))
    except InputError as error:
        raise SettingsError(f"the settings file {file} {error}") from None
    except RecursionError:
        raise SettingsError(f"the settings file {file} is nested too deeply") from None
    except ValueError as error:
        raise SettingsError(f"the settings file {file} is not TOML: {error}") from None
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
        try:
            roles = json.loads(roles)
        except (ValueError, RecursionError):
            raise SettingsError(f"{origin}: {roles!r} is not JSON") from None
    elif isinstance(roles, str):
        roles = [part for part in re.split(r"[,;\s]+", roles) if part]
    if isinstance(roles, list) and all(isinstance(part, str) for part in roles):
        roles = dict(role(part) for part in roles)
    if not (isinstance(roles, dict) and all(isinstance(model, str) for model in roles.values())):
        raise SettingsError(f"{origin}: roles is a table from role to the name of a model, not {roles!r}")
    for name in roles:
        if name not in (*rooms.roles(), DEFAULT):
            raise SettingsError(f"{origin}: there is no role {name!r}; the roles are {', '.join(rooms.roles())}")
    return {**({DEFAULT: layer["model"]} if "model" in layer else {}), **roles}


def _checked(values: Mapping[str, Any], origins: Mapping[str, str]) -> Settings:
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        found = error.errors()[0]
        name = str(found["loc"][0])
        where = origins.get(name, name)
        what = where if where.startswith(("-", PREFIX)) else f"{where}: {name}"
        wanted = "input should be a path" if found["type"] == "path_type" else found["msg"].lower()
        raise SettingsError(f"{what}: {wanted}, not {found['input']!r}") from None
    except InputError as error:
        raise SettingsError(f"{origins.get('data', 'data')}: {error}") from None
    changed: dict[str, object] = {}
    if settings.prompts is not None:
        changed["prompts"] = _path(settings.prompts, origins.get("prompts", "prompts"))
    if is_path(settings.pack):
        changed["pack"] = as_path(_path(settings.pack, origins.get("pack", "pack")))
    return settings.model_copy(update=changed)


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
