"""Names the plugin modules."""

pytest_plugins = ["clawbench.plugin"]
