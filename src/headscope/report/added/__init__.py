"""What the report and the figures show of what was added to a study: a file for each verb."""
