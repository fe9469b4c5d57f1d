"""The pages of the studio, and what they share."""
