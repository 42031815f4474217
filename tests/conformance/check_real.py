#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The program with a published model against what others compute with it (real/NAME.json and NAME-WINDOW.rows, by make_real.py).
Standard library only.

  check_real.py WAGER NAME logits|greedy|tokens     exits 77 where `wager pull NAME` has put no file, or WG_SHARED has no texts (tokens)

logits: rows of 2,000 positions have the bits of the digests, on every machine; those of 4 positions at the scalar level too. At
122 positions the divergence from transformers in f32, over its 16 most probable tokens and the rest, is at most ALLOWED times
llama.cpp's (at all 2,000, as the fixture has it, at most llama.cpp's); with weights and cache in f32 its log-probabilities are
transformers' within EXACT. WG_THIN=1: one window.
greedy: texts of 50 prompts, by plain decoding and by drafts, have the bits of the digest; with weights and cache in f32 they are
transformers'. Where a text leaves transformers', that one had a near tie, and ours is among the tied tokens. WG_THIN=1: ten.
tokens: the ids of all texts in WG_SHARED/text are those of the tokenizer that the model was published with, which takes the text of a
control token for this token (`--special`). WG_THIN=1: every tenth text."""
import array
import hashlib
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT, REAL = HERE.parents[1], HERE / 'real'
FILES = {'smollm2-135m-instruct': 'smollm2-135m-instruct-q4_1.gguf', 'gemma-3-270m': 'gemma-3-270m-q4_k_m.gguf'}
WINDOWS = [('prose', ['prose'], 250), ('c', ['c'], 250), ('python', ['python'], 250), ('json', ['json'], 250),
           ('long', ['stories', 'turns', 'report', 'table'], 1000)]  # longer than Gemma's sliding window of 512
EVERY, KEPT = 16, 16
SCALAR = 4  # positions at the scalar level
TOKENS = 16
ALLOWED, EXACT = 1.25, 2e-4
failures = 0


def say(is_so, text):
    global failures
    failures += not is_so
    print(('' if is_so else 'FAILED ') + text, flush=True)


def call(*command, **environment):
    done = subprocess.run([str(c) for c in command], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          env=dict(os.environ, **environment))
    if done.returncode:
        sys.exit(f'{" ".join(map(str, command))[:300]}: {done.stderr}')


def model_file(name):
    """Where `wager pull` puts it; the suite has a cache folder of its own, without models."""
    for cache in (os.environ.get('XDG_CACHE_HOME'), pathlib.Path.home() / '.cache'):
        if cache and (pathlib.Path(cache) / 'wager/models' / FILES[name]).is_file():
            return pathlib.Path(cache) / 'wager/models' / FILES[name]
    return None


def windows():
    """[(name, text, tokens)]"""
    text = {x['name']: x['text'] for x in map(json.loads, (REAL / 'texts.jsonl').read_text().splitlines())}
    return [(name, '\n\n'.join(text[x] for x in parts), n) for name, parts, n in WINDOWS]


def text_files(folder):
    return sorted(p for p in pathlib.Path(folder).rglob('*') if p.suffix in ('.txt', '.md'))


def tokens_of(wager, path, text, folder):
    """The ids of a file."""
    call(wager, 'tokenize', path, '--file', text, '--special', '--out', folder / 'ids')
    return array.array('i', (folder / 'ids').read_bytes())


def rows_of(wager, path, ids, folder, *more, **environment):
    """The file of all rows of logits, f32."""
    out = pathlib.Path(folder) / 'rows.f32'
    call(wager, 'logits', path, '--tokens', ','.join(map(str, ids)), '--threads', 1, '--out', out, *more, **environment)
    return out


def texts_of(wager, path, template, most=None, **target):
    """Ids of the greedy texts; plain decoding and drafts by suffix must agree. target: members of the section."""
    prompts = (REAL / 'prompts.jsonl').read_text().splitlines(keepends=True)[:most]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / 'prompts.jsonl').write_text(''.join(prompts))
        (folder / 'run.json').write_text(json.dumps(dict(
            name='greedy', target=dict(model=str(path), threads=1, **target), draft=dict(kind='suffix'), verify=dict(rule='match'),
            sampling=dict(temperature=0), prompts=dict(file='prompts.jsonl', chat='model' if template else 'none'),
            max_tokens=TOKENS, alpha=False)))
        call(wager, 'run', folder / 'run.json', '--out', folder / 'out')
        requests = [json.loads(line) for line in (folder / 'out/requests.jsonl').read_text().splitlines()]
    plain, drafted = ([r['ids'] for r in requests if (r['arm'] == 'baseline') == plain] for plain in (True, False))
    say(plain == drafted and len(plain) == len(prompts), f'{len(plain)} greedy texts: drafts change none')
    return plain


def log_sum(row):
    most = max(row)
    return most + math.log(math.fsum(map(math.exp, (x - most for x in row))))


def coarse(ours, known):
    """The divergence of log-probabilities of the kept tokens from the truth's, over these tokens and the rest together."""
    rest, known_rest = (max(1 - math.fsum(map(math.exp, x)), 1e-12) for x in (ours, known))
    return math.fsum(math.exp(a) * (a - b) for a, b in zip(known, ours)) + known_rest * math.log(known_rest / rest)


def kept_rows(name, window):
    """[(ids, log-probabilities)] of NAME-WINDOW.rows"""
    data, size = (REAL / f'{name}-{window}.rows').read_bytes(), 4 * KEPT
    return [(array.array('i', data[at:at + size]), array.array('f', data[at + size:at + 2 * size])) for at in range(0, len(data), 2 * size)]


