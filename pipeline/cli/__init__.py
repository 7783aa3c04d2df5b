"""The command line: parse, call one function of the pipeline, print, return.

One module per group of `rankledger --help`; `app` lists the commands and runs them, `options` has what several share.
Results go to stdout, progress and messages to stderr. Each command imports what it needs when it runs.
"""
