"""Evaluations of mindstream: coach contests, plans, memories, pools, towns, gate curves; and conformance suites."""

from mindstream.plugins import Plugin

_COMMANDS = "mindstream_evals.commands"

PLUGIN = Plugin(
    "evals",
    operations=("mindstream_evals.operations",),
    commands={
        "coach": ("Measure the coach: against a plain agent, and in its predictions.", f"{_COMMANDS}.coach"),
        "gate": ("Measure the gates, which decide when the talker waits for the reasoner.", f"{_COMMANDS}.gate"),
        "memory": ("", f"{_COMMANDS}.memory"),
        "plan": ("", f"{_COMMANDS}.plan"),
        "pool": ("", f"{_COMMANDS}.pool"),
        "town": ("", f"{_COMMANDS}.town", f"{_COMMANDS}.ensemble"),
    },
)
