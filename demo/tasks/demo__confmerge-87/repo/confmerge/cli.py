"""The command line: look at what layers add up to."""

import argparse
import json
import sys

from .config import Config
from .errors import ConfigError


def main(argv=None):
    parser = argparse.ArgumentParser(prog="confmerge", description="Merge configuration files.")
    parser.add_argument("command", choices=["show", "origins"])
    parser.add_argument("files", nargs="*")
    parser.add_argument("--prefix", help="also read environment variables that start with this")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    options = parser.parse_args(argv)
    try:
        config = Config.load(*options.files, prefix=options.prefix, overrides=options.overrides, missing_ok=False)
    except (ConfigError, OSError) as error:
        print(f"confmerge: {error}", file=sys.stderr)
        return 1
    if options.command == "show":
        print(json.dumps(config.as_dict(), indent=2, sort_keys=True, default=str))
    else:
        for key, value, origin in config.origins():
            print(f"{key} = {value!r}  ({origin})")
    return 0
