#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Mutation testing: changes operators, constants and branches of the sources in targets.py, one at a time, in a copy of the
tree, and runs the tests that are to find the change.

  run.py --scratch DIR [--limit N] [--seed S] [--only GLOB] [--again]     runs mutants that the log does not have yet
  run.py --scratch DIR --report [--markdown]                              kill rates per file, and the survivors

A mutant is *killed* when a test fails, crashes or exceeds its time; *equal* when every object that the tests link is the same,
byte for byte; *invalid* when it does not compile; else it *survived*. equivalent.json explains survivors that behave like the
original; those are not run again. DIR/log.jsonl has a line for each mutant, so a run that was interrupted continues. The tree is only read."""
import argparse
import fnmatch
import hashlib
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

from mutants import mutants_of, sample
from targets import ARGUMENTS, TARGETS

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MEMORY = 8 << 30  # bytes of address space of a test


def tests_of(path):
    return next((tests for pattern, tests in TARGETS if fnmatch.fnmatch(path, pattern)), None)


def tracked():
    return subprocess.run(['git', 'ls-files', '-z', '-c', '-o', '--exclude-standard'], cwd=ROOT, capture_output=True,
                          check=True, text=True).stdout.split('\0')[:-1]


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def call(command, cwd, seconds, env=None):
    """The exit status of a command and its children; None after `seconds`."""
    child = subprocess.Popen(command, cwd=cwd, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=limited,
                             shell=isinstance(command, str))
    try:
        return child.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        return None


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Build:
    """A copy of the tree and its build by the preset dev; the compile and link commands. Mutants are compiled at -O1."""

    def __init__(self, scratch):
        self.source, self.folder, self.work = scratch / 'src', scratch / 'src/build/dev', scratch / 'work'
        self.objects, self.links, self.readers, self.seconds, self.hashes = {}, {}, {}, {}, {}

    def update(self, targets):
        self.work.mkdir(parents=True, exist_ok=True)
        for name in tracked():
            to, of = self.source / name, ROOT / name
            if of.is_file() and not (to.exists() and to.read_bytes() == of.read_bytes()):
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(of, to)
        subprocess.run(['cmake', '--preset', 'dev'], cwd=self.source, check=True, stdout=subprocess.DEVNULL)
        subprocess.run(['ninja', '-C', self.folder, '-j1', *targets], check=True, stdout=subprocess.DEVNULL)
        self.read_readers()
        for target in targets:
            self.read_commands(target)

    def read_readers(self):
        """Which sources each object was made from."""
        text = subprocess.run(['ninja', '-C', self.folder, '-t', 'deps'], capture_output=True, check=True, text=True).stdout
        for entry in text.split('\n\n'):
            lines = entry.strip().splitlines()
            if lines:
                name = lines[0].split(':')[0]
                self.readers[name] = {os.path.normpath(self.folder / line.strip()) for line in lines[1:]}

    def read_commands(self, target):
        text = subprocess.run(['ninja', '-C', self.folder, '-t', 'commands', target], capture_output=True, check=True,
                              text=True).stdout
        mine = []
        for line in text.splitlines():
            out = re.search(r' -o (\S+)', line)
            if out and ' -c ' in line:
                self.objects[out.group(1)] = line
                mine.append(out.group(1))
            elif out and os.path.basename(out.group(1)) == target:
                self.links[target] = (line, out.group(1), mine)

    def limit(self, target):
        """The most seconds for a test: by the time of the unchanged one, which must pass."""
        start = time.monotonic()
        if target in self.seconds:
            return 5 + 4 * self.seconds[target]
        if call(self.test_command(self.links[target][1]), self.source, 600, self.env()) != 0:
            sys.exit(f'{target} fails without a change')
        self.seconds[target] = time.monotonic() - start
        return self.limit(target)

    def env(self):
        return dict(os.environ, WG_ROOT=str(self.source), CRITERION_JOBS='1', OMP_NUM_THREADS='1')

    def test_command(self, program):
        name = os.path.basename(program)
        return [str(self.folder / program), '-j1', '--fail-fast', *ARGUMENTS.get(name, [])]

    def affected(self, target, path):
        full = os.path.normpath(self.source / path)
        return [o for o in self.links[target][2] if full in self.readers.get(o, ())]

    def compile(self, name, out):
        """The digest of an object from the source as it is now; None when it does not compile."""
        command = re.sub(r'^\S*ccache |-Werror\S*|-MD|-M[FT] \S+|-g\b', '', self.objects[name])
        command = re.sub(r'-O[23]', '-O1', command).replace(f' -o {name}', f' -o {out}')
        return digest(out) if call(command, self.folder, 120) == 0 else None

    def original(self, name):
        """The digest of the object from the original source, which is in place."""
        if name not in self.hashes:
            self.hashes[name] = self.compile(name, self.work / 'original.o')
        return self.hashes[name]

    def link(self, target, changed):
        """The test with these objects, which stand before the archives and so take the place of theirs."""
        line, out, _ = self.links[target]
        program = self.work / target
        extra = ' '.join(str(o) for o in changed)
        if call(line.replace(f' -o {out}', f' {extra} -o {program}'), self.folder, 120) != 0:
            sys.exit(f'cannot link {target} with {extra}')
        return program


def judge(build, mutant, tests):
    """(result, what decided it)."""
    path = build.source / mutant.path
    text = path.read_text()
    compiled = {}  # object: its file where it changed, else None
    try:
        for target in tests:
            names = build.affected(target, mutant.path)
            for name in names:
                if name in compiled:
                    continue
                path.write_text(text)
                before, out = build.original(name), build.work / name.replace('/', '_')
                path.write_text(mutant.apply(text))
                after = build.compile(name, out)
                if after is None:
                    return 'invalid', name
                compiled[name] = out if after != before else None
            changed = [compiled[o] for o in names if compiled[o]]
            if not changed:
                continue
            limit, program = build.limit(target), build.link(target, changed)
            status = call(build.test_command(program), build.source, limit, build.env())
            if status != 0:
                return 'killed', f'{target}: {"time" if status is None else status}'
        return ('survived', '') if any(compiled.values()) else ('equal', '')
    finally:
        path.write_text(text)


def read_log(path):
    """The last result of each mutant."""
    done = {}
    if path.exists():
        for line in path.read_text().splitlines():
            entry = json.loads(line)
            entry.setdefault('column', int(entry['key'].split(':')[2]))
            done[entry['key']] = entry
    return done


def all_mutants(only):
    by_path = {}
    for name in tracked():
        if tests_of(name) and (not only or any(fnmatch.fnmatch(name, glob) for glob in only)):
            by_path[name] = mutants_of(name, (ROOT / name).read_text())
    return by_path


def run(args, log):
    chosen = sample(all_mutants(args.only), args.seed, args.limit)
    done = read_log(log)
    todo = [m for m in chosen if m.key not in done]
    if args.again:
        explained = explanations()
        todo = [m for m in chosen if m.key in done and done[m.key]['result'] == 'survived' and
                not reason_of(done[m.key], explained)]
    build = Build(args.scratch)
    needed = list(dict.fromkeys(t for m in todo for t in tests_of(m.path)))
    print(f'{len(chosen)} mutants chosen, {len(todo)} to run, {len(needed)} tests', flush=True)
    if not todo:
        return
    build.update(needed)
    explained = explanations()
    with log.open('a') as out:
        for i, m in enumerate(todo):
            start = time.monotonic()
            entry = dict(key=m.key, path=m.path, line=m.line, column=m.column, source=m.source, change=m.change())
            known = reason_of(entry, explained)
            result, by = ('survived', 'explained') if known else judge(build, m, tests_of(m.path))
            entry.update(result=result, by=by, seconds=round(time.monotonic() - start, 2))
            out.write(json.dumps(entry) + '\n')
            out.flush()
            print(f'{i + 1}/{len(todo)} {result:8} {entry["seconds"]:5.1f} s {m.path}:{m.line} {m.change()[:70]} {by}',
                  flush=True)


def explanations():
    return json.loads((HERE / 'equivalent.json').read_text())


def reason_of(entry, explained):
    for e in explained:
        if (e['path'], e['source'], e['column']) == (entry['path'], entry['source'], entry['column']) and \
                entry['change'] == e['change']:
            return e['reason']
    return None


def report(args, log):
    now = {m.key for mutants in all_mutants(args.only).values() for m in mutants}
    entries = [e for e in read_log(log).values() if e['key'] in now]
    explained = explanations()
    rows, survivors = {}, []
    for e in entries:
        row = rows.setdefault(e['path'], dict(run=0, invalid=0, equal=0, killed=0, explained=0, survived=0))
        row['run'] += 1
        result = e['result']
        if result == 'survived' and reason_of(e, explained):
            result = 'explained'
        row[result] += 1
        if result == 'survived':
            survivors.append(e)
    total = {k: sum(r[k] for r in rows.values()) for k in next(iter(rows.values()))} if rows else {}
    names = ['run', 'invalid', 'equal', 'explained', 'killed', 'survived']
    if args.markdown:
        print('| file | mutants | invalid | same object | equivalent | killed | survived | kill rate |')
        print('|---|---|---|---|---|---|---|---|')
    for path, row in sorted(rows.items()) + ([('all', total)] if rows else []):
        judged = row['killed'] + row['survived']
        rate = f'{100 * row["killed"] / judged:.1f} %' if judged else '-'
        cells = [f'`{path}`' if args.markdown and path != 'all' else path, *(str(row[n]) for n in names), rate]
        print('| ' + ' | '.join(cells) + ' |' if args.markdown else f'{cells[0]:34}' + ''.join(f'{c:>9}' for c in cells[1:]))
    for e in sorted(survivors, key=lambda e: (e['path'], e['line'])):
        print(f'{e["path"]}:{e["line"]}:{e["column"]}: {e["change"]}\n    {e["source"]}')


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--scratch', type=pathlib.Path, required=True, help='a folder for the copy, its build and the log')
    p.add_argument('--limit', type=int, help='how many mutants, the same share of every file')
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--only', action='append', help='sources that match this pattern')
    p.add_argument('--again', action='store_true', help='run the survivors without an explanation again, nothing else')
    p.add_argument('--report', action='store_true')
    p.add_argument('--markdown', action='store_true')
    args = p.parse_args()
    args.scratch = args.scratch.resolve()
    if args.scratch == ROOT or ROOT in args.scratch.parents:
        sys.exit(f'{args.scratch} is inside the tree; expected a folder outside of it')
    args.scratch.mkdir(parents=True, exist_ok=True)
    (report if args.report else run)(args, args.scratch / 'log.jsonl')


if __name__ == '__main__':
    main()
