"""What the hot kernels may cost: for check_ptx.py, which fails where one costs more.

A row names a kernel by its file and a part of its name, and the elements that a thread has in one turn of its task loop, on the
fast path (sass.py). The numbers are the most that it may have there: registers, bytes of static shared memory, instructions,
special functions (MUFU) and conversions. For products they are those of the innermost loop, with its reads of shared memory and
its multiply-adds (FFMA) or products of tensor cores (HMMA, HGMMA); elements are 0.

They are what nvcc 12 made when the row was written, with some slack for instructions. A kernel that got better keeps its gain if
somebody lowers its row. One that got worse for a reason gets a higher row, in the commit that says why.
"""

import collections
import re

Budget = collections.namedtuple("Budget", "file part elements registers shared instructions special conversions reads products")
BUDGETS = [Budget(*row) for row in (
    # file, part of the name, elements; registers, shared; instructions, special, conversions; reads, products
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
    found = re.search(r"_cu_[0-9a-f]{8}_\d+?(\d\d)([a-z]\w*)", name)
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
