#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The program against transformers (reference.json, written by reference.py) on the bundled pair in f32: rows of logits, greedy
texts, and tokens per target pass at temperatures 1 and 0.8. Standard library only.

  check.py WAGER FOLDER     FOLDER: for the f32 models and the runs"""
import array
import json
import math
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RELATIVE, SIGMAS = 1e-4, 3
SEEDS = [5, 6]
failures = 0


def say(is_so, text):
    global failures
    failures += not is_so
    print(('' if is_so else 'FAILED ') + text, flush=True)


def call(*command):
    done = subprocess.run([str(c) for c in command], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f'{" ".join(map(str, command))}: {done.stderr}')


def logits(wager, folder, models, reference):
    for entry in reference['logits']:
        out = folder / 'rows.f32'
        call(wager, 'logits', models[entry['model']], '--tokens', ','.join(map(str, entry['tokens'])), '--kv-type', 'f32',
             '--threads', 1, '--out', out)
        rows = array.array('f', out.read_bytes())
        width = len(rows) // len(entry['tokens'])
        off = on = 0.0
        for place, known in enumerate(entry['rows']):
            off += sum((rows[place * width + i] - z) ** 2 for i, z in known)
            on += sum(z * z for _, z in known)
        error = math.sqrt(off / on)
        say(error <= RELATIVE, f'{entry["model"]}: {len(entry["rows"])} rows of logits, relative error {error:.1e}, '
                               f'allowed {RELATIVE:.0e}')


def run(wager, folder, models, reference, name, temperature, tokens):
    """The requests of a run of chains under rejection sampling."""
    target, draft = (models[e['model']] for e in reference['logits'])
    config = folder / f'{name}.json'
    config.write_text(json.dumps(dict(
        name=name, target=dict(model=str(target), threads=1, kv_type='f32'),
        draft=dict(kind='model', model=str(draft), length=reference['drafts'], kv_type='f32'), verify=dict(rule='rejection'),
        sampling=dict(temperature=temperature), prompts=dict(file=str(ROOT / reference['prompts'])), max_tokens=tokens, alpha=False,
        sweep=dict(seed=SEEDS if temperature else SEEDS[:1]))))
    call(wager, 'run', config, '--out', folder / name)
    return [json.loads(line) for line in (folder / name / 'requests.jsonl').read_text().splitlines()]


def greedy(requests, reference):
    for arm in ('baseline', 'speculative'):
        texts = [r['ids'] for r in requests if (r['arm'] == 'baseline') == (arm == 'baseline')]
        same = sum(a == b for a, b in zip(texts, reference['greedy']))
        say(same == len(reference['greedy']) == len(texts), f'greedy texts, {arm}: {same} of {len(reference["greedy"])} equal')


def tau(requests, known, twice):
    pairs = [(len(r['ids']), r['load']['passes']) for r in requests if r['arm'] != 'baseline']
    n, m = map(sum, zip(*pairs))
    ours = n / m
    error = math.hypot(math.sqrt(sum((a - ours * b) ** 2 for a, b in pairs)) / m, known['standard_error'])
    z = (ours - known['tau']) / error
    text = f'tau at temperature {known["temperature"]}: {ours:.3f}, transformers {known["tau"]:.3f}, z = {z:.1f}'
    if twice:
        text += f'; stock transformers, whose assistant has the temperature twice: {twice["tau"]:.3f}'
    say(abs(z) <= SIGMAS, text)


def main():
    wager, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    reference = json.loads((HERE / 'reference.json').read_text())
    models = {e['model']: folder / pathlib.Path(e['model']).name for e in reference['logits']}
    for name, path in models.items():
        call(wager, 'convert', name, '--type', 'f32', '--out', path)
    logits(wager, folder, models, reference)
    greedy(run(wager, folder, models, reference, 'greedy', 0, len(reference['greedy'][0])), reference)
    taus = {(t['temperature'], t['q']): t for t in reference['tau']}
    for (temperature, q), known in taus.items():
        if q == 'once':
            requests = run(wager, folder, models, reference, f'tau-{temperature}', temperature, reference['max_tokens'])
            tau(requests, known, taus.get((temperature, 'twice')))
    if failures:
        print('after a change of the bundled models: models/update.sh')
    sys.exit(1 if failures else 0)


if __name__ == '__main__':
    main()
