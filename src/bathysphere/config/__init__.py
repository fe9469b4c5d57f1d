"""Everything that decides a run, as plain data: the config, its presets, and how both are read and written."""
