# SPDX-License-Identifier: MIT
"""Mutants of a C or CUDA source: one small change of its text each. The text is read as tokens, so comments, strings and
preprocessor lines (macro bodies among them) have no mutants."""
import hashlib
import random
import re

TOKEN = re.compile(r'''
    (?P<comment>/\*.*?\*/|//[^\n]*)
  | (?P<directive>^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)
  | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
  | (?P<number>(?:0[xX][0-9a-fA-F]+|\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+)[uUlLfF]*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<op><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%&|^!~<>=?:;,.(){}\[\]])
  | (?P<space>\s+)
''', re.X | re.S | re.M)

SWAPS = {  # operator: the texts that replace it
    '<': ['<=', '>='], '<=': ['<', '>'], '>': ['>=', '<='], '>=': ['>', '<'], '==': ['!='], '!=': ['=='],
    '&&': ['||'], '||': ['&&'], '+': ['-'], '-': ['+'], '*': ['/'], '/': ['*'], '%': ['/'], '&': ['|'], '|': ['&'],
    '^': ['|'], '<<': ['>>'], '>>': ['<<'], '+=': ['-='], '-=': ['+='], '*=': ['/='], '/=': ['*='], '&=': ['|='],
    '|=': ['&='], '^=': ['|='], '<<=': ['>>='], '>>=': ['<<='], '++': ['--'], '--': ['++'],
}
NAMES = {  # name: what replaces it
    'true': 'false', 'false': 'true', 'INFINITY': '-INFINITY', 'fmin': 'fmax', 'fmax': 'fmin', 'fminf': 'fmaxf',
    'fmaxf': 'fminf', 'min': 'max', 'max': 'min', 'break': 'continue', 'continue': 'break',
}
UNARY_AFTER = set('( [ { , ; = ? : return && || ! < > <= >= == != + - * / % & | += -= *= /= << >>'.split())
KINDS = {'<': 'relation', '<=': 'relation', '>': 'relation', '>=': 'relation', '==': 'relation', '!=': 'relation',
         '&&': 'logic', '||': 'logic'}
TYPES = {'int', 'unsigned', 'char', 'bool', 'double', 'float', 'void', 'const', 'struct', 'enum', 'static', 'inline', 'case',
         'extern', 'sizeof', 'typedef', 'else', 'goto', 'do', 'return', 'if', 'for', 'while', 'switch', 'static_assert'}
STATEMENT_AFTER = set('( [ . -> = += -= *= /= |= &= ^= <<= >>= ++ --'.split())


class Mutant:
    def __init__(self, path, text, digest, start, end, new, kind):
        self.path, self.start, self.end, self.new, self.kind = path, start, end, new, kind
        self.old = text[start:end]
        self.line = text.count('\n', 0, start) + 1
        self.column = start - (text.rfind('\n', 0, start) + 1) + 1
        self.source = text.splitlines()[self.line - 1].strip()
        self.key = f'{path}@{digest}:{self.line}:{self.column}:{kind}:{new}'

    def apply(self, text):
        """The file with this change; its lines keep their numbers, so that assertions keep theirs."""
        gap = '\n' * (self.old.count('\n') - self.new.count('\n'))
        return text[:self.start] + self.new + gap + text[self.end:]

    def change(self):
        old = ' '.join(self.old.split())
        return f'{self.kind}: {old} -> {self.new or "nothing"}'


def tokens_of(text):
    out, at = [], 0
    while at < len(text):
        m = TOKEN.match(text, at)
        if not m:
            at += 1
            continue
        at = m.end()
        if m.lastgroup not in ('comment', 'directive', 'space'):
            out.append((m.lastgroup, m.group(), m.start(), m.end()))
    return out


def closing(tok, at):
    """The index of the parenthesis that closes the one at `at`."""
    depth = 0
    for i in range(at, len(tok)):
        depth += (tok[i][1] == '(') - (tok[i][1] == ')')
        if depth == 0:
            return i
    return None


