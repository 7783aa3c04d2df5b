"""One score taken apart: `lines` finds what each document adds, `profiles` which choice of another tool changes it."""