def log_probabilities(rows, width, place, some):
    """Of tokens `some` at the place-th kept position of an open file of rows."""
    rows.seek(4 * width * (EVERY * (place + 1) - 1))
    row = array.array('f', rows.read(4 * width))
    total = log_sum(row)
    return [row[i] - total for i in some]


def check_exact(wager, path, ids, kept, folder):
    """Weights and cache in f32 leave the graph alone: transformers' numbers, but for the order of sums."""
    n = 2 * EVERY
    with open(rows_of(wager, path, ids[:n], folder, '--quantize', 'f32', '--kv-type', 'f32'), 'rb') as rows:
        width = os.fstat(rows.fileno()).st_size // 4 // n
        off = max(abs(a - b) for place, (some, known) in enumerate(kept[:2])
                  for a, b in zip(log_probabilities(rows, width, place, some), known))
    say(off <= EXACT, f'in f32: log-probabilities of transformers within {off:.1e}, allowed {EXACT:.0e}')


def check_window(wager, path, window, reference, kept, folder):
    """The divergences at the positions of `kept`."""
    name, text, n = window
    (folder / 'text').write_text(text)
    ids = tokens_of(wager, path, folder / 'text', folder)[:n]
    say(hashlib.sha256(ids.tobytes()).hexdigest() == reference['tokens'], f'{name}: the ids of {n} tokens')
    rows, found = rows_of(wager, path, ids, folder), []
    width = rows.stat().st_size // 4 // n
    with open(rows, 'rb') as f:
        digest = hashlib.sha256()
        while some := f.read(1 << 24):
            digest.update(some)
        for place, (some, known) in enumerate(kept):
            found.append(coarse(log_probabilities(f, width, place, some), known))
        f.seek(0)
        begin = f.read(4 * width * SCALAR)
    say(digest.hexdigest() == reference['digest'], f'{name}: the bits of {n} rows')
    if name == WINDOWS[0][0]:
        scalar = rows_of(wager, path, ids[:SCALAR], folder, WG_CPU='ref').read_bytes()
        say(scalar == begin, f'{name}: the bits of {SCALAR} rows at the scalar level')
        check_exact(wager, path, ids, kept, folder)
    return found


def check_logits(wager, name, path, reference, thin, folder):
    found, theirs = [], []
    for window in [w for w in windows() if w[0] in reference][:1 if thin else None]:
        known = reference[window[0]]
        found += check_window(wager, path, window, known, kept_rows(name, window[0]), folder)
        theirs += known['kept']
    rows = sum(w['positions'] for w in reference.values())
    all_of = [sum(w['positions'] * w['kl'][who] for w in reference.values()) / rows for who in ('wager', 'llama.cpp')]
    say(all_of[0] <= all_of[1], f'mean divergence at {rows} positions: {all_of[0]:.5f}, llama.cpp {all_of[1]:.5f}')
    mean, allowed = sum(found) / len(found), ALLOWED * sum(theirs) / len(theirs)
    say(mean <= allowed, f'divergence from transformers at {len(found)} positions: {mean:.5f}, allowed {allowed:.5f}, {ALLOWED} of llama.cpp\'s')


def check_greedy(wager, path, reference, thin, template):
    most = 10 if thin else None
    exact = texts_of(wager, path, template, most, quantize='f32', kv_type='f32')
    say(exact == reference['texts'][:len(exact)], f'in f32: {len(exact)} greedy texts are those of transformers')
    ours = texts_of(wager, path, template, most)
    same = 0
    for number, (text, known, near) in enumerate(zip(ours, reference['texts'], reference['near'])):
        place = next((i for i, (a, b) in enumerate(zip(text, known)) if a != b), None)
        same += place is None
        tied = next((x[1:] for x in near if x[0] == place), ())
        if place is not None and text[place] not in tied:
            say(False, f'prompt {number + 1} leaves transformers\' text at token {place + 1}, where that had no near tie with it')
    say(True, f'{same} of {len(ours)} greedy texts are those of transformers, the others leave it at a near tie')
    if not thin:
        say(hashlib.sha256(json.dumps(ours).encode()).hexdigest() == reference['digest'], 'the bits of all greedy texts')


def check_tokens(wager, path, reference, texts, thin, folder):
    files = text_files(texts)[::10 if thin else 1]
    for text in files:
        ids, known = tokens_of(wager, path, text, folder), reference.get(str(text.relative_to(texts)))
        got = [len(ids), hashlib.sha256(ids.tobytes()).hexdigest()[:16]]
        if got != known:
            say(False, f'{text.name}: ids {got}, of the published tokenizer {known}')
    say(len(files) > 0, f'{len(files)} texts: the ids of the published tokenizer')


def main():
    wager, name, what = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3]
    path, texts = model_file(name), pathlib.Path(os.environ.get('WG_SHARED', ROOT / '../shared/data')) / 'text'
    if not path:
        print(f'SKIPPED: needs the model of: wager pull {name}')
        sys.exit(77)
    if what == 'tokens' and not texts.is_dir():
        print(f'SKIPPED: needs the texts of development at {texts}')
        sys.exit(77)
    fixture, thin = REAL / f'{name}.json', 'WG_THIN' in os.environ
    reference = json.loads(fixture.read_text()) if fixture.is_file() else {}
    if what not in reference:
        print(f'SKIPPED: needs {fixture.relative_to(ROOT)} with {what}, which make_real.py writes')
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        if what == 'tokens':
            check_tokens(wager, path, reference[what], texts, thin, folder)
        elif what == 'logits':
            check_logits(wager, name, path, reference[what], thin, folder)
        else:
            check_greedy(wager, path, reference[what], thin, name.endswith('instruct'))
    sys.exit(1 if failures else 0)


if __name__ == '__main__':
    main()
