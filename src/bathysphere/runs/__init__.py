"""Runs: typed config and presets, the run directory, checkpoints and resume, metrics, results, pictures."""
