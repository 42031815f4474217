#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the compiler made of the kernels, held to caps and to the budgets of tests/gpu/budgets.txt.

usage: resources.py caps DIR
       resources.py budgets DIR [--write | --list]      exit 77 where nothing was compiled or no disassembler is found

DIR is what resources.sh --into leaves behind: `ptxas` (the output of ptxas -v), *.ptx, *.cubin. Three readers, one a format:

  ptxas   every kernel of every generation: registers, stack, spills, static shared memory; all within CAPS.
  PTX     kernels that overlap (9.0 and newer) neither read nor write global memory before griddepcontrol.wait.
  SASS    the machine code for sm_90a (nvdisasm -c): the figures of budgets.txt. A kernel without a line of its own is held to
          the line `*`. Of sm_80 the compare-and-swap loops alone. nvdisasm comes with the toolkit, or with pip install
          nvidia-cuda-nvdisasm.

Figures of a kernel in SASS:
  cas        instructions that retry until nobody came between (compare-and-swap): each of them is a loop that many threads make
             longer. ATOMS.CAST.SPIN is what a 64-bit addition to shared memory becomes.
  least      how many `of` a turn of the hot loop must hold (loads that are under way together, mma that overlap).
  hot loop   of an instruction (column `of`, a prefix of its name): among the innermost natural loops that hold it, the one that
             holds it most often. Blocks that the compiler has moved out of line count where they belong.
  turn       instructions of one turn of it, on the shortest way that passes every `of`, for each `of`: what is done for each
             piece of work, beside copies and changes of rows that not every turn does.
  size       instructions of it in all, these included: more than fit beside others in a multiprocessor's cache are a mistake.
  chain      the longest run of mma instructions in the hot loop in which each adds to the result of the one before.
Registers come from ptxas; a budget is a multiple of 8, as a card allocates them.

