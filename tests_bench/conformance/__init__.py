"""The conformance suite: is an adapter fair and complete? Real cases with a scripted model, and their results."""
