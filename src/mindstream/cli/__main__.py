"""`python -m mindstream.cli`.

Started this way, Python searches the working directory for modules first; this module removes it from the path. Use the
command `mindstream` in folders with files of other authors: it never searches the working directory.
"""

import sys

from mindstream.cli import main

if not sys.flags.safe_path:
    del sys.path[0]

main()
