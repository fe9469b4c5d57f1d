"""The graph a search lives in: arrays and invariants, the steps on them, scoring, risk measures."""
