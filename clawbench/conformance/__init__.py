"""The conformance suite: is an adapter fair and complete? Real cases with a scripted model, and what they left.

`runs` says which cases are run, `laboratory` runs them once for all tests of a claw, `evidence` reads what they
left, `repository` is the repository that most of them work on, `table` is the result, `plugin` ties it to pytest.
"""
