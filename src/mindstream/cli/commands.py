"""What a user may type in a conversation other than words for the mind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from mindstream.cli.asides import describe_patch, plan_told
from mindstream.cli.clean import short
from mindstream.cli.forgetting import describe, describe_done, describe_session
from mindstream.cli.screens import TextScreen
from mindstream.errors import MindstreamError
from mindstream.minds.mind import Mind

COMMANDS = {
    "/belief": "what is believed of you",
    "/plan": "the plan as it stands",
    "/keep": "WORDS: remember that, as a note",
    "/memory": "WORDS: what memory holds of that",
    "/sessions": "the talks that are remembered",
    "/forget": "WORDS: forget for good what mentions that; shows it first, and asks",
    "/work": "what is being thought about",
    "/cancel": "stop thinking about it",
    "/help": "this",
    "/quit": "leave (as Ctrl-D does)",
}

WANTING = {
    "/keep": "say what is to be remembered, as in /keep the key hangs in the shed",
    "/memory": "say what to look for, as in /memory what disturbs the sleep",
    "/forget": "say what is to be forgotten, as in /forget the red bicycle",
}


class Commands:
    """Answers commands; nothing of it is remembered."""

    def __init__(self, mind: Mind, screen: TextScreen, choose: Callable[[str], Awaitable[bool]]) -> None:
        self._mind = mind
        self._screen = screen
        self._choose = choose

    async def run(self, line: str) -> bool:
        """Do what a line says; return False where the user wants to leave."""
        command, _, rest = line.partition(" ")
        if not rest.strip() and (example := WANTING.get(command.lower())):
            self._screen.complain(f"{command} WORDS: {example}")
            return True
        try:
            match command.lower():
                case "/belief":
                    self._belief()
                case "/plan":
                    self._screen.text(plan_told(self._mind.plan) or "there is no plan yet")
                case "/keep":
                    await self._keep(rest.strip())
                case "/memory":
                    await self._memory(rest.strip())
                case "/sessions":
                    found = await self._mind.stream.sessions()
                    self._screen.text("\n".join(map(describe_session, found)) or "there are no sessions yet")
                case "/forget":
                    await self._forget(rest.strip())
                case "/work":
                    await self._work()
                case "/cancel":
                    stopped = self._mind.reasoners.cancel()
                    self._screen.text(f"{stopped} stopped" if stopped else "nothing is being thought about")
                case "/help" | "/?":
                    self._help()
                case "/quit" | "/exit":
                    return False
                case _:
                    self._screen.complain(
                        f"there is no {command}; /help shows what there is, // says a line that begins with /"
                    )
        except MindstreamError as error:
            self._screen.complain(str(error))
        return True

    def _belief(self) -> None:
        belief = self._mind.belief
        value = {
            name: held for name, held in belief.value.model_dump(mode="json").items() if held not in (None, [], "")
        }
        lines = [f"belief v{belief.version}"] if belief.version else ["nothing is believed yet"]
        self._screen.text("\n".join([*lines, *(f"  {describe_patch({name: held})}" for name, held in value.items())]))

    async def _keep(self, words: str) -> None:
        note = await self._mind.stream.retain(words, "note", by=self._mind.stream.name)
        self._screen.text(f"kept as {note.id}")

    async def _memory(self, words: str) -> None:
        found = await self._mind.stream.recall(words, k=5, touch=False)
        lines = [f"{each.score:5.1f}  {each.record.kind}: {short(each.record.text)}" for each in found]
        self._screen.text("\n".join(lines) or "nothing is remembered yet")

    async def _forget(self, words: str) -> None:
        removal = await self._mind.stream.to_forget(about=words)
        if removal:
            self._screen.text("\n".join(describe(removal)))
        if removal and not await self._choose("forget it for good?"):
            self._screen.text("nothing was forgotten")
            return
        async with self._mind.floor:  # nobody speaks from what is being forgotten
            self._screen.text(describe_done(await self._mind.stream.forget(removal)))

    async def _work(self) -> None:
        lines = []
        for work in await self._mind.reasoners.work():
            state = "thinking" if work.running else f"failed, {work.error}" if work.error else "waiting"
            heard = await self._mind.stream.store.events(self._mind.stream.key, work.cause - 1, ["heard"], 1)
            about = short(getattr(heard[0].event, "text", ""), 60) if heard else ""
            lines.append(f"{work.slot}: {state}, about “{about}”")
        self._screen.text("\n".join(lines) or "nothing is being thought about")

    def _help(self) -> None:
        self._screen.text("\n".join(f"{name:9} {what}" for name, what in COMMANDS.items()))
        self._screen.text("Ctrl-C    while it answers: stop the answer; what was said so far is kept")
