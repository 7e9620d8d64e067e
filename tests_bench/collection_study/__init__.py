"""The collection study: the same edits, collected in three ways, from messages in nine conditions."""
