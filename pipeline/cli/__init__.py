"""The command line: parse, call one function of the pipeline, print, return.

Results go to stdout, progress and messages to stderr. Each command imports its function when it runs.
"""
