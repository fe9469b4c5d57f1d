"""Trained agents: acting, files and cards, evaluation; and the agents that come with the package."""
