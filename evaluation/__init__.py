"""Instances, the official harness's verdict, and the one table of outcomes."""
