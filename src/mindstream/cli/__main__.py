"""`python -m mindstream.cli`."""

from mindstream.cli import main

main()
