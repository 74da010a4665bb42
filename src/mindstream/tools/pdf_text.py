"""The text of a PDF file, page by page: run as a process of its own (see tools/child.py), never imported."""

import json
import sys

from pypdf import PdfReader
from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError

PAGES, LONGEST = 1_000, 4_000_000


def read(path: str) -> list[str]:
    """Return the text of each page; of what is too long, the beginning."""
    pages, left = [], LONGEST
    reader = PdfReader(path)
    for page in reader.pages[:PAGES]:
        text = page.extract_text()[:left]
        left -= len(text)
        pages.append(text)
    return pages


if __name__ == "__main__":
    try:
        found = read(json.load(sys.stdin))
        print(json.dumps({"pages": found} if any(map(str.strip, found)) else {"error": "no text (a scan?)"}))
    except (FileNotDecryptedError, DependencyError):
        print(json.dumps({"error": "encrypted"}))
    except (PyPdfError, OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        print(json.dumps({"error": f"damaged ({type(error).__name__})"}))
