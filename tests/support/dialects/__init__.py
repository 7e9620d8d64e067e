"""Providers' dialects, spoken by a real HTTP server on this machine, for tests.

`profiles` has the providers, `server` the server. What it says on the wire is written from the providers'
documents and from the types of the official client libraries; what it answers is decided by the scripted model,
so that a claw can solve an embedded task through it.
"""
