# SPDX-License-Identifier: MIT
"""Command lines of the tools: argparse, whose errors name the nearest option or value as well."""

import argparse
import difflib
import re


class Parser(argparse.ArgumentParser):
    def error(self, message: str):
        """Prints the message and the nearest known word, and ends with status 2."""
        options = [name for action in self._actions for name in action.option_strings]
        values = [str(choice) for action in self._actions for choice in action.choices or ()]
        wrong = re.search(r"unrecognized arguments: .*?(-[^\s=]+)", message)
        value = re.search(r"invalid choice: '([^']*)'", message)
        near = (
            difflib.get_close_matches(wrong[1], options, 1)
            if wrong
            else difflib.get_close_matches(value[1], values, 1)
            if value
            else []
        )
        super().error(f"{message} (did you mean '{near[0]}'?)" if near else message)