--write prints the table with the figures as they are (turn and size 4 % above); --list prints figures and budgets side by side. A kernel
that multiplies on tensor cores must have a line with its loop, and a line must have a kernel: neither can be forgotten."""
import fnmatch
import glob
import os
import re
import shutil
import subprocess
import sys

CAPS = {"registers": 168,  # three blocks of 128 threads fit the 64 K registers of an SM
        "shared": 49152,   # static: what every generation gives without asking
        "stack": 0, "spills": 0}
EARLY = {"fused_stripes", "fused_fragments", "matmul_stripes", "matmul_fragments"}
ORDINARY = {"go_on"}       # begins when those before have ended: a node that the runtime adds to a graph
CAS = re.compile(r"ATOMS?G?\.(.*\.)?(CAS|CAST)\b")
SLACK = 1.04               # of what --write allows a loop: another release of the compiler moves some instructions


def kernel_name(mangled):
    """_Z14matmul_stripesILi14ELi8EEv10wg_product -> matmul_stripes<14,8>, _Z10move_slotsI5uint4Ev... -> move_slots<uint4>"""
    m = re.match(r"_Z(\d+)(.*)", mangled)
    if not m:
        return mangled
    n = int(m[1])
    name, rest = m[2][:n], m[2][n:]
    numbers, type_ = re.match(r"I((?:L[a-z]\d+E)+)E", rest), re.match(r"I(?:\d+)?(\w+?)Ev", rest)
    if numbers:
        return name + "<" + ",".join(re.findall(r"L[a-z](\d+)E", numbers[1])) + ">"
    return f"{name}<{type_[1]}>" if type_ else name


def base(name):
    return name.split("<")[0]


# ---- ptxas -v

def read_ptxas(path):
    """{(generation, kernel): {registers, shared, stack, spills}}"""
    seen, at = {}, None
    for line in open(path):
        if m := re.search(r"Compiling entry function '(\S+)' for '(\S+)'", line):
            at = seen[m[2], kernel_name(m[1])] = {"registers": 0, "shared": 0, "stack": 0, "spills": 0}
        elif at and (m := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line)):
            at["stack"] += int(m[1])  # of the kernel, and behind it of the functions that it calls
            at["spills"] += int(m[2]) + int(m[3])
        elif at and (m := re.search(r"Used (\d+) registers", line)):
            at["registers"] = max(at["registers"], int(m[1]))
            if m := re.search(r"(\d+) bytes smem", line):
                at["shared"] = int(m[1])
    return seen


def check_caps(seen):
    bad = []
    for (generation, kernel), figures in sorted(seen.items()):
        bad += [f"{generation} {kernel}: {what} {figures[what]}, at most {cap}" for what, cap in CAPS.items()
                if figures[what] > cap]
    most = max(f["registers"] for f in seen.values())
    print(f"{len(seen)} kernels for {' '.join(sorted({g for g, _ in seen}))}: at most {most} registers; over a cap: {len(bad)} "
          f"({CAPS['registers']} registers, {CAPS['shared']} bytes shared, no stack, no spills)")
    return bad


# ---- PTX

MEMORY = re.compile(r"\s*(@!?%p\d+ )?(ld|st|ldu|atom|red|cp|call|prefetch)\b[.a-z]*")
OWN = re.compile(r"\b(ld|st)\.(volatile\.)?(param|shared|const|local)")
WEIGHTS = re.compile(r"\s(ld\.global|cp\.async|prefetch)")


def check_waits(paths):
    """The lines of kernels that touch global memory before they wait; EARLY ones may read there: weights."""
    bad, kernels = [], 0
    for path in paths:
        name, waited = None, False
        for line in open(path):
            if ".entry" in line and (m := re.search(r"\.entry\s+([\w$]+)", line)):
                name, waited, listed = kernel_name(m[1]), False, False
                if base(name) in ORDINARY:
                    name = None
                else:
                    kernels += 1
            elif line.startswith("}"):
                if name and not waited:
                    bad.append(f"{name}: never waits for the kernels before it")
                name = None
            elif not name or waited or listed:
                continue
            elif "griddepcontrol.wait" in line:
                waited = True
            elif MEMORY.match(line) and not OWN.search(line) and not (base(name) in EARLY and WEIGHTS.search(line)):
                bad.append(f"{name}: before it waits for the kernels before it: {line.strip()}")
                listed = True
    print(f"{kernels} kernels that overlap: {len(bad)} touch memory too early")
    return bad if kernels else ["no PTX seen"]


# ---- SASS

class Instruction:
    __slots__ = ("name", "operands", "guarded", "target")

    def __init__(self, text):
        m = re.match(r"(@!?U?P\w+ )?\s*([A-Z][\w.]*)\s*(.*?)\s*;?\s*$", text)
        self.guarded, self.name, self.operands = bool(m[1]), m[2], m[3]
        target = re.search(r"`\(([.$][^)]+)\)", self.operands) if self.name.startswith(("BRA", "CALL")) else None
        self.target = target[1] if target else None


def read_sass(lines):
    """Yields (kernel, instructions, {label: index}) of each kernel."""
    name, code, labels = None, [], {}
    for line in lines:
        if line.startswith("//----"):
            if name and code:
                yield name, code, labels
            m = re.search(r"\.text\.(\S+)", line)
            name, code, labels = kernel_name(m[1]) if m else None, [], {}
        elif name and (m := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(.*)", line)):
            instruction = Instruction(m[1])
            if instruction.name != "NOP":
                code.append(instruction)
        elif name and (m := re.match(r"([.$]\S+):$", line.strip())):
            labels[m[1]] = len(code)
    if name and code:
        yield name, code, labels


def blocks_of(code, labels):
    """Basic blocks as (begin, end), and the successors of each. A call leads to its function and past itself, a return
    nowhere: so the loops of a function are found, and are part of no loop that calls it."""
    leaders = {0} | {i for i in labels.values() if i < len(code)}
    ends = ("BRA", "EXIT", "RET", "BRX", "JMP", "JMX", "BPT", "CALL")
    leaders |= {i + 1 for i, c in enumerate(code) if c.name.split(".")[0] in ends and i + 1 < len(code)}
    begins = sorted(leaders)
    number = {begin: i for i, begin in enumerate(begins)}
    blocks = list(zip(begins, begins[1:] + [len(code)]))
    follow = []
    for begin, end in blocks:
        last = code[end - 1]
        after = []
        if last.target and labels.get(last.target, len(code)) < len(code):
            after.append(number[labels[last.target]])
        stops = last.name.split(".")[0] in ends[:-1]
        if end < len(code) and (not stops or last.guarded or (last.target and "P" in last.operands.split("`")[0])):
            after.append(number[end])
        follow.append(after)
    return blocks, follow


def natural_loops(follow):
    """{header: blocks} for each header that an edge from a block it dominates leads back to; blocks in an order in which each
    comes behind those that lead to it, but for edges that lead back."""
    order, state = [], {}
    stack = [(0, iter(follow[0]))]
    state[0] = True
    while stack:
        at, rest = stack[-1]
        for to in rest:
            if to not in state:
                state[to] = True
                stack.append((to, iter(follow[to])))
                break
        else:
            order.append(at)
            stack.pop()
    order.reverse()
    rank = {b: i for i, b in enumerate(order)}
    before = {b: [] for b in order}
    for b in order:
        for to in follow[b]:
            before[to].append(b)
    above = {0: 0}  # immediate dominators (Cooper, Harvey and Kennedy 2001)
    changed = True
    while changed:
        changed = False
        for b in order[1:]:
            known = [p for p in before[b] if p in above]
            new = known[0]
            for p in known[1:]:
                while p != new:
                    while rank[p] > rank[new]:
                        p = above[p]
                    while rank[new] > rank[p]:
                        new = above[new]
            if above.get(b) != new:
                above[b], changed = new, True
    loops = {}
    for b in order:
        for header in follow[b]:
            up = b
            while rank[up] > rank[header]:
                up = above[up]
            if up != header:
                continue
            body, todo = loops.setdefault(header, {header}), [b]
            while todo:
                x = todo.pop()
                if x not in body:
                    body.add(x)
                    todo += before[x]
    return loops, rank


def is_mma(name):
    return name.startswith(("HMMA", "IMMA"))


def longest_chain(code):
    """Of mma instructions, each of which adds to what the one before it gave. Operands: d, a, b, c."""
    length, longest = {}, 0
    for c in code:
        operands = [x.split(".")[0].strip() for x in c.operands.split(",")]
        if is_mma(c.name):
            length[operands[0]] = length.get(operands[3], 0) + 1
            longest = max(longest, length[operands[0]])
        else:
            length.pop(operands[0], None)
    return longest


class Kernel:
    def __init__(self, code, labels):
        self.code = code
        self.blocks, self.follow = blocks_of(code, labels)
        self.loops, self.rank = natural_loops(self.follow)
        self.cas = sum(1 for c in code if CAS.match(c.name))
        self.mma = sum(1 for c in code if is_mma(c.name))

    def shortest_turn(self, header, body, held):
        """Instructions on the shortest way through a loop's body that passes the most `of`."""
        best = {header: (-held[header], self.length(header))}
        for b in sorted(body, key=self.rank.get):
            for to in self.follow[b]:
                if b in best and to in body and self.rank[to] > self.rank[b]:
                    way = (best[b][0] - held[to], best[b][1] + self.length(to))
                    best[to] = min(best.get(to, way), way)
        return min(best[b] for b in body if b in best and header in self.follow[b])[1]

    def length(self, block):
        return self.blocks[block][1] - self.blocks[block][0]

    def hot_loop(self, of):
        """{least, turn, size, chain} of the hot loop of `of`; None: no loop holds one."""
        held = [sum(1 for c in self.code[b:e] if c.name.startswith(of)) for b, e in self.blocks]
        loops = {header: body for header, body in self.loops.items() if any(held[b] for b in body)}
        inner = {h: body for h, body in loops.items() if not any(other < body for other in loops.values())}
        if not inner:
            return None
        header, body = max(inner.items(), key=lambda loop: sum(held[b] for b in loop[1]))
        code = [c for b in sorted(body) for c in self.code[self.blocks[b][0]:self.blocks[b][1]]]
        count = sum(held[b] for b in body)
        return {"least": count, "turn": self.shortest_turn(header, body, held) / count, "size": len(code),
                "chain": longest_chain(code)}


