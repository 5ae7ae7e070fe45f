"""What the loops of kernels do, read from PTX: for check_ptx.py.

A loop is a natural one: the blocks from which a jump back is reached without leaving the block it goes to. Its turns are
tasks where it lies in no other, has loops in it and a barrier or a shuffle: then the threads of a block or warp take them
together, and what is done once for a task hardly counts. All other loops are inner ones: of a reduction, of a tile, and those
whose turns are elements, one for each thread. A call does what the function does, and all that it calls.
"""

import collections
import re

ENTRY = re.compile(r"^(?:\.visible |\.weak )?\.entry (\w+)\(.*?^\{\n(.*?)^\}", flags=re.S | re.M)
FUNCTION = re.compile(r"^(?:\.visible |\.weak )?\.func\b[^;{]*?(\w+)\([^;{]*\n\{\n(.*?)^\}", flags=re.S | re.M)
CALL = re.compile(r"\bcall\b[^;]*;")
CALLED = re.compile(r"(?:@!?%p\d+\s+)?call(?:\.uni)?\s+(?:\([^)]*\)\s*,\s*)?([\w%$.]+)")
DIVIDES = re.compile(r"(?:div|rem)\.[su](?:16|32|64)\b")  # of integers: div.rn.f32 and the like are not meant
SHARED = re.compile(r"(?:bar|barrier|shfl)\b")
FMA = re.compile(r"fma\.")

# divisions, inner: integer divisions and remainders in the kernel, and in its inner loops. hot, fmas: instructions of its
# hottest loop, the one with most multiply-adds of those that hold none, else the longest such; and its multiply-adds.
Loops = collections.namedtuple("Loops", "instructions divisions inner hot fmas")


def blocks_of(body):
    """The basic blocks in the order of the text: [[instruction...], {successor...}]."""
    blocks, start = [[[], set()]], {}
    for line in CALL.sub(lambda call: " ".join(call[0].split()), body).split("\n"):
        line = line.strip()
        label = re.match(r"(\$L\w+):$", line)
        if label:
            if blocks[-1][0]:
                blocks.append([[], set()])
            start[label[1]] = len(blocks) - 1
        elif line and line[0] not in "./{})(" and not line.startswith("$"):
            blocks[-1][0].append(line)
            if re.match(r"(?:@!?%p\d+\s+)?(?:bra|brx|ret|exit|trap)\b", line):
                blocks.append([[], set()])
    for i, (code, follow) in enumerate(blocks):
        last = code[-1] if code else ""
        if "brx" in last:
            raise RuntimeError("a jump by a table, of which ptx_loops.py knows nothing: " + last)
        target = re.search(r"\bbra(?:\.uni)?\s+(\$L\w+)", last)
        if target:
            follow.add(start[target[1]])
        if (last.startswith("@") or not re.match(r"(?:bra|ret|exit|trap)\b", last)) and i + 1 < len(blocks):
            follow.add(i + 1)
    return blocks


def dominators_of(blocks):
    """Each block's nearest dominator (Cooper, Harvey and Kennedy 2001), blocks that nothing reaches left out."""
    order, seen, stack = [], {0}, [(0, iter(blocks[0][1]))]
    while stack:
        block, rest = stack[-1]
        following = next((b for b in rest if b not in seen), None)
        if following is None:
            order.append(block)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(blocks[following][1])))
    number = {block: i for i, block in enumerate(order)}
    before = collections.defaultdict(list)
    for block in order:
        for following in blocks[block][1]:
            before[following].append(block)
    nearest, changed = {0: 0}, True
    while changed:
        changed = False
        for block in reversed(order[:-1]):
            new = None
            for other in before[block]:
                if other not in nearest:
                    continue
                if new is None:
                    new = other
                while new != other:
                    while number[new] < number[other]:
                        new = nearest[new]
                    while number[other] < number[new]:
                        other = nearest[other]
            if nearest.get(block) != new:
                nearest[block], changed = new, True
    return nearest, before


def loops_of(blocks):
    """{first block: all blocks} of each natural loop."""
    nearest, before = dominators_of(blocks)

    def dominates(first, block):
        while block != first and block != 0:
            block = nearest[block]
        return block == first

    loops = collections.defaultdict(set)
    for block in nearest:
        for first in blocks[block][1]:
            if not dominates(first, block):
                continue
            loop, stack = loops[first], [block]
            loop.add(first)
            while stack:
                one = stack.pop()
                if one not in loop:
                    loop.add(one)
                    stack += before[one]
    return dict(loops)


def divisions_of(line, functions, above=()):
    """Those of an instruction; of a call, those of the function: {name: text}."""
    if re.match(r"(?:@!?%p\d+\s+)?" + DIVIDES.pattern, line):
        return 1
    called = CALLED.match(line)
    if not called or called[1] in above:
        return 0
    if called[1].startswith("%"):
        raise RuntimeError("a call by address, of which ptx_loops.py knows nothing: " + line)
    return sum(divisions_of(one, functions, (*above, called[1]))
               for code, _ in blocks_of(functions.get(called[1], "")) for one in code)


def count(body, functions):
    """The Loops of a kernel's text."""
    blocks = blocks_of(body)
    loops = loops_of(blocks)
    counted = lambda pattern, some: sum(bool(re.match(r"(?:@!?%p\d+\s+)?" + pattern.pattern, line))
                                        for b in some for line in blocks[b][0])
    divisions = lambda some: sum(divisions_of(line, functions) for b in some for line in blocks[b][0])
    length = lambda some: sum(len(blocks[b][0]) for b in some)
    inner, innermost = set(), []
    for first, loop in loops.items():
        holds = any(other != first and other in loop for other in loops)
        lies_in = any(other != first and first in loops[other] for other in loops)
        if not holds:
            innermost.append(loop)
        if lies_in or not holds or not counted(SHARED, loop):
            inner |= loop
    hottest = max(innermost, key=lambda loop: (counted(FMA, loop), length(loop)), default=())
    everything = range(len(blocks))
    return Loops(length(everything), divisions(everything), divisions(inner), length(hottest),
                 counted(FMA, hottest))


def kernels(ptx):
    """{name: Loops} of a file."""
    functions = dict(FUNCTION.findall(ptx))
    return {name: count(body, functions) for name, body in ENTRY.findall(ptx)}
