"""The benchmark and the other studies: one short test body each."""
