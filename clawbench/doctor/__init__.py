"""What a run would need, checked before anything is spent: one table, each line with what to do.

Each module here looks at one part and gives `Finding`s; `checks` says which of them are asked when. `plugin` ties
them to pytest, so that options and selection are exactly those of the run that is meant.
"""
