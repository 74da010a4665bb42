"""`mindstream gate`."""

from __future__ import annotations

from mindstream.cli.flags import AsJson, Data, OneUser, group, settings

gate = group("See how the gates do: when the talker waits for the reasoner.")


@gate.command(epilog="\b\nExample:\n  mindstream gate report --user ann")
def report(data: Data = None, user: OneUser = None, json: AsJson = False) -> int:
    """Say how often each gate waited, and how often it was wrong.

    From the log alone: what was decided for each utterance, and what the reasoner came to afterwards.
    """
    from mindstream.cli.gate import report

    return report(settings(data, user), user, json)
