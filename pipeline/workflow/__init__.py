"""The wiring: one module per command that runs stages, which alone knows them and the order they come in."""