LOOP = ("turn", "size", "chain", "least")


def read_budgets(path):
    """[(kernel, {figure: budget}, of)]; of None: no loop is held to anything."""
    rows = []
    for line in open(path):
        words = line.split("#")[0].split()
        if words:
            budget = {"registers": int(words[1]), "cas": int(words[2])}
            if len(words) > 3:
                budget.update(turn=float(words[4]), size=int(words[5]), chain=int(words[6]), least=int(words[7]))
            rows.append((words[0], budget, words[3] if len(words) > 3 else None))
    return rows


def figures_of(kernel, registers, of):
    return {"registers": registers, "cas": kernel.cas, **((kernel.hot_loop(of) if of else None) or {})}


def lines_of(name, rows):
    return [r for r in rows if fnmatch.fnmatchcase(name, r[0]) and r[0] != "*"] or [r for r in rows if r[0] == "*"]


def check_cas(cas, rows):
    """The retrying instructions of the oldest generation: its compiler makes other loops of the same additions."""
    bad = [f"sm_80 {name}: cas: {count}, the budget is {budget['cas']}" for name, count in sorted(cas.items())
           for _, budget, _ in lines_of(name, rows)[:1] if count > budget["cas"]]
    print(f"{len(cas)} kernels in SASS for sm_80: {len(bad)} over their compare-and-swap loops")
    return bad


def check_budgets(kernels, registers, rows, listed):
    """Every kernel against its lines."""
    bad = [f"{pattern}: a line of the budgets without a kernel" for pattern, _, _ in rows
           if not any(fnmatch.fnmatchcase(name, pattern) for name in kernels)]
    for name, kernel in sorted(kernels.items()):
        own = lines_of(name, rows)
        if kernel.mma and not any(of for _, _, of in own):
            bad.append(f"{name}: multiplies on tensor cores and has no budget for its loop")
        for _, budget, of in own:
            f = figures_of(kernel, registers.get(name, 0), of)
            if listed:
                print(f"{name:28} {of or '-':5} " + "  ".join(f"{what} {f[what]:.4g}/{budget[what]:g}" for what in budget
                                                            if what in f))
            if of and "turn" not in f:
                bad.append(f"{name}: no loop with {of}, to which its budget belongs")
                continue
            bad += [f"{name}: {what}{f' of its {of} loop' if what in LOOP else ''}: {f[what]:.4g}, the budget is {most:g}"
                    for what, most in budget.items() if (f[what] < most if what == "least" else f[what] > most)]
    print(f"{len(kernels)} kernels in SASS, {len(rows)} lines of budgets: {len(bad)} over")
    return bad