def number_mutants(text):
    digits = re.sub('[uUlLfF]+$', '', text) if not text.lower().startswith('0x') else text
    suffix = text[len(digits):]
    if re.fullmatch(r'\d+', digits):
        value = int(digits)
        return [f'{value + 1}{suffix}'] + ([f'{value - 1}{suffix}'] if value else [])
    if digits.lower().startswith('0x'):
        return [f'({digits} ^ 1)']
    return [f'(2 * {text})', f'({text} / 2)'] if float(digits) else [f'1.0{suffix}']


def begins_statement(tok, i):
    """Whether a statement may begin at token i."""
    before = tok[i - 1][1] if i else ';'
    if before in (';', '{', '}', 'else'):
        return True
    if before != ')':
        return False
    depth, j = 0, i - 1  # the parenthesis closed before: of a loop or a condition
    while j >= 0:
        depth += (tok[j][1] == ')') - (tok[j][1] == '(')
        if depth == 0:
            break
        j -= 1
    return j > 0 and bool(re.match('(if|for|while|switch|WG_FOR_[A-Z]+)$', tok[j - 1][1]))


def is_statement(tok, i):
    """Whether an expression statement begins here: a call, an assignment, a step; not a declaration."""
    if tok[i][0] != 'name' or tok[i][1] in TYPES or tok[i][1] in NAMES or i + 1 == len(tok):
        return False
    return begins_statement(tok, i) and tok[i + 1][1] in STATEMENT_AFTER


def statement_end(tok, i):
    depth = 0
    for j in range(i, len(tok)):
        if tok[j][1] in '([{':
            depth += 1
        elif tok[j][1] in ')]}':
            depth -= 1
            if depth < 0:
                return None
        elif tok[j][1] == ';' and depth == 0:
            return j
        elif tok[j][1] == ',' and depth == 0:
            return None
    return None


def mutants_of(path, text):
    """All mutants of a source, in the order of the text."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    tok = tokens_of(text)
    found = []

    def add(start, end, new, kind):
        found.append(Mutant(path, text, digest, start, end, new, kind))

    depth = 0  # of braces: file scope has declarations and tables only
    for i, (kind, word, start, end) in enumerate(tok):
        depth += (word == '{') - (word == '}')
        before = tok[i - 1] if i else ('op', ';', 0, 0)
        operand = before[0] in ('number', 'string') or before[1] in (')', ']') or \
            (before[0] == 'name' and before[1] not in TYPES)
        if depth == 0:
            continue
        if kind == 'number':
            for new in number_mutants(word):
                add(start, end, new, 'constant')
        elif kind == 'name' and word in NAMES:
            add(start, end, NAMES[word], 'name')
        elif kind == 'name' and word in ('if', 'while') and tok[i + 1][1] == '(':
            close = closing(tok, i + 1)
            inside = text[tok[i + 1][3]:tok[close][2]]
            add(tok[i + 1][3], tok[close][2], f'!({inside})', 'negation')
        elif kind == 'op' and word == '!' and not operand:
            add(start, end, '', 'negation')
        elif kind == 'op' and word == '-' and not operand and before[1] in UNARY_AFTER:
            add(start, end, '+', 'arithmetic')
        elif kind == 'op' and word in SWAPS and (operand or word in ('++', '--')):
            for new in SWAPS[word]:
                add(start, end, new, KINDS.get(word, 'arithmetic'))
        if is_statement(tok, i):
            last = statement_end(tok, i)
            if last is not None:
                add(start, tok[last][2], '', 'statement')
        elif word == 'return' and tok[i + 1][1] == ';':
            add(start, end, '', 'statement')
    return found


def sample(by_path, seed, limit):
    """`limit` mutants, or all: the same share of every file, and a larger limit keeps those of a smaller one."""
    ranked = []
    for path, mutants in sorted(by_path.items()):
        order = list(range(len(mutants)))
        random.Random(f'{seed}:{path}').shuffle(order)
        for place, index in enumerate(order):
            ranked.append(((place + 0.5) / len(mutants), path, index))
    ranked.sort()
    return [by_path[path][index] for _, path, index in (ranked if limit is None else ranked[:limit])]
