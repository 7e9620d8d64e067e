"""What users read: made from the records, by nothing else."""