def write(kernels, registers, rows):
    """The lines of the table, in their order, with the figures as they are."""
    for pattern, budget, of in rows:
        seen = [figures_of(k, registers.get(n, 0), of) for n, k in kernels.items() if fnmatch.fnmatchcase(n, pattern)]
        top = {what: max([f.get(what, 0) for f in seen], default=0) for what in budget}
        if pattern == "*" or not seen:
            top = budget
        line = f"{pattern:28} {(top['registers'] + 7) // 8 * 8:9} {top['cas']:4}"
        print(line + (f"  {of:7} {top['turn'] * SLACK:6.1f} {int(top['size'] * SLACK) + 1:6} {top['chain']:6}"
              f" {min(f.get('least', 0) for f in seen):6}" if of else ""))


def find_disassembler(root):
    """nvdisasm: on the path, beside nvcc, where .ci/run puts it, among the packages of this Python; or None."""
    nvcc = shutil.which("nvcc")
    near = [os.path.dirname(os.path.realpath(nvcc))] if nvcc else []
    near += ["/usr/local/cuda/bin"] + glob.glob(os.path.join(root, "build/nvdisasm/nvidia/*/bin"))
    near += [found for path in sys.path for found in glob.glob(os.path.join(path, "nvidia/*/bin"))]
    return shutil.which("nvdisasm") or next(filter(None, (shutil.which("nvdisasm", path=p) for p in near)), None)


def disassemble(where, generation, disassembler, having=""):
    """The lines of all machine code for a generation in DIR, a file at a time; of files whose PTX has a word."""
    for cubin in sorted(glob.glob(os.path.join(where, f"*_{generation}.cubin"))):
        if having and having not in open(cubin.replace(".cubin", ".ptx")).read():
            continue
        yield subprocess.run([disassembler, "-c", cubin], check=True, capture_output=True, text=True).stdout.splitlines()


def read_kernels(where, disassembler):
    """{kernel: Kernel} of all machine code for sm_90a in DIR."""
    kernels = {}
    for lines in disassemble(where, "90a", disassembler):
        for name, code, labels in read_sass(lines):
            if name in kernels:
                sys.exit(f"{name}: twice in {where}")
            kernels[name] = Kernel(code, labels)
    return kernels


def read_cas(where, disassembler):
    """{kernel: instructions that retry} of all machine code for sm_80 in DIR."""
    cas, name = {}, None
    for lines in disassemble(where, "80", disassembler, "atom"):
        for line in lines:
            if line.startswith("//----"):
                m = re.search(r"\.text\.(\S+)", line)
                name = kernel_name(m[1]) if m else None
                if name:
                    cas[name] = 0
            elif name and "ATOM" in line and (m := re.search(r"ATOMS?G?\.[\w.]+", line)) and CAS.match(m[0]):
                cas[name] += 1
    return cas


def main():
    what, where, mode = sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None
    here = os.path.dirname(os.path.abspath(__file__))
    if what == "budgets" and not os.path.exists(os.path.join(where, "ptxas")):
        print("SKIPPED: nothing compiled (no nvcc): budgets not checked")
        sys.exit(77)
    seen = read_ptxas(os.path.join(where, "ptxas"))
    if not seen:
        sys.exit("no kernel seen")
    if what == "caps":
        bad = check_caps(seen) + check_waits(sorted(glob.glob(os.path.join(where, "*90a*.ptx")) +
                                                    glob.glob(os.path.join(where, "*100*.ptx"))))
    else:
        disassembler = find_disassembler(os.path.join(here, "../.."))
        if not disassembler:
            print("SKIPPED: no nvdisasm: budgets not checked (it comes with the toolkit, or pip install nvidia-cuda-nvdisasm)")
            sys.exit(77)
        kernels = read_kernels(where, disassembler)
        registers = {kernel: f["registers"] for (generation, kernel), f in seen.items() if generation == "sm_90a"}
        rows = read_budgets(os.path.join(here, "budgets.txt"))
        if mode == "--write":
            write(kernels, registers, rows)
            return
        bad = check_budgets(kernels, registers, rows, mode == "--list") + check_cas(read_cas(where, disassembler), rows)
    for line in bad:
        print("over: " + line)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
