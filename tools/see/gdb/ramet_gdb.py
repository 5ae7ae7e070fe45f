"""How gdb prints tensors, graph nodes, modules and storages of Ramet (x86-64, libstdc++):

  (gdb) source <prefix>/share/ramet/gdb/ramet_gdb.py
  (gdb) print x                 float32[2, 3] cpu {1, 2, 3, 4, 5, 6}, requires_grad, grad_fn MulBackward0
  (gdb) print net               a module, its parameters and buffers by name, its children
  (gdb) print x.storage()       is a call: of a storage that is there, its bytes, version and last writer
  (gdb) ramet print EXPRESSION  the same of a pointer, also where the library has no debug information
  (gdb) ramet graph EXPRESSION  the graph behind a tensor or a node, one line a node

Nothing is called in the program, so a core will do. What is read is memory at known places (LAYOUT): the library itself is compiled
without debug information, and a class with virtual functions has its description there alone.
"""

import re
import struct

import gdb
import gdb.printing

# Offsets in bytes; tests/tools/see/gdb compares them with the compiler's.
LAYOUT = {
    "ramet::TensorImpl": {
        "refs": 0, "dtype": 4, "device": 5, "rank": 6, "flags": 7, "data": 8, "numel": 16, "storage": 24, "node": 32, "slot": 40,
        "geometry": 56, "sizes_": 64, "strides_": 128,
    },
    "ramet::StorageImpl": {"refs": 0, "own_version": 4, "pending": 8, "data": 16, "bytes": 24, "device": 30, "external": 31, "writer": 32, "version_of": 48},
    "ramet::autograd::Node": {"refs": 8, "flags": 12, "device": 13, "edge_count": 14, "slot_count": 16, "op": 24, "counter": 32, "inbox": 48},
    "ramet::autograd::AccumulateGrad": {"grad": 64},
    "ramet::nn::Module": {"parameters_": 24, "buffers_": 104, "children_": 184, "is_training_": 328, "is_replica_": 329},
    "ramet::OrderedDict<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >, ramet::Tensor>": {"items_": 0},
}  # fmt: skip
TENSOR, STORAGE = LAYOUT["ramet::TensorImpl"], LAYOUT["ramet::StorageImpl"]
NODE, GRAD, MODULE = LAYOUT["ramet::autograd::Node"], LAYOUT["ramet::autograd::AccumulateGrad"], LAYOUT["ramet::nn::Module"]
NODE_SIZE, EDGE_SIZE, STRING_SIZE = 64, 16, 32
SINK, RELEASED = 1, 4  # Node::flags
REQUIRES_GRAD, VIEW_WITHOUT_GRAD = 2, 32  # TensorImpl::flags
INLINE_RANK, MAX_RANK = 8, 64
# ScalarType in its order: name, struct's letter ("b": bfloat16), bytes.
DTYPES = (
    ("bool", "?", 1), ("uint8", "B", 1), ("int8", "b", 1), ("int16", "h", 2), ("int32", "i", 4), ("int64", "q", 8),
    ("uint16", "H", 2), ("uint32", "I", 4),
    ("float16", "e", 2), ("bfloat16", "bfloat16", 2), ("float32", "f", 4), ("float64", "d", 8), ("undefined", "", 0),
)  # fmt: skip
SHOWN = 8  # elements of a tensor


# ---- memory ---------------------------------------------------------------------------------------


def read(address, size):
    return gdb.selected_inferior().read_memory(address, size).tobytes()


def unpack(letter, address):
    return struct.unpack("<" + letter, read(address, struct.calcsize("<" + letter)))[0]


def u8(address):
    return unpack("B", address)


def u16(address):
    return unpack("H", address)


def u32(address):
    return unpack("I", address)


def u64(address):
    return unpack("Q", address)


def c_string(address, limit=200):
    """Up to `limit` characters; a core may lack the page behind them."""
    text = b""
    while address and len(text) < limit:
        byte = read(address + len(text), 1)
        if byte == b"\0":
            break
        text += byte
    return text.decode(errors="replace")


def std_string(address):
    return read(u64(address), min(u64(address + 8), 1000)).decode(errors="replace")


def elements_of_vector(address, size):
    """Addresses of a std::vector's elements."""
    begin, end = u64(address), u64(address + 8)
    if end < begin or (end - begin) % size or end - begin > size * 1000000:
        raise gdb.MemoryError("no vector")
    return range(begin, end, size)


