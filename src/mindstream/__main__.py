"""Run the command line: `python -m mindstream`."""

import runpy

runpy.run_module("mindstream.cli.__main__", run_name="__main__")
