"""What the hot kernels may cost: for check_ptx.py, which fails where one costs more.

A row names a kernel by its file and a part of its name, and the elements that a thread has in one turn of its task loop, on the
fast path (sass.py). The numbers are the most that it may have there: registers, bytes of static shared memory, instructions,
special functions (MUFU) and conversions. For products they are those of the innermost loop, with its reads of shared memory and
its multiply-adds (FFMA) or products of tensor cores (HMMA, HGMMA); elements are 0.

They are what nvcc 12 made when the row was written, with 3 % more instructions. Sums of rows have two loops: four packs a turn,
and one pack for what is left. Lower the row of a kernel that got better, and it keeps its gain.
One that got worse for a reason gets a higher row, in the commit that says why.
"""

import collections
import re

Budget = collections.namedtuple("Budget", "file part elements registers shared instructions special conversions reads products")
BUDGETS = [Budget(*row) for row in (
    # file, part of the name, elements; registers, shared; instructions, special, conversions; reads, products
    ("softmax.cu", "forward_kernelINS1_10BfloatBitsELi256ELi1E", 8, 32, 32, 218, 9, 4, 4, 0),
    ("softmax.cu", "forward_kernelINS1_10BfloatBitsELi256ELi4E", 32, 71, 32, 474, 33, 16, 4, 0),
    ("softmax.cu", "forward_kernelINS1_10BfloatBitsELi32ELi1E", 8, 32, 0, 220, 9, 4, 0, 0),
    ("softmax.cu", "forward_kernelINS1_10BfloatBitsELi32ELi4E", 32, 64, 0, 474, 33, 16, 0, 0),
    ("softmax.cu", "forward_kernelINS1_8HalfBitsELi256ELi1E", 8, 40, 32, 220, 9, 12, 4, 0),
    ("softmax.cu", "forward_kernelINS1_8HalfBitsELi256ELi4E", 32, 80, 32, 488, 33, 48, 4, 0),
    ("softmax.cu", "forward_kernelINS1_8HalfBitsELi32ELi1E", 8, 32, 0, 230, 9, 12, 0, 0),
    ("softmax.cu", "forward_kernelINS1_8HalfBitsELi32ELi4E", 32, 80, 0, 485, 33, 48, 0, 0),
    ("softmax.cu", "forward_kernelIfLi256ELi1E", 8, 40, 32, 264, 9, 0, 4, 0),
    ("softmax.cu", "forward_kernelIfLi256ELi4E", 32, 122, 32, 654, 33, 0, 4, 0),
    ("softmax.cu", "forward_kernelIfLi32ELi1E", 8, 40, 0, 270, 9, 0, 0, 0),
    ("softmax.cu", "forward_kernelIfLi32ELi4E", 32, 127, 0, 657, 33, 0, 0, 0),
    ("softmax.cu", "backward_kernelINS1_10BfloatBitsELi256ELi1E", 8, 37, 32, 187, 8, 4, 2, 0),
    ("softmax.cu", "backward_kernelINS1_10BfloatBitsELi256ELi4E", 32, 75, 32, 445, 32, 16, 2, 0),
    ("softmax.cu", "backward_kernelINS1_10BfloatBitsELi32ELi1E", 8, 38, 0, 183, 8, 4, 0, 0),
    ("softmax.cu", "backward_kernelINS1_10BfloatBitsELi32ELi4E", 32, 79, 0, 437, 32, 16, 0, 0),
    ("softmax.cu", "backward_kernelINS1_8HalfBitsELi256ELi1E", 8, 40, 32, 180, 8, 20, 2, 0),
    ("softmax.cu", "backward_kernelINS1_8HalfBitsELi256ELi4E", 32, 79, 32, 405, 32, 80, 2, 0),
    ("softmax.cu", "backward_kernelINS1_8HalfBitsELi32ELi1E", 8, 40, 0, 169, 8, 20, 0, 0),
    ("softmax.cu", "backward_kernelINS1_8HalfBitsELi32ELi4E", 32, 79, 0, 391, 32, 80, 0, 0),
    ("softmax.cu", "backward_kernelIfLi256ELi1E", 8, 42, 32, 214, 8, 0, 2, 0),
    ("softmax.cu", "backward_kernelIfLi256ELi4E", 32, 127, 32, 534, 32, 0, 2, 0),
    ("softmax.cu", "backward_kernelIfLi32ELi1E", 8, 42, 0, 200, 8, 0, 0, 0),
    ("softmax.cu", "backward_kernelIfLi32ELi4E", 32, 126, 0, 530, 32, 0, 0, 0),
    ("layer_norm.cu", "forward_kernelINS1_10BfloatBitsELi256ELi1E", 8, 55, 32, 369, 4, 8, 4, 0),
    ("layer_norm.cu", "forward_kernelINS1_10BfloatBitsELi256ELi4E", 32, 79, 32, 896, 4, 32, 4, 0),
    ("layer_norm.cu", "forward_kernelINS1_10BfloatBitsELi32ELi1E", 8, 56, 0, 380, 4, 8, 0, 0),
    ("layer_norm.cu", "forward_kernelINS1_10BfloatBitsELi32ELi4E", 32, 72, 0, 883, 4, 32, 0, 0),
    ("layer_norm.cu", "forward_kernelINS1_8HalfBitsELi256ELi1E", 8, 55, 32, 335, 4, 48, 4, 0),
    ("layer_norm.cu", "forward_kernelINS1_8HalfBitsELi256ELi4E", 32, 79, 32, 801, 4, 192, 4, 0),
    ("layer_norm.cu", "forward_kernelINS1_8HalfBitsELi32ELi1E", 8, 56, 0, 351, 4, 48, 0, 0),
    ("layer_norm.cu", "forward_kernelINS1_8HalfBitsELi32ELi4E", 32, 72, 0, 794, 4, 192, 0, 0),
    ("layer_norm.cu", "forward_kernelIfLi256ELi1E", 8, 56, 32, 304, 4, 0, 4, 0),
    ("layer_norm.cu", "forward_kernelIfLi256ELi4E", 32, 93, 32, 670, 4, 0, 4, 0),
    ("layer_norm.cu", "forward_kernelIfLi32ELi1E", 8, 56, 0, 326, 4, 0, 0, 0),
    ("layer_norm.cu", "forward_kernelIfLi32ELi4E", 32, 91, 0, 689, 4, 0, 0, 0),
    ("layer_norm.cu", "backward_kernelINS1_10BfloatBitsELi256ELi3E", 24, 145, 32, 1132, 2, 12, 4, 0),
    ("layer_norm.cu", "backward_kernelINS1_10BfloatBitsELi256ELi4E", 32, 177, 32, 1446, 2, 16, 4, 0),
    ("layer_norm.cu", "backward_kernelINS1_10BfloatBitsELi32ELi3E", 24, 122, 16384, 1315, 2, 12, 48, 0),
    ("layer_norm.cu", "backward_kernelINS1_10BfloatBitsELi32ELi4E", 32, 168, 16384, 1627, 2, 16, 64, 0),
    ("layer_norm.cu", "backward_kernelINS1_8HalfBitsELi256ELi3E", 24, 150, 32, 1024, 2, 180, 4, 0),
    ("layer_norm.cu", "backward_kernelINS1_8HalfBitsELi256ELi4E", 32, 185, 32, 1291, 2, 240, 4, 0),
    ("layer_norm.cu", "backward_kernelINS1_8HalfBitsELi32ELi3E", 24, 127, 16384, 1182, 2, 180, 48, 0),
    ("layer_norm.cu", "backward_kernelINS1_8HalfBitsELi32ELi4E", 32, 178, 16384, 1470, 2, 240, 64, 0),
    ("layer_norm.cu", "backward_kernelIfLi256ELi3E", 24, 168, 32, 876, 2, 0, 4, 0),
    ("layer_norm.cu", "backward_kernelIfLi256ELi4E", 32, 212, 32, 1092, 2, 0, 4, 0),
    ("layer_norm.cu", "backward_kernelIfLi32ELi3E", 24, 168, 16384, 1007, 2, 0, 48, 0),
    ("layer_norm.cu", "backward_kernelIfLi32ELi4E", 32, 218, 16384, 1267, 2, 0, 64, 0),
    ("group_norm.cu", "statistics_kernelINS1_10BfloatBitsELi256ELi4E", 32, 63, 32, 348, 4, 0, 4, 0),
    ("group_norm.cu", "statistics_kernelINS1_10BfloatBitsELi32ELi4E", 32, 61, 0, 365, 4, 0, 0, 0),
    ("group_norm.cu", "statistics_kernelINS1_8HalfBitsELi256ELi4E", 32, 63, 32, 326, 4, 32, 4, 0),
    ("group_norm.cu", "statistics_kernelINS1_8HalfBitsELi32ELi4E", 32, 61, 0, 336, 4, 32, 0, 0),
    ("group_norm.cu", "statistics_kernelIfLi256ELi4E", 32, 63, 32, 305, 4, 0, 4, 0),
    ("group_norm.cu", "statistics_kernelIfLi32ELi4E", 32, 62, 0, 318, 4, 0, 0, 0),
    ("reduce_rows.cu", "rows_kernelINS1_10BfloatBitsENS1_4FoldIfEELNS0_8ReduceOpE0ELi256E", 40, 37, 2048, 524, 2, 44, 8, 0),
    ("reduce_rows.cu", "rows_kernelINS1_10BfloatBitsENS1_4FoldIfEELNS0_8ReduceOpE0ELi32E", 40, 32, 0, 363, 1, 42, 0, 0),
    ("reduce_rows.cu", "rows_kernelINS1_8HalfBitsENS1_4FoldIfEELNS0_8ReduceOpE0ELi256E", 40, 37, 2048, 503, 2, 84, 8, 0),
    ("reduce_rows.cu", "rows_kernelINS1_8HalfBitsENS1_4FoldIfEELNS0_8ReduceOpE0ELi32E", 40, 32, 0, 342, 1, 82, 0, 0),
    ("reduce_rows.cu", "rows_kernelIfNS1_4FoldIfEELNS0_8ReduceOpE0ELi256E", 40, 34, 2048, 475, 2, 44, 8, 0),
    ("reduce_rows.cu", "rows_kernelIfNS1_4FoldIfEELNS0_8ReduceOpE0ELi32E", 40, 32, 0, 321, 1, 42, 0, 0),
)]


