#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads trace.wgt from docs/traces.md alone, with numpy, and checks it: sums of records, the order of rounds, lawful trees, and
every random decision drawn again from the seed. Rules: `rejection` on chains, `match` on any tree.

  read_trace.py FILE [--seed N]     --seed: instead of the recorded seed, which must fail

A draw is decided by u against sums in double. The program's sums are whole numbers, so a u within 1e-9 of a border is counted
as close and not checked; there should be hardly any. A draw that cut rows do not determine is counted as unknown."""
import argparse
import json
import struct
import sys

import numpy as np

MASK = (1 << 64) - 1
DRAFT, ACCEPT, NEXT = 1, 2, 3
END_OF_TEXT, LIMIT = 1, 2
IID, DECLARED = 2, 256
CLOSE = 1e-9


class Failed(Exception):
    pass


def need(is_so, what):
    if not is_so:
        raise Failed(what)


def philox(key, counter):
    """The words of Philox4x32-10 (Salmon et al. 2011)."""
    c, k = list(counter), [key & 0xFFFFFFFF, key >> 32 & 0xFFFFFFFF]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def uniform(key, index, purpose, position, address):
    """Words 0 and 1, the high word first; the upper 53 bits of these 64."""
    w = philox(key, (index, purpose, position, address))
    return ((w[0] << 32 | w[1]) >> 11) * 2.0 ** -53


def record_sum(n, kind, body):
    lanes = [1, 2, 3, 4]

    def take(lane, word):
        s = (lanes[lane] ^ word) * 0x9E3779B97F4A7C15 & MASK
        lanes[lane] = s ^ s >> 32

    take(0, kind << 32 | n)
    body += bytes(-len(body) % 32)
    words = np.frombuffer(body, '<u8').reshape(-1, 4)
    for lane in range(4):  # the lanes do not meet before the end
        s = lanes[lane]
        for word in words[:, lane].tolist():
            s = (s ^ word) * 0x9E3779B97F4A7C15 & MASK
            s ^= s >> 32
        lanes[lane] = s
    for lane in (1, 2, 3):
        take(0, lanes[lane])
    return lanes[0]


class Reader:
    """The fields of a record, in their order."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, code):
        v = struct.unpack_from('<' + code, self.data, self.at)
        self.at += struct.calcsize('<' + code)
        return v if len(v) > 1 else v[0]

    def list(self, dtype, n):
        v = np.frombuffer(self.data, dtype, n, self.at)
        self.at += v.nbytes
        return v

    def cut(self, vocab, count, out):
        """Fills out; returns the listed tokens."""
        tokens = self.list('<i4', count)
        need(count and np.all(np.diff(tokens) > 0), 'tokens of a row do not ascend')
        out[tokens] = self.list('<f8', count)
        step, first = 2.0 ** (np.frexp(out.max())[1] - 52), 0
        for end in (*tokens.tolist(), vocab):
            a, b = self.take('QI')
            need(b < end - first or a == b == 0, 'a gap has more than its tokens can have')
            out[first:end] = a * step
            out[first:first + b] += step
            first = end + 1
        return tokens

    def row(self, vocab, temperature):
        """A distribution in doubles, the tokens whose probabilities are exact (None: all), and its overlap (None: not stored)."""
        kind, count, _ = self.take('IId')
        overlap = self.take('d') if kind & 16 else None
        kind &= ~16
        out, listed = np.zeros(vocab), None
        if kind == 0:
            out[count] = 1
        elif kind == 1:
            out[:] = self.list('<f8', vocab)
        elif kind == 2:
            tokens = self.list('<i4', count)
            need(np.all(np.diff(tokens) > 0), 'tokens of a row do not ascend')
            out[tokens] = self.list('<f8', count)
        elif kind == 3:
            z = self.list('<f4', vocab).astype(float) / temperature
            out[:] = np.exp(z - z.max())
            out /= out.sum()
        elif kind == 6:
            listed = self.cut(vocab, count, out)
        else:
            raise Failed(f'row of kind {kind}: only exact and cut rows are checked')
        need(np.all(out >= 0) and abs(out.sum() - 1) < 1e-9, 'a row is no distribution')
        return out, listed, overlap


