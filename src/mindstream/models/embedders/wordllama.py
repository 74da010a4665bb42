"""The default embedder: a table of token vectors inside the package `wordllama`; no download, microseconds per text.

The package's two files are read directly: importing the package takes longer than reading them, and configures logging
for the whole process. The embedder is made for English; texts in other languages are mostly split into characters.
"""

from __future__ import annotations

import asyncio
import json
import threading
from array import array
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mindstream.arrays import Floats
from mindstream.caches import remember
from mindstream.errors import SettingsError
from mindstream.models.embedders.embedder import unit

if TYPE_CHECKING:
    from tokenizers import Tokenizer

WIDTH = 256
_BATCH = 8
"""Number of texts whose token vectors are gathered at once, so that they stay in the processor's cache."""
SPECIAL = ("<s>", "</s>", "<unk>", "▁")
MAX_WORD = 32
"""Maximum length of a word whose tokens are cached, in characters."""
SHORT = 3
"""Maximum length of a number whose tokens are cached, in characters."""
_FROM_FILE = iter(range(32))
"""Counts the first 32 batches of a process, whose token vectors are read from the file. The next batch converts the
whole table, which takes 16 to 30 ms of CPU time and 32 MB; a command with a single question does not need that."""
_LOADING = threading.Lock()
MAX_DIRECT = 2_000
"""Maximum characters that are embedded in the event loop; more are embedded in a thread (32 kB take 0.1 s), and so are
all texts before `table` is loaded."""


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

    No token has a space in its middle, so words are tokenized one by one, and most of them are cached. Exceptions are
    tokenized as a whole: texts with several spaces in a row (which are one token), with a space at the beginning or the
    end, with a special token, or with the tokenizer's own sign for a space.
    """
    if "  " in text or text[:1] == " " or text[-1:] == " " or any(each in text for each in SPECIAL):
        return _cut(text)
    return b"".join([_of_word(word) if _is_cached(word) else _cut(word) for word in text.split(" ")])


def _is_cached(word: str) -> bool:
    """Return whether a word's tokens are cached; long numbers are not, because too many different ones occur."""
    return len(word) <= SHORT or (len(word) <= MAX_WORD and not word[0].isdigit())


@remember(1 << 14)
def _of_word(word: str) -> bytes:
    return _cut(word)


def _cut(text: str) -> bytes:
    return array("I", _tokenizer().encode(text, add_special_tokens=False).ids).tobytes()


def table() -> Floats:
    """Return the vectors of all tokens: shape (tokens, 256); read-only, since the process shares them."""
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
    """Return the mapped table of the file, which is in the format of safetensors: a header, then the numbers."""
    path = _file("weights/l2_supercat_256.safetensors")
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        part = json.loads(file.read(length))["embedding.weight"]
    mapped = np.memmap(path, np.float16, "r", 8 + length + part["data_offsets"][0], tuple(part["shape"]))
    return np.asarray(mapped)


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