def class_of(address):
    """The name of an object's class, by its virtual table: "ramet::nn::LinearImpl"."""
    info = u64(u64(address) - 8)
    mangled = c_string(u64(info + 8), 4000).lstrip("*")
    said = gdb.execute("demangle -- _ZTS" + mangled, to_string=True).strip()
    return said.split("typeinfo name for ", 1)[-1]


# ---- what is said of each ---------------------------------------------------------------------------


def device_name(ordinal):
    return ("cpu" if ordinal < 8 else "cuda") + ("" if ordinal == 0 else ":%d" % (ordinal % 8))


def values(tensor, dtype, sizes, count):
    """The first elements in row-major order, as text."""
    letter, size = DTYPES[dtype][1:]
    rank = len(sizes)
    strides = tensor + TENSOR["strides_"] if rank <= INLINE_RANK else u64(tensor + TENSOR["geometry"]) + 8 * rank
    strides = [unpack("q", strides + 8 * d) for d in range(rank)]
    data = u64(tensor + TENSOR["data"])
    texts, index = [], [0] * rank
    for _ in range(min(count, SHOWN)):
        at = data + size * sum(i * s for i, s in zip(index, strides))
        if letter == "bfloat16":
            value = struct.unpack("<f", b"\0\0" + read(at, 2))[0]
        else:
            value = unpack(letter, at)
        texts.append("%.6g" % value if isinstance(value, float) else str(value).lower())
        for d in reversed(range(rank)):
            index[d] += 1
            if index[d] < sizes[d]:
                break
            index[d] = 0
    return "{" + ", ".join(texts + (["..."] if count > SHOWN else [])) + "}"


def tensor_text(tensor, history=True):
    if tensor == 0:
        return "undefined"
    dtype, rank, flags = (u8(tensor + TENSOR[n]) for n in ("dtype", "rank", "flags"))
    if dtype >= len(DTYPES) or rank > MAX_RANK:
        return "no tensor"  # garbage: not made yet, or gone
    extents = tensor + TENSOR["sizes_"] if rank <= INLINE_RANK else u64(tensor + TENSOR["geometry"])
    sizes = [unpack("q", extents + 8 * d) for d in range(rank)]
    device = u8(tensor + TENSOR["device"])
    text = "%s%s %s " % (DTYPES[dtype][0], sizes, device_name(device))
    try:
        text += values(tensor, dtype, sizes, unpack("q", tensor + TENSOR["numel"]))
        storage = u64(tensor + TENSOR["storage"])
        if u64(storage + STORAGE["pending"]):
            text += ", perhaps being written"
    except gdb.MemoryError:
        text += "{out of gdb's reach}"
    node = u64(tensor + TENSOR["node"])
    if flags & REQUIRES_GRAD:
        text += ", requires_grad"
    if history and node:
        node_flags = u8(node + NODE["flags"])
        if not node_flags & SINK:
            text += ", grad_fn " + c_string(u64(node + NODE["op"]))
        elif flags & REQUIRES_GRAD:
            grad = u64(node + GRAD["grad"])
            text += ", grad " + tensor_text(grad, False) if grad else ", no grad yet"
    elif history and flags & REQUIRES_GRAD:
        text += ", no grad yet"
    return text


def edges_of(node):
    """Addresses of the nodes that its edges lead to, 0 for none; None where they lie elsewhere."""
    count = u16(node + NODE["edge_count"])
    if count == 0:
        return []
    name = class_of(node)
    if name.startswith("ramet::autograd::LambdaNode<"):
        first = node + NODE_SIZE
    elif name == "ramet::autograd::ListNode":
        first = u64(node + NODE_SIZE)
    else:
        return None
    return [u64(first + EDGE_SIZE * i) for i in range(count)]


def node_name(node):
    name = c_string(u64(node + NODE["op"]))
    return name if name else class_of(node)


def node_text(node):
    if node == 0:
        return "no node"
    flags = u8(node + NODE["flags"])
    text = "%s on %s" % (node_name(node), device_name(u8(node + NODE["device"])))
    if flags & SINK:
        grad = u64(node + GRAD["grad"])
        return text + (", grad " + tensor_text(grad, False) if grad else ", no grad yet")
    text += ", sequence %d" % u64(node + NODE["counter"])
    if u16(node + NODE["slot_count"]) > 1:
        text += ", %d results" % u16(node + NODE["slot_count"])
    if flags & RELEASED:
        text += ", saved tensors were freed"
    inbox = u64(node + NODE["inbox"])
    if inbox:
        text += ", has received " + tensor_text(inbox, False)
    return text


