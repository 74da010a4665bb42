"""First use: test a model with one short call, and write it into the settings file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tomlkit
from tomlkit.exceptions import TOMLKitError

from mindstream.errors import ModelError, SettingsError
from mindstream.models.ask import speak
from mindstream.models.prompt import Prompt
from mindstream.models.roles import DEFAULT, Models
from mindstream.models.wrappers.meter import Metered
from mindstream.paths import own_folder, read_text, variable
from mindstream.private_files import make_private_folder, write_private
from mindstream.settings import FILE_VARIABLE, MAX_BYTES, RULES, settings_file


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
    """Return the settings file: the one named by the user, else the default one, which may not exist yet.

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
        SettingsError: the file is not valid TOML, or cannot be written.
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
    except (TOMLKitError, ValueError) as error:
        raise SettingsError(f"{file} is not valid TOML, so nothing was changed: {error}") from None
    except OSError as error:
        raise SettingsError(f"{file} cannot be written: {error.strerror or error}") from None
