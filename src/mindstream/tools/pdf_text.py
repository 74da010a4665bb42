"""The text of a PDF file, page by page: run as a process of its own (see tools/child.py), never imported."""

import json
import sys

from pypdf import PdfReader
from pypdf.errors import PyPdfError

PAGES, LONGEST = 1_000, 4_000_000


def read(path: str) -> list[str]:
    """Return the text of each page; of what is too long, the beginning."""
    pages, left = [], LONGEST
    for page in PdfReader(path).pages[:PAGES]:
        text = page.extract_text()[:left]
        left -= len(text)
        pages.append(text)
    return pages


if __name__ == "__main__":
    try:
        print(json.dumps({"pages": read(json.load(sys.stdin))}))
    except (PyPdfError, OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        print(json.dumps({"error": f"the PDF cannot be read ({type(error).__name__})"}))
