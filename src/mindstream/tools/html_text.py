"""The text of an HTML page: run as a process of its own (see tools/child.py), never imported.

A page that is nested a hundred thousand deep, or made to crash a parser in C, costs that process and no more.
"""

import json
import re
import sys

from selectolax.lexbor import LexborHTMLParser

ASIDE = "script, style, noscript, template, svg, iframe, nav, aside, form, button, [hidden], [aria-hidden=true]"
"""What is on a page and not meant to be read."""
MAIN = "main, article, [role=main]"
INLINE = frozenset({
    "a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "dfn", "em", "font", "i", "kbd", "mark", "q", "s", "small",
    "span", "strong", "sub", "sup", "time", "u", "var", "wbr", "-text", "_comment",
})  # fmt: skip


def read(html: str) -> str:
    """Return the title and what is to be read, a paragraph a line."""
    tree = LexborHTMLParser(html)
    title = tree.css_first("title")
    heading = title.text()[:300] if title else ""
    for node in tree.css(ASIDE):
        node.decompose()
    root = max(tree.css(MAIN), key=lambda node: len(node.text()), default=tree.body)
    lines, line = [heading], list[str]()
    for node in root.traverse(include_text=True) if root else ():
        if node.tag not in INLINE:
            lines.append("".join(line))
            line = []
        if node.tag == "-text":
            line.append(node.text_content or "")
    lines.append("".join(line))
    tidy = (re.sub(r"\s+", " ", each).strip() for each in lines)
    return "\n".join(each for each in tidy if each)


if __name__ == "__main__":
    print(json.dumps({"text": read(json.load(sys.stdin))}))
