"""Work on a Ray cluster. Nothing else imports ray."""