def measured(row, counts, registers, shared):
    """What a kernel has of each number of a row: {name: number}."""
    of = counts.loop if row.elements == 0 else counts.path
    return {
        "registers": registers, "shared": shared, "instructions": of["all"], "special": of["MUFU"], "conversions": of["conversions"],
        "reads": of["LDS"] + of["LDSM"], "products": of["FFMA"] + of["HMMA"] + of["HGMMA"],
    }  # fmt: skip


UNITS = {"registers": "registers", "shared": "bytes of shared memory", "instructions": "instructions",
         "special": "special functions", "conversions": "conversions", "reads": "reads of shared memory"}  # fmt: skip


def lines_of(row, name, has):
    """A line of the table, and complaints."""
    where = f"{row.file}: {name}"
    complaints = [f"{where} has {has[key]} {what} {'a turn' if key not in ('registers', 'shared') else ''}".rstrip()
                  + f", expected at most {getattr(row, key)} (tools/cuda/budgets.py)"
                  for key, what in UNITS.items() if has[key] > getattr(row, key)]
    # Fewer products for the same reads is the same loss as more reads.
    if has["products"] < row.products:
        complaints.append(f"{where} has {has['products']} products a turn, expected at least {row.products} (tools/cuda/budgets.py)")
    if row.elements:
        rate = f"{has['instructions'] / row.elements:.1f} instructions an element"
    else:
        rate = f"{has['reads'] / max(1, has['products']):.2f} reads of shared memory a product"
    table = (f"  {row.file} {name}: {has['registers']} registers, {has['shared']} B shared, {has['instructions']} instructions, "
             f"{has['special']} special, {has['conversions']} conversions: {rate}")
    return table, complaints


def short(name):
    """A kernel's own name and template arguments, from the mangled one."""
    found = re.search(r"_cu_[0-9a-f]{8}(?:_\d+?)?(\d\d)([a-z]\w*)", name)
    rest = found[2] if found else name
    return re.sub(r"EEv.*", "", rest)


def check(file, counts, report):
    """(lines of the table, complaints) for the kernels of a file, by its machine code and by what ptxas -v says."""
    used = dict(re.findall(r"Function properties for (\w+)\n.*\n.*?(Used \d+ registers.*)", report))
    table, complaints = [], []
    for row in BUDGETS:
        if row.file != file:
            continue
        names = [name for name in counts if row.part in name]
        if not names:
            complaints.append(f"{file}: no kernel named ...{row.part}... (tools/cuda/budgets.py)")
        for name in names:
            text = used.get(name, "")
            registers = int((re.search(r"Used (\d+) registers", text) or [0, 0])[1])
            shared = int((re.search(r"(\d+) bytes smem", text) or [0, 0])[1])
            line, more = lines_of(row, short(name), measured(row, counts[name], registers, shared))
            table.append(line)
            complaints += more
    return table, complaints