UNLISTED = -1


class Check:
    def __init__(self, seed):
        self.seed, self.requests, self.close = seed, {}, 0
        self.counts = dict(requests=0, rounds=0, drafts=0, accepts=0, emitted=0, draws=0, cut=0, unknown=0)

    def draw(self, request, index, purpose, position, row, listed=None):
        """The token drawn from a row, tokens ascending; None when u is close to a border, UNLISTED when it is in a gap."""
        u = uniform(request['key'], index, purpose, position, request['address'])
        borders = np.cumsum(row)
        at = u * borders[-1]
        self.counts['draws'] += 1
        if np.min(np.abs(borders[row > 0][:-1] - at), initial=1) < CLOSE:
            self.close += 1
            return None
        token = int(np.searchsorted(borders, at, side='right'))
        if listed is None or token in listed:
            return token
        self.counts['unknown'] += 1
        return UNLISTED

    def header(self, r):
        self.head = json.loads(r.data.decode())

    def request(self, r, offset):
        address, cell, group, prompt, repeat, limit, n = r.take('Iiiiiii')
        r.list('<i4', n)
        config = self.head['cells'][cell]['config']
        key = config['seed'] if self.seed is None else self.seed
        self.requests[offset] = dict(address=address, key=key, position=n, limit=limit, prompt=n, done=False, finish=0,
                                     rule=config['verify']['rule'], temperature=config['sampling']['temperature'],
                                     vocab=self.head['groups'][group]['vocab'], eog=self.head['groups'][group]['eog'], step=0)
        self.counts['requests'] += 1

    def round(self, r):
        request = self.requests[r.take('Q')]
        step, position = r.take('II')
        left, _, finish = r.take('iii')
        r.take('5d')
        r.take(f'{r.take("i")}d') if struct.unpack_from('<i', r.data, r.at)[0] else r.take('i')
        law, n, _ = r.take('iid')
        tree = dict(token=r.list('<i4', n), parent=r.list('<i4', n), qrow=r.list('<i4', n))
        m, next_ = r.take('ii')
        path = r.list('<i4', m).tolist()
        qrows = r.take('i')
        p = [r.row(request['vocab'], request['temperature']) for _ in range(n)]
        q = [r.row(request['vocab'], request['temperature']) for _ in range(qrows)]
        need(r.at == len(r.data), f'{len(r.data) - r.at} bytes are left in a round')
        self.counts['cut'] += sum(listed is not None for _, listed, _ in p + q)
        self.overlaps(tree, p, q)
        need(not request['done'] and step == request['step'] and position == request['position'], 'rounds are not in order')
        need(left == request['limit'] - position, 'left is not what fits')
        self.tree(request, position, law, tree, q)
        expected, token = self.verify(request, position, tree, p, q)
        self.counts['rounds'] += 1
        self.counts['drafts'] += n - 1
        self.counts['accepts'] += m - 1
        self.counts['emitted'] += m
        request.update(position=position + m, step=step + 1, finish=finish)
        need(path[0] == 0 and all(tree['parent'][b] == a for a, b in zip(path, path[1:])), 'the path is none of the tree')
        need((finish == END_OF_TEXT) == (next_ in request['eog']), 'finish does not say what the emitted token says')
        if expected is None:
            return  # close
        if finish and path == expected[:m] and m < len(expected):  # cut: the accepted token that ends the text is `next`
            need(next_ == tree['token'][expected[m]], 'a cut path ends with another token')
            return
        need(path == expected, f'path {path}; the draws say {expected}')
        need(token in (None, UNLISTED) or next_ == token, f'next is {next_}; the draws say {token}')

    def tree(self, request, position, law, tree, q):
        for i in range(1, len(tree['token'])):
            x, parent, row = (int(tree[k][i]) for k in ('token', 'parent', 'qrow'))
            need(0 <= parent < i and 0 <= x < request['vocab'], f'node {i} is not lawful')
            if law & ~DECLARED == IID:
                need(0 <= row < len(q) and q[row][0][x] > 0, f'node {i}: its row of q could not draw token {x}')
                drawn = self.draw(request, i, DRAFT, position, *q[row][:2])
                need(drawn in (x, None), f'node {i} is token {x}; the draw says {drawn}')

    def overlaps(self, tree, p, q):
        """A stored overlap lies between that of the listed tokens and that with all that gaps can share."""
        for v, (row, listed, overlap) in enumerate(p):
            children = [i for i in range(v + 1, len(tree['token'])) if tree['parent'][i] == v]
            beside = q[int(tree['qrow'][children[0]])] if children else None
            need((overlap is not None) == (beside is not None and not (listed is None and beside[1] is None)),
                 'an overlap is stored where it need not be, or is missing')
            if overlap is None:
                continue
            both = set(range(len(row)))
            for tokens in (listed, beside[1]):
                both &= both if tokens is None else set(tokens.tolist())
            both = sorted(both)
            low = np.minimum(row[both], beside[0][both]).sum()
            high = low + min(1 - row[both].sum(), 1 - beside[0][both].sum())
            need(low - 1e-9 <= overlap <= high + 1e-9, f'an overlap of {overlap}, between {low} and {high}')

    def verify(self, request, position, tree, p, q):
        """The path and `next`; None where a decision is close."""
        path = [0]
        while True:
            v = path[-1]
            children = [i for i in range(v + 1, len(tree['token'])) if tree['parent'][i] == v]
            at = position + len(path) - 1
            if request['rule'] == 'match' or not children:
                token = self.draw(request, 0, NEXT, at, *p[v][:2])
                same = [i for i in children if tree['token'][i] == token]
                if not same or token is None:
                    return (None if token is None and children else path), token
                path.append(same[0])
                continue
            need(request['rule'] == 'rejection' and len(children) == 1, 'only chains are checked under rejection')
            child = children[0]
            x, (row, drawable, _) = int(tree['token'][child]), q[int(tree['qrow'][child])]
            mine, listed, _ = p[v]
            u = uniform(request['key'], child, ACCEPT, position, request['address'])
            self.counts['draws'] += 1
            if abs(u * row[x] - mine[x]) < CLOSE * row[x]:
                self.close += 1
                return None, None
            if u * row[x] >= mine[x]:
                if listed is not None or drawable is not None:
                    self.counts['unknown'] += 1
                    return path, UNLISTED  # the residual needs whole rows
                return path, self.draw(request, 0, NEXT, at, np.maximum(mine - row, 0))
            path.append(child)

    def end(self, r):
        request = self.requests[r.take('Q')]
        tokens, finish = r.take('ii')
        need(tokens == request['position'] - request['prompt'], 'the end counts other tokens than the rounds')
        need(finish == request['finish'] and finish in (END_OF_TEXT, LIMIT), 'the end and the last round finish differently')
        request['done'] = True