def storage_text(storage):
    if storage == 0:
        return "no storage"
    counted = u64(storage + STORAGE["version_of"]) or storage
    return "%d bytes on %s at 0x%x, version %d, last written by %s%s" % (
        int.from_bytes(read(storage + STORAGE["bytes"], 6), "little"), device_name(u8(storage + STORAGE["device"])),
        u64(storage + STORAGE["data"]), u32(counted + STORAGE["own_version"]), c_string(u64(counted + STORAGE["writer"])),
        ", perhaps being written" if u64(storage + STORAGE["pending"]) else "",
    )  # fmt: skip


def module_text(module):
    if module == 0:
        return "no module"
    name = class_of(module)
    return name + (", training" if u8(module + MODULE["is_training_"]) else ", evaluating") + (", replica" if u8(module + MODULE["is_replica_"]) else "")


def module_rows(module, prefix=""):
    """(name, text) of all that it holds, depth first."""
    for member in ("parameters_", "buffers_"):
        for item in elements_of_vector(module + MODULE[member], STRING_SIZE + 8):
            yield prefix + std_string(item), tensor_text(u64(item + STRING_SIZE))
    for item in elements_of_vector(module + MODULE["children_"], STRING_SIZE + 16):
        name, child = prefix + std_string(item), u64(item + STRING_SIZE)
        yield name, module_text(child)
        if child:
            yield from module_rows(child, name + ".")


def graph_lines(root):
    """As GraphPicture::text(): every edge leads to a later line."""
    order, seen, stack, closed = [], {root}, [(root, None)], set()
    while stack:
        node, rest = stack.pop()
        if rest is None:
            rest = [e for e in edges_of(node) or [] if e]
        if rest:
            following, rest = rest[0], rest[1:]
            stack.append((node, rest))
            if following not in seen:
                seen.add(following)
                stack.append((following, None))
        elif node not in closed:
            closed.add(node)
            order.append(node)
    order.reverse()
    number = {node: i for i, node in enumerate(order)}
    for i, node in enumerate(order):
        edges = edges_of(node)
        leads = " -> (not known here)" if edges is None else ""
        if edges and any(edges):
            leads = " -> " + ", ".join("#%d" % number[e] for e in edges if e)
        yield "#%d %s%s" % (i, node_text(node), leads)


# ---- printers ---------------------------------------------------------------------------------------


def member(value, *names):
    """value.a.b as a number: of a pointer member, found in base classes too."""
    for name in names:
        value = value[name]
    return int(value)


class Text:
    """A printer of one line."""

    def __init__(self, of, address):
        self.of = of
        self.address = address

    def to_string(self):
        try:
            return self.of(self.address())
        except gdb.error as e:  # what it shows is not there yet, or not in the core
            return "<%s>" % e


class WithRows(Text):
    """And a row for each (name, text) of rows(address)."""

    def __init__(self, of, address, rows):
        super().__init__(of, address)
        self.rows = rows

    def children(self):
        try:
            address = self.address()
            if address:
                yield from self.rows(address)
        except gdb.error as e:
            yield "rows", "<%s>" % e


def node_rows(node):
    for i, edge in enumerate(edges_of(node) or []):
        yield "edge %d" % i, node_text(edge)


