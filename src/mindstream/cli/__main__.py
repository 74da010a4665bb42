"""`python -m mindstream.cli`.

Python looks for modules in the working directory then, first of all; from here on it does not. Use the command
`mindstream` in folders that others have written.
"""

import sys

from mindstream.cli import main

if not sys.flags.safe_path:
    del sys.path[0]

main()