def read(path, check):
    data = open(path, 'rb').read()
    need(data[:8] == b'wgtrace\n' and struct.unpack_from('<II', data, 8) == (1, 0), 'the file does not begin as a trace')
    at, kinds = 16, {1: check.header, 3: check.round, 4: check.end}
    while at < len(data):
        n, kind = struct.unpack_from('<II', data, at)
        body = data[at + 8:at + 8 + n]
        need(len(body) == n and at + 16 + n <= len(data), f'the file ends inside the record at {at}')
        need(record_sum(n, kind, body) == struct.unpack_from('<Q', data, at + 8 + n)[0], f'the record at {at} has another sum')
        try:
            if kind == 2:
                check.request(Reader(body), at)
            else:
                kinds[kind](Reader(body))
        except Failed as e:
            raise Failed(f'record at {at}: {e}')
        at += 16 + n
    need(all(r['done'] for r in check.requests.values()), 'a request has no end')


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument('file')
    a.add_argument('--seed', type=int)
    o = a.parse_args()
    check = Check(o.seed)
    try:
        read(o.file, check)
    except Failed as e:
        sys.exit(f'{o.file}: {e}')
    print(', '.join(f'{n} {what}' for what, n in check.counts.items()), f'- all as drawn; {check.close} close to a border')
    sys.exit(0 if check.counts['rounds'] and check.counts['accepts'] and check.close * 100 < check.counts['draws'] else 1)


if __name__ == '__main__':
    main()
