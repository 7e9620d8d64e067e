"""`report.html`: the results of runs as one page that opens without a network."""
