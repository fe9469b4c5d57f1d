"""How fast the parts are on this machine: domains, the planner, and training on Sokoban."""
