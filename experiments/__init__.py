"""The paper's tables and figures, resumable, beside an honest protocol."""
