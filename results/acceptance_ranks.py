#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which definition of acceptance predicts speed: of pairs of cells of one experiment at one temperature and batch whose speed-ups
have disjoint intervals, the share in which the cell with the larger value is the faster one (equal values count one half). Reads
results/*/summary.json; prints a table in Markdown.

  acceptance_ranks.py [--check PAGE]     --check: the table must be the one in PAGE, between its marks"""
import argparse
import itertools
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).parent
MARK = 'acceptance-ranks'


def first(cell, name):
    values = cell['acceptance'][name]
    return values[0] if values else None


DEFINITIONS = {
    'the cost model\'s `predicted_speedup`': lambda c: c.get('predicted_speedup'),
    '`verify_rate`, tokens / (drafted + steps)': lambda c: c['acceptance'].get('verify_rate'),
    '`draft_acceptance_rate`, accepted / drafted': lambda c: c.get('draft_acceptance_rate'),
    '`conditional_by_position`, first token': lambda c: first(c, 'conditional_by_position'),
    '`survival_by_position`, first token': lambda c: first(c, 'survival_by_position'),
    '`alpha`, mean of sum min(p, q)': lambda c: c.get('alpha'),
    '`mean_acceptance_length`': lambda c: c.get('mean_acceptance_length'),
    '`tau`, tokens / steps': lambda c: c.get('tau'),
}


def groups():
    """Lists of cells that differ in drafts or rules alone."""
    found = {}
    for path in sorted(HERE.glob('*/summary.json')):
        for cell in json.loads(path.read_text())['cells']:
            if cell.get('speedup_ci') and cell['drafter'] != 'none':
                key = (path.parent.name, cell['temperature'], cell['cell'].get('batch'))
                found.setdefault(key, []).append(cell)
    return [cells for cells in found.values() if len(cells) > 1]


def decided_pairs():
    """(faster, slower) where the intervals of the speed-ups are disjoint."""
    for cells in groups():
        for a, b in itertools.combinations(cells, 2):
            if a['speedup_ci'][0] > b['speedup_ci'][1]:
                yield a, b
            elif b['speedup_ci'][0] > a['speedup_ci'][1]:
                yield b, a


def table():
    pairs = list(decided_pairs())
    rows = ['| measured | pairs | ordered by it as by speed |', '|---|---|---|']
    for name, value in DEFINITIONS.items():
        both = [(value(a), value(b)) for a, b in pairs]
        both = [(a, b) for a, b in both if a is not None and b is not None]
        right = sum((a > b) + (a == b) / 2 for a, b in both)
        rows.append(f'| {name} | {len(both)} | {right / len(both):.0%} |' if both else f'| {name} | 0 | - |')
    return '\n'.join(rows) + '\n'


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('--check', metavar='PAGE')
    page, now = a.parse_args().check, table()
    if page is None:
        print(now, end='')
        return
    there = re.search(f'<!-- {MARK}:begin -->\n(.*?)<!-- {MARK}:end -->', pathlib.Path(page).read_text(), re.S)
    if not there or there[1] != now:
        sys.exit(f'{page}: the table of {MARK} is not that of results/*/summary.json; expected\n{now}')


if __name__ == '__main__':
    main()
