"""What trec_eval prints, byte for byte: its measures by the names they have there, and its lines."""
