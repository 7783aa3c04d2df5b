"""The command line: parse, call one function of the pipeline, print, return.

One module per group of `rankledger --help`; `commands` lists and runs them, `app` is the process, `options` has what
several share. Results go to stdout, progress and messages to stderr. Each command imports what it needs when it runs.
"""
