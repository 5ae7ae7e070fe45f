"""Two gdb commands for kernels on emulated GPUs (x86-64):

  (gdb) source tools/cuda/threads_gdb.py
  (gdb) cuda threads      where the CUDA threads of the running block stand
  (gdb) cuda thread 5     the calls of waiting thread 5, by its number in the block

The program needs debug information (bazel build -c dbg) and one kernel at a time in the debugged thread:
RAMET_EMULATED_STREAMS=eager RAMET_EMULATED_WORKERS=1.
"""

import gdb

# ThreadState of tools/emulated_gpu/executor/worker.h.
STATES = ["not started", "ready", "running", "at __syncthreads()", "in a warp primitive", "at a barrier of copies", "done"]
# What ramet_emulated_switch() leaves on a stack, lowest address first.
SAVED = ["r15", "r14", "r13", "r12", "rbx", "rbp", "rip"]


def worker():
    """The Worker of the selected host thread."""
    owner = gdb.parse_and_eval("'ramet::emulated::(anonymous namespace)::own_worker'")
    # A unique_ptr is a pointer; the names of its members are the library's own affair, and not unique.
    pointer = owner.address.cast(gdb.lookup_type("ramet::emulated::Worker").pointer().pointer()).dereference()
    if int(pointer) == 0:
        raise gdb.GdbError("this host thread has not run a kernel")
    return pointer.dereference()


def threads():
    block = worker()
    all_threads = block["threads_"]["_M_elems"]
    return [all_threads[i] for i in range(int(block["count_"]))]


def list_threads():
    groups = {}
    for rank, thread in enumerate(threads()):
        state = int(thread["state"])
        where = ""
        if STATES[state].startswith(("at", "in")):
            where = "%s:%d" % (thread["file"].string().split("/")[-1], int(thread["line"]))
        groups.setdefault((state, where), []).append(rank)
    for (state, where), ranks in sorted(groups.items()):
        print("%5d thread(s) %-20s %-24s first %d, last %d" % (len(ranks), STATES[state], where, ranks[0], ranks[-1]))


def show_calls(rank):
    thread = threads()[rank]
    if not STATES[int(thread["state"])].startswith(("at", "in", "ready")) or int(thread["fiber"]) == 0:
        raise gdb.GdbError("thread %d is %s" % (rank, STATES[int(thread["state"])]))
    context = thread["fiber"].dereference()["context"]
    stack = int(context["stack_pointer_"])
    memory = gdb.selected_inferior().read_memory(stack, 8 * len(SAVED)).tobytes()
    registers = {name: int.from_bytes(memory[8 * i : 8 * i + 8], "little") for i, name in enumerate(SAVED)}
    registers["rsp"] = stack + 8 * len(SAVED)
    # Registers can only be written in the innermost frame; they are put back before anything runs.
    gdb.execute("frame 0", to_string=True)
    before = {name: int(gdb.parse_and_eval("(unsigned long)$" + name)) for name in registers}
    try:
        for name, value in registers.items():
            gdb.execute("set $%s = %d" % (name, value), to_string=True)
        gdb.execute("backtrace")
    finally:
        gdb.execute("frame 0", to_string=True)
        for name in ["rsp"] + SAVED:
            gdb.execute("set $%s = %d" % (name, before[name]), to_string=True)


class Cuda(gdb.Command):
    """cuda threads | cuda thread N: where the CUDA threads of the running block stand."""

    def __init__(self):
        super().__init__("cuda", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        words = argument.split()
        if words == ["threads"]:
            list_threads()
        elif len(words) == 2 and words[0] == "thread" and words[1].isdigit():
            show_calls(int(words[1]))
        else:
            raise gdb.GdbError(self.__doc__)


Cuda()
