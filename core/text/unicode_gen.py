#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the tables of characters: unicode_table.c (categories), normal_table.c (normalisers) and grapheme_table.c (clusters).

    python3 core/text/unicode_gen.py categories > core/text/unicode_table.c
    python3 core/text/unicode_gen.py normal > core/text/normal_table.c
    python3 core/text/unicode_gen.py graphemes > core/text/grapheme_table.c

Needs PyPI `unicodedata2` 16.0.0, and `regex` for grapheme clusters. Unicode 16.0 is the version whose categories (\\p{L}, \\p{Lu}, \\p{M}, \\p{N}, \\p{P}, \\p{S}, ...) agree
with the regular expressions of the `tokenizers` library 0.23 on every code point; White_Space is not in the module, and so small
and so stable that it stands here. The library's normal forms are those of Unicode 9.0: of later characters, listed below, it
knows no decomposition and no combining class, and neither do these tables. tests/conformance/make_tokenizers.py compares both.
"""
import sys

import unicodedata2 as ucd

BLOCK = 128  # code points; four bits each
# wg_category of unicode.h
GROUPS = ["Cc Cf Cs Co Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn Mc Me", "Nd", "Nl", "No", "Pc", "Pd Ps Pe Pi Pf Po",
          "Sm Sc Sk So", "Zs Zl Zp"]
CATEGORY = {name: i for i, group in enumerate(GROUPS) for name in group.split()}
SPACE = CATEGORY["Zs"]
WHITE_SPACE = {*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}

LATER_DECOMPOSITIONS = {0x105C9, 0x105E4, 0x11383, 0x11385, 0x1138E, 0x11391, 0x113C5, 0x113C7, 0x113C8, 0x11938,
                        *range(0x16121, 0x16129), *range(0x16D68, 0x16D6B)}
LATER_CLASSES = [
    (0x7FD, 0x7FD), (0x897, 0x89F), (0x8CA, 0x8D3), (0x9FE, 0x9FE), (0xC3C, 0xC3C), (0xD3B, 0xD3C), (0xEBA, 0xEBA), (0x1715, 0x1715),
    (0x1ABF, 0x1ACE), (0x1DF6, 0x1DFA), (0xA82C, 0xA82C), (0x10D24, 0x10D27), (0x10D69, 0x10D6D), (0x10EAB, 0x10EAC), (0x10EFD, 0x10EFF),
    (0x10F46, 0x10F50), (0x10F82, 0x10F85), (0x11070, 0x11070), (0x1133B, 0x1133B), (0x113CE, 0x113D0), (0x1145E, 0x1145E),
    (0x11839, 0x1183A), (0x1193D, 0x1193E), (0x11943, 0x11943), (0x119E0, 0x119E0), (0x11A34, 0x11A34), (0x11A47, 0x11A47),
    (0x11A99, 0x11A99), (0x11D42, 0x11D42), (0x11D44, 0x11D45), (0x11D97, 0x11D97), (0x11F41, 0x11F42), (0x1612F, 0x1612F),
    (0x16FF0, 0x16FF1), (0x1E08F, 0x1E08F), (0x1E130, 0x1E136), (0x1E2AE, 0x1E2AE), (0x1E2EC, 0x1E2EF), (0x1E4EC, 0x1E4EF),
    (0x1E5EE, 0x1E5EF)]

LATER_COMPATIBILITY = {0x32FF, *range(0xA7F2, 0xA7F5), 0xAB69, *range(0x10781, 0x10786), *range(0x10787, 0x107B1),
                       *range(0x107B2, 0x107BB), *range(0x1CCD6, 0x1CCFA), *range(0x1E030, 0x1E06E), 0x1F16C, *range(0x1FBF0, 0x1FBFA)}
# Combining marks of one of Unicode 9.0 and 16.0, not of both.
LATER_MARKS = [
    (0x7FD, 0x7FD), (0x897, 0x89F), (0x8CA, 0x8D3), (0x9FE, 0x9FE), (0xAFA, 0xAFF), (0xB55, 0xB55), (0xC04, 0xC04),
    (0xC3C, 0xC3C), (0xCF3, 0xCF3), (0xD00, 0xD00), (0xD3B, 0xD3C), (0xD81, 0xD81), (0xEBA, 0xEBA), (0xECE, 0xECE),
    (0x1715, 0x1715), (0x180F, 0x180F), (0x1ABF, 0x1ACE), (0x1CF2, 0x1CF3), (0x1CF7, 0x1CF7), (0x1DF6, 0x1DFA),
    (0xA82C, 0xA82C), (0xA8FF, 0xA8FF), (0x10D24, 0x10D27), (0x10D69, 0x10D6D), (0x10EAB, 0x10EAC), (0x10EFC, 0x10EFF),
    (0x10F46, 0x10F50), (0x10F82, 0x10F85), (0x11070, 0x11070), (0x11073, 0x11074), (0x110C2, 0x110C2),
    (0x11145, 0x11146), (0x111C9, 0x111C9), (0x111CE, 0x111CF), (0x11241, 0x11241), (0x1133B, 0x1133B),
    (0x113B8, 0x113C0), (0x113C2, 0x113C2), (0x113C5, 0x113C5), (0x113C7, 0x113CA), (0x113CC, 0x113D0),
    (0x113D2, 0x113D2), (0x113E1, 0x113E2), (0x1145E, 0x1145E), (0x1182C, 0x1183A), (0x11930, 0x11935),
    (0x11937, 0x11938), (0x1193B, 0x1193E), (0x11940, 0x11940), (0x11942, 0x11943), (0x119D1, 0x119D7),
    (0x119DA, 0x119E0), (0x119E4, 0x119E4), (0x11A01, 0x11A0A), (0x11A33, 0x11A39), (0x11A3B, 0x11A3E),
    (0x11A47, 0x11A47), (0x11A51, 0x11A5B), (0x11A8A, 0x11A99), (0x11D31, 0x11D36), (0x11D3A, 0x11D3A),
    (0x11D3C, 0x11D3D), (0x11D3F, 0x11D45), (0x11D47, 0x11D47), (0x11D8A, 0x11D8E), (0x11D90, 0x11D91),
    (0x11D93, 0x11D97), (0x11EF3, 0x11EF6), (0x11F00, 0x11F01), (0x11F03, 0x11F03), (0x11F34, 0x11F3A),
    (0x11F3E, 0x11F42), (0x11F5A, 0x11F5A), (0x13440, 0x13440), (0x13447, 0x13455), (0x1611E, 0x1612F),
    (0x16F4F, 0x16F4F), (0x16F7F, 0x16F87), (0x16FE4, 0x16FE4), (0x16FF0, 0x16FF1), (0x1CF00, 0x1CF2D),
    (0x1CF30, 0x1CF46), (0x1E08F, 0x1E08F), (0x1E130, 0x1E136), (0x1E2AE, 0x1E2AE), (0x1E2EC, 0x1E2EF),
    (0x1E4EC, 0x1E4EF), (0x1E5EE, 0x1E5EF)]
# Lower case is that of Unicode 17 (of Rust's standard library); Python's may be older.
LATER_LOWER = {0x1C89: 0x1C8A, 0xA7CB: 0x264, 0xA7CC: 0xA7CD, 0xA7CE: 0xA7CF, 0xA7D2: 0xA7D3, 0xA7D4: 0xA7D5, 0xA7DA: 0xA7DB,
               0xA7DC: 0x19B, **{cp: cp + 0x20 for cp in range(0x10D50, 0x10D66)}, **{cp: cp + 0x1B for cp in range(0x16EA0, 0x16EB9)}}
# The library's crate unicode-segmentation knows Unicode 16; of these characters, which `regex` 2026 knows, it knows no class.
LATER_GRAPHEMES = {0x5C8, 0x5C9, 0xB53, 0xB54, 0x1ADE, 0x1ADF, *range(0x1AEC, 0x1AF1), *range(0x10ECB, 0x10ED0), *range(0x10EF0, 0x10EFA),
                   0x11DF0, 0x1D127, 0x1D128, *range(0x1D250, 0x1D253), 0x1D25B, 0x1D25C, 0x1D25F, 0x1D280, 0x1D281}


def category_of(cp):
    return SPACE if cp in WHITE_SPACE else CATEGORY[ucd.category(chr(cp))]


def rows(values, per_line, show):
    for i in range(0, len(values), per_line):
        yield "    " + ", ".join(show(v) for v in values[i:i + per_line]) + ","


def head(what, header):
    print("/* SPDX-License-Identifier: MIT")
    print(f" * Generated by core/text/unicode_gen.py from Unicode {ucd.unidata_version}; do not edit. {what} */")
    print(f'#include "core/text/{header}"\n')


def categories():
    blocks, index = {}, []
    for first in range(0, 0x110000, BLOCK):
        of = [category_of(cp) for cp in range(first, first + BLOCK)]
        packed = tuple(sum(of[i + j] << 4 * j for j in range(16)) for i in range(0, BLOCK, 16))
        index.append(blocks.setdefault(packed, len(blocks)))
    empty = blocks[(0,) * (BLOCK // 16)]
    while index[-1] == empty:  # beyond the table everything is `other`
        index.pop()
    assert len(blocks) <= 256
    head(f"Four bits per code point\n * (wg_category), {BLOCK} code points per block, equal blocks stored once.", "unicode.h")
    print(f'const char wg_unicode_version[] = "{ucd.unidata_version}";\n\nconst unsigned char wg_unicode_index[WG_UNICODE_BLOCKS] = {{')
    print("\n".join(row.replace(", ", ",") for row in rows(index, 36, str)))
    print(f"}};\n\nconst uint64_t wg_unicode_block[{len(blocks)}][{BLOCK // 16}] = {{")
    for packed in blocks:
        words = [f"0x{w:x}" for w in packed]
        if len(set(words)) == 1 and words[0] == "0x0":
            print("    { 0 },")
        else:
            print("    { " + ", ".join(words[:4]) + ",\n      " + ", ".join(words[4:]) + " },")
    print("};")
    print(f"{len(blocks)} blocks, {len(index)} index entries: WG_UNICODE_BLOCKS in unicode.h", file=sys.stderr)


def normal():
    later = {cp for a, b in LATER_CLASSES for cp in range(a, b + 1)}
    ranges, pairs = [], []
    for cp in range(0x110000):
        order = 0 if cp in later else ucd.combining(chr(cp))
        if order and ranges and ranges[-1][1] == cp - 1 and ranges[-1][2] == order:
            ranges[-1][1] = cp
        elif order:
            ranges.append([cp, cp, order])
        to = ucd.decomposition(chr(cp))
        if to and to[0] != "<" and cp not in LATER_DECOMPOSITIONS:
            pairs.append((cp, *[int(x, 16) for x in to.split()]))
    joins = [i for i, p in enumerate(pairs) if len(p) == 3 and ucd.normalize("NFC", chr(p[1]) + chr(p[2])) == chr(p[0])]
    joins.sort(key=lambda i: pairs[i][1:])
    head("Canonical\n * combining classes, decompositions, and which of these compose again.", "normal_form.h")
    print(f"const wg_normal_class wg_normal_classes[WG_NORMAL_CLASSES] = {{")
    print("\n".join(rows(ranges, 4, lambda r: "{ 0x%x, 0x%x, %d }" % tuple(r))))
    print("};\n\nconst wg_normal_pair wg_normal_pairs[WG_NORMAL_PAIRS] = {")
    print("\n".join(rows(pairs, 5, lambda p: "{0x%x,0x%x,0x%x}" % (p + (0,))[:3])))
    print("};\n\nconst uint16_t wg_normal_joins[WG_NORMAL_JOINS] = {")
    print("\n".join(rows(joins, 20, str)))
    seconds = sorted({pairs[i][2] for i in joins if not ucd.combining(chr(pairs[i][2]))})
    print("};\n\nconst uint32_t wg_normal_seconds[WG_NORMAL_SECONDS] = {")
    print("\n".join(rows(seconds, 12, hex)))
    print("};")
    print(f"{len(ranges)} classes, {len(pairs)} pairs, {len(joins)} joins, {len(seconds)} seconds: normal_form.h", file=sys.stderr)
    normalisers()


def runs_of(mapping):
    """Pairs of characters as runs [first, last, to, step]: each step-th character becomes the one as far behind `to`."""
    runs = []
    for cp in sorted(mapping):
        if runs:
            first, last, to, step = runs[-1]
            gap = cp - last
            alone = last == first
            free = gap == 1 or (gap == 2 and cp - 1 not in mapping)
            if free and mapping[cp] - cp == to - first and (gap == step or alone):
                runs[-1] = [first, cp, to, gap]
                continue
        runs.append([cp, cp, mapping[cp], 1])
    return runs


def normalisers():
    """Compatibility decompositions, lower case, and marks that are no marks in Unicode 9.0."""
    single, whole, chars, strings = {}, {}, [], []
    for cp in range(0x110000):
        c = chr(cp)
        if cp in LATER_COMPATIBILITY or 0xD800 <= cp < 0xE000:
            continue
        full, canonical = ucd.normalize("NFKD", c), ucd.normalize("NFD", c)
        if full == canonical:
            continue
        whole[cp] = [ord(x) for x in full]
        if len(full) == 1:
            single[cp] = ord(full)
    lower = {cp: ord(chr(cp).lower()) for cp in range(0x110000) if len(chr(cp).lower()) == 1 and chr(cp).lower() != chr(cp)}
    lower.update(LATER_LOWER)
    single, lower = [r for r in runs_of(single) if r[1] - r[0] >= 3], runs_of(lower)
    for first, last, _, step in single:
        for cp in range(first, last + 1, step):
            del whole[cp]
    for cp, to in sorted(whole.items(), key=lambda x: -len(x[1])):  # the longest first: others may be parts of them
        at = next((i for i in range(len(chars) - len(to) + 1) if chars[i:i + len(to)] == to), len(chars))
        chars += to if at == len(chars) else []
        strings.append((cp, at, len(to)))
    strings.sort()
    assert max(chars) < 0x10000 and len(chars) < 0x10000
    show = lambda r: "{ 0x%x, 0x%x, 0x%x, %d }" % tuple(r)
    print("\nconst wg_normal_run wg_normal_compatible[WG_NORMAL_COMPATIBLE] = {")
    print("\n".join(rows(single, 4, show)))
    print("};\n\nconst wg_normal_string wg_normal_strings[WG_NORMAL_STRINGS] = {")
    print("\n".join(rows(strings, 7, lambda s: "{0x%x,%d,%d}" % s)))
    print("};\n\nconst uint16_t wg_normal_chars[WG_NORMAL_CHARS] = {")
    print("\n".join(row.replace(", ", ",") for row in rows(chars, 20, hex)))
    print("};\n\nconst wg_normal_run wg_normal_lower[WG_NORMAL_LOWER] = {")
    print("\n".join(rows(lower, 4, show)))
    print("};\n\nconst uint32_t wg_normal_other_marks[WG_NORMAL_OTHER_MARKS][2] = {")
    print("\n".join(rows(LATER_MARKS, 8, lambda r: "{ 0x%x, 0x%x }" % r)))
    print("};")
    print(f"{len(single)} compatible, {len(strings)} strings, {len(chars)} chars, {len(lower)} lower, {len(LATER_MARKS)} other marks",
          file=sys.stderr)


# wg_grapheme_class of unicode.h: the first pattern that a character matches
GRAPHEMES = [("CR", r"\r"), ("LF", r"\n"), ("CONTROL", r"\p{GCB=Control}"), ("ZWNJ", "\u200c"), ("PREPEND", r"\p{GCB=Prepend}"),
             ("LINKER", r"\p{InCB=Linker}"),
             ("ZWJ", r"\p{GCB=ZWJ}"), ("EXTEND", r"\p{GCB=Extend}"), ("SPACING", r"\p{GCB=SpacingMark}"),
             ("CONSONANT", r"\p{InCB=Consonant}"), ("PICTURE", r"\p{Extended_Pictographic}"),
             ("REGION", r"\p{GCB=RI}"), ("L", r"\p{GCB=L}"), ("V", r"\p{GCB=V}"), ("T", r"\p{GCB=T}")]


def graphemes():
    import regex

    patterns = [(name, regex.compile(p)) for name, p in GRAPHEMES]
    ranges = []
    for cp in range(0x110000):
        if 0xD800 <= cp < 0xE000 or cp in LATER_GRAPHEMES:
            continue
        of = next((name for name, p in patterns if p.match(chr(cp))), "")
        if not of:
            continue
        if ranges and ranges[-1][1] == cp - 1 and ranges[-1][2] == of:
            ranges[-1][1] = cp
        else:
            ranges.append([cp, cp, of])
    head("Classes\n * of grapheme clusters.", "unicode.h")
    print("const wg_grapheme_range wg_grapheme_ranges[WG_GRAPHEME_RANGES] = {")
    print("\n".join(rows(ranges, 3, lambda r: "{ 0x%x, 0x%x, WG_GRAPHEME_%s }" % tuple(r))))
    print("};")
    print(f"{len(ranges)} ranges: WG_GRAPHEME_RANGES in unicode.h", file=sys.stderr)


{"categories": categories, "normal": normal, "graphemes": graphemes}[sys.argv[1]]()
