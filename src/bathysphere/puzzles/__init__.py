"""What people do with Sokoban levels: have them played, evaluated and solved, and keep the solutions."""
