"""What kernels do, counted in their machine code: for check_ptx.py and budgets.py.

It reads a .cubin, an ELF file with one section for each kernel, without other tools of the toolkit. An instruction of sm_70 to
sm_90 has 16 bytes. Its lowest nine bits are the operation, and the next three say where operands come from. (NVIDIA does not
document this. The numbers below were compared with what nvdisasm prints for all of these kernels.)

The fast path of a loop is one turn of it: of all paths from its first block back to that block it has the most 16-byte accesses
to global memory. Of those it has the most special functions (MUFU: exponentials, reciprocals), then the most arithmetic, then the
fewest instructions. So it leaves out what serves rows that are not aligned, ends of rows and rare values. A loop inside counts as one turn. The fast path
of a kernel is that of its outermost loop with the most accesses, or of the whole kernel if it has no loop.
"""

import collections
import struct

import ptx_loops

OPERATIONS = {
    "LDG": 0x181, "LD": 0x180, "STG": 0x186, "ST": 0x185, "LDS": 0x184, "STS": 0x188, "LDSM": 0x03b, "SHFL": 0x189, "BAR": 0x11d,
    "FADD": 0x021, "FMUL": 0x020, "FFMA": 0x023, "FMNMX": 0x009, "MUFU": 0x108, "DADD": 0x029, "DMUL": 0x028, "DFMA": 0x02b,
    "F2F": 0x110, "F2I": 0x105, "I2F": 0x106, "F2FP": 0x03e, "HADD2": 0x030, "HMMA": 0x03c, "HGMMA": 0x0f0,
    "BRA": 0x147, "EXIT": 0x14d, "RET": 0x150, "CALL": 0x144, "NOP": 0x118, "BRX": 0x149,
}  # fmt: skip
NAMES = {number: name for name, number in OPERATIONS.items()}
# Those between floats of 16 bits and others are HADD2.F32 and F2FP. (bfloat16 becomes float32 by moves and shifts.)
ARITHMETIC = ("FADD", "FMUL", "FFMA", "FMNMX", "DADD", "DMUL", "DFMA", "HMMA", "HGMMA", "F2FP")
CONVERSIONS = ("F2F", "F2I", "I2F", "F2FP", "HADD2")

Instruction = collections.namedtuple("Instruction", "name always target wide")
# path: a Counter of the fast path with "all", "wide" and names; loop: of the innermost
# loop with the most products (FFMA, HMMA, HGMMA, DFMA).
Counts = collections.namedtuple("Counts", "instructions path loop")


def decode(code):
    """The Instructions of a section, by their addresses divided by 16."""
    found = []
    for at in range(0, len(code), 16):
        low, high = struct.unpack_from("<QQ", code, at)
        name = NAMES.get(low & 0x1FF, "")
        target = None
        if name == "BRA":
            words = (low >> 16 & 0xFF) | low >> 34 << 8 | (high & 0x3FFFF) << 38
            target = at // 16 + 1 + (words - (1 << 56) if words >> 55 else words) // 4
        # Predicate 7 without negation is true. Of a jump there is another predicate, in bits 87 to 90.
        always = low >> 12 & 0xF == 7 and (name != "BRA" or high >> 23 & 0xF == 7)
        wide = name in ("LDG", "STG") and high >> 9 & 7 == 6
        found.append(Instruction(name, always, target, wide))
    return found


def blocks_of(code):
    """As ptx_loops.blocks_of: [[instruction...], {successor...}], without those that only fill the section."""
    starts = {0} | {i.target for i in code if i.target is not None}
    starts |= {at + 1 for at, i in enumerate(code) if i.name in ("BRA", "EXIT", "RET")}
    order = sorted(at for at in starts if at < len(code))
    number = {at: i for i, at in enumerate(order)}
    blocks = []
    for at, end in zip(order, order[1:] + [len(code)]):
        inside = code[at:end]
        last, follow = inside[-1], set()
        if last.name == "BRX":
            raise RuntimeError("a jump by a table, of which sass.py knows nothing")
        if last.target is not None and last.target in number:
            follow.add(number[last.target])
        if end < len(code) and not (last.name in ("BRA", "EXIT", "RET") and last.always):
            follow.add(number[end])
        blocks.append([[i for i in inside if i.name != "NOP"], follow])
    return blocks


def counter(instructions):
    counts = collections.Counter(i.name for i in instructions if i.name)
    counts["all"] = len(instructions)
    counts["wide"] = sum(i.wide for i in instructions)
    counts["conversions"] = sum(counts[name] for name in CONVERSIONS)
    counts["arithmetic"] = sum(counts[name] for name in ARITHMETIC)
    return counts


def fast_path(first, inside, blocks, loops):
    """A Counter of one turn of the loop `inside` from `first`, or of a kernel."""
    inner = {f: body for f, body in loops.items() if f != first and body < inside}
    outermost = {f: body for f, body in inner.items() if not any(f != g and f in inner[g] for g in inner)}
    of_loop = {block: f for f, body in outermost.items() for block in body}
    cost = {block: counter(blocks[block][0]) for block in inside if block not in of_loop}
    cost.update({f: fast_path(f, body, blocks, loops) for f, body in outermost.items()})
    follow = collections.defaultdict(set)
    ends = set()
    for block in inside:
        for target in blocks[block][1]:
            here, there = of_loop.get(block, block), of_loop.get(target, target)
            if target == first or target not in inside:
                ends.add(here)
            elif here != there:
                follow[here].add(there)
        if not blocks[block][1]:
            ends.add(of_loop.get(block, block))
    worth = lambda counts: (counts["wide"], counts["MUFU"], counts["arithmetic"], -counts["all"])
    best = {}

    def visit(block):
        if block not in best:
            best[block] = None  # a cycle that is no natural loop ends here
            rest = [one for one in map(visit, sorted(follow[block])) if one is not None]
            if block in ends:
                rest.append(collections.Counter())
            if rest:
                best[block] = cost[block] + max(rest, key=worth)
        return best[block]

    return visit(of_loop.get(first, first)) or cost[first]


def count(code):
    """The Counts of a kernel's section."""
    blocks = blocks_of(decode(code))
    loops = {first: body for first, body in ptx_loops.loops_of(blocks).items()}
    outermost = [f for f in loops if not any(f != g and f in loops[g] for g in loops)]
    worth = lambda counts: (counts["wide"], counts["all"])
    paths = [fast_path(f, loops[f], blocks, loops) for f in outermost]
    whole = fast_path(0, set(range(len(blocks))), blocks, loops)
    innermost = [body for f, body in loops.items() if not any(f != g and g in body for g in loops)]
    products = lambda c: (c["FFMA"] + c["DFMA"] + c["HMMA"] + c["HGMMA"], c["all"])
    turns = [counter([i for block in body for i in blocks[block][0]]) for body in innermost]
    return Counts(sum(len(inside) for inside, _ in blocks), max(paths, key=worth, default=whole),
                  max(turns, key=products, default=collections.Counter()))


def kernels(path):
    """{name: Counts} of a .cubin."""
    data = path.read_bytes()
    table, = struct.unpack_from("<Q", data, 0x28)
    size, number, names = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", data, table + size * i) for i in range(number)]
    texts = headers[names][4]
    found = {}
    for name_at, _, _, _, offset, length in headers:
        end = data.index(b"\0", texts + name_at)
        name = data[texts + name_at:end].decode()
        if name.startswith(".text."):
            found[name[len(".text."):]] = count(data[offset:offset + length])
    return found
