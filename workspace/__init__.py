"""Containers, images, history, egress and export: where a claw works and how its work is taken out."""
