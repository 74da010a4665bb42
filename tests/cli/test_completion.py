from __future__ import annotations

import pytest
from running import mistaken, run, run_process

from mindstream.cli.completion import VARIABLE


@pytest.mark.parametrize(
    ("typed", "expected"),
    [("mindstream do", ["doctor"]), ("mindstream memory re", ["recall", "retain", "reembed"]),
     ("mindstream doctor --mo", ["--model"])],
)  # fmt: skip
def test_a_shell_completes_commands_and_flags(typed: str, expected: list[str]) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    done = run_process(**{VARIABLE: "complete_bash"}, **words)
    assert (done.code, done.out.split()) == (0, expected)


def test_the_script_of_each_shell_is_printed() -> None:
    for shell in ("bash", "zsh", "fish"):
        assert f"{VARIABLE}=complete_{shell}" in run("completion", shell).out
    assert "'bash'" in mistaken(run("completion", "csh"))
