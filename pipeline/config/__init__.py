"""YAML to a plan: `source` reads one text, `loader` stacks files, overrides and variables, `sections` says what may be
written, `plan` spells out which model is evaluated on which dataset by which measures.
"""
