# SPDX-License-Identifier: MIT
"""python -m wager: the program."""

from .program import main

main()
