"""Planning with ensembles of value functions for hard, sparse-reward, discrete problems."""
