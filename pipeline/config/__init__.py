"""YAML to a plan: `yaml` reads one text, `loader` stacks files, overrides and variables, `schema` says what may be
written, `plan` spells out which model is evaluated on which dataset by which measures.
"""
