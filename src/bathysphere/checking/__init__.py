"""What is wrong with a world and how to mend it: random walks, and the mistakes that show in them."""