def base_offset(of, wanted, at=0):
    """Where a base class of this name lies in it, None where it is none."""
    try:
        of = of.strip_typedefs()
        if re.fullmatch(wanted, of.name or ""):
            return at
        for field in of.fields():
            if field.is_base_class:
                found = base_offset(field.type, wanted, at + field.bitpos // 8)
                if found is not None:
                    return found
    except (TypeError, gdb.error):  # no structure
        pass
    return None


def printer_for(kind, address):
    if kind == "tensor":
        return Text(tensor_text, address)
    if kind == "storage":
        return Text(storage_text, address)
    if kind == "node":
        return WithRows(node_text, address, node_rows)
    return WithRows(module_text, address, module_rows)


# Class: what it is, and how one gets from a value of it to the address.
BY_NAME = {
    "ramet::Tensor": ("tensor", lambda v: member(v, "p_")),
    "ramet::TensorBase": ("tensor", lambda v: member(v, "p_")),
    "ramet::TensorImpl": ("tensor", lambda v: int(v.address)),
    "ramet::Storage": ("storage", lambda v: u64(member(v, "bytes_", "p_") + TENSOR["storage"]) if member(v, "bytes_", "p_") else 0),
    "ramet::StorageImpl": ("storage", lambda v: int(v.address)),
    "ramet::autograd::NodePtr": ("node", lambda v: member(v, "node_")),
}
BY_BASE = {
    "ramet::autograd::Node": "node",
    "ramet::nn::Module": "module",
}


def lookup(value):
    try:
        of = value.type.strip_typedefs().unqualified()
        if of.code not in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION) or of.name is None:
            return None
        if of.name in BY_NAME:
            kind, address = BY_NAME[of.name]
            return printer_for(kind, lambda: address(value))
        if base_offset(of, "ramet::nn::ModuleHolder<.*>") is not None and value.address is not None:
            # Module is the first base of a module.
            return printer_for("module", lambda: u64(int(value.address)))
        for base, kind in BY_BASE.items():
            offset = base_offset(of, re.escape(base))
            if offset is not None and value.address is not None:
                return printer_for(kind, lambda: int(value.address) + offset)
    except gdb.error:
        pass
    return None


class Printers:
    """For `info pretty-printer` and `disable pretty-printer global ramet`."""

    name = "ramet"
    enabled = True
    subprinters = None

    def __call__(self, value):
        return lookup(value)


class Ramet(gdb.Command):
    """ramet print EXPRESSION | ramet graph EXPRESSION: of a tensor, node, module or storage, or a pointer to one."""

    def __init__(self):
        super().__init__("ramet", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        action, _, expression = argument.partition(" ")
        if action not in ("print", "graph") or not expression.strip():
            raise gdb.GdbError(self.__doc__)
        value = gdb.parse_and_eval(expression)
        if value.type.strip_typedefs().code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
            value = value.referenced_value()
        of = value.type.strip_typedefs()
        if of.code == gdb.TYPE_CODE_PTR:
            target = of.target().strip_typedefs().unqualified()
            kind = next((k for base, k in BY_BASE.items() if base_offset(target, re.escape(base)) is not None), None)
            printer = printer_for(kind, lambda: int(value)) if kind and int(value) else lookup(value.dereference()) if int(value) else None
        else:
            printer = lookup(value)
        if printer is None:
            raise gdb.GdbError("neither tensor, node, module nor storage: %s of type %s" % (expression, value.type))
        if action == "print":
            print(printer.to_string())
            if isinstance(printer, WithRows):
                for name, text in printer.children():
                    print("  %s = %s" % (name, text))
            return
        root = printer.address()
        if printer.of is tensor_text:
            root = u64(root + TENSOR["node"]) if root else 0
        elif printer.of is not node_text:
            raise gdb.GdbError("ramet graph is of a tensor or a node")
        for line in graph_lines(root) if root else ["no graph: it has no history"]:
            print(line)


def check_layout():
    """Compares LAYOUT with a program whose debug information has these classes; for the test."""
    wrong = 0
    for name, offsets in LAYOUT.items():
        for member_name, offset in offsets.items():
            of = gdb.lookup_type(name)
            found = next((f for f in of.fields() if f.name == member_name), None)
            if found is None:  # in a base class
                base = next(f for f in of.fields() if f.is_base_class)
                found = next((f for f in base.type.fields() if f.name == member_name), None)
            is_at = found.bitpos // 8 if found is not None else None
            if is_at != offset:
                wrong += 1
                print("WRONG: %s::%s is at %s, expected %d" % (name, member_name, is_at, offset))
    sizes = {"ramet::autograd::Node": NODE_SIZE, "ramet::autograd::RawEdge": EDGE_SIZE, "std::string": STRING_SIZE}
    for name, size in sizes.items():
        if gdb.lookup_type(name).sizeof != size:
            wrong += 1
            print("WRONG: %s has %d bytes, expected %d" % (name, gdb.lookup_type(name).sizeof, size))
    enumerators = gdb.lookup_type("ramet::ScalarType").fields()
    if len(enumerators) != len(DTYPES):
        wrong += 1
        print("WRONG: %d dtypes, expected %d" % (len(enumerators), len(DTYPES)))
    print("layout: %d wrong" % wrong)


gdb.printing.register_pretty_printer(None, Printers(), replace=True)
Ramet()
