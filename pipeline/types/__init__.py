"""What stages hand to one another: frozen dataclasses and typed models, without behaviour of their own."""
