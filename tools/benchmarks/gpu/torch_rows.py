"""PyTorch's counterparts of the rows of rows.h: the same data, the same work, PyTorch at its best.

A counterpart is a function of the row's shape that returns (run, outputs). `run()` queues one repetition. `outputs()` is a list of
numbers of the first one, as the row's own. Optimizers are the fused ones; attention takes PyTorch's choice of backend.
"""

import math
import time

import torch
import torch.nn.functional as F
import torch.utils.checkpoint

GPU = torch.device("cuda:0") if torch.cuda.is_available() else torch.device("cpu")


def set_up():
    """Settings of the peer, said in the report."""
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def described():
    text = "PyTorch %s, CUDA %s" % (torch.__version__, torch.version.cuda)
    if torch.cuda.is_available():
        text += ", %s, compute capability %d.%d" % ((torch.cuda.get_device_name(0),) + torch.cuda.get_device_capability(0))
    kinds = [k for k in ("flash", "mem_efficient", "cudnn", "math") if getattr(torch.backends.cuda, k + "_sdp_enabled", bool)()]
    return text + ", attention backends: " + " ".join(kinds)


# ---- data: rows_data.h ----------------------------------------------------------------------------


def wrapped(x):
    x &= (1 << 64) - 1
    return x - (1 << 64) if x >> 63 else x


def filled(sizes, dtype, scale, seed):
    """fill_row_data(), 64-bit arithmetic modulo 2^64 in signed numbers, in pieces that take little memory."""
    n = math.prod(sizes)
    out = torch.empty(n, dtype=torch.float32, device=GPU)
    for start in range(0, n, 1 << 24):
        i = torch.arange(start, min(n, start + (1 << 24)), dtype=torch.int64, device=GPU)
        h = (i + 1) * wrapped(0x9E3779B97F4A7C15) + wrapped(seed * 0xBF58476D1CE4E5B9)
        h = h ^ ((h >> 31) & ((1 << 33) - 1))
        h = h * wrapped(0x94D049BB133111EB)
        unit = ((h >> 40) & 0xFFFFFF).double() * 2.0**-23 - 1
        out[start : start + len(i)] = (unit * scale).float()
    return out.view(sizes).to(dtype)


def classes(n, k):
    return torch.arange(n, dtype=torch.int64, device=GPU) * 7 % k


def some_of(t):
    flat = t.detach().reshape(-1)
    step = max(1, flat.numel() // 256)
    return flat[::step][:256].double().cpu().tolist()


# ---- timing ---------------------------------------------------------------------------------------


def synchronize():
    if GPU.type == "cuda":
        torch.cuda.synchronize()


def peak_of(run):
    """The most bytes that tensors hold during a repetition. The processor's are not counted."""
    if GPU.type != "cuda":
        run()
        return 1.0
    torch.cuda.reset_peak_memory_stats()
    run()
    synchronize()
    return float(torch.cuda.max_memory_allocated())


def seconds_of(row, run, times):
    """As timing.cc: events around the repetitions, or the host's clock around bursts. Of a memory row: bytes."""
    synchronize()
    if row["memory"]:
        return peak_of(run)
    if row["host"]:
        total, done = 0.0, 0
        while done < times:
            burst = min(256, times - done)
            start = time.perf_counter()
            for _ in range(burst):
                run()
            total += time.perf_counter() - start
            synchronize()
            done += burst
        return total / times
    if GPU.type != "cuda":
        start = time.perf_counter()
        for _ in range(times):
            run()
        return (time.perf_counter() - start) / times
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(times):
        run()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e-3 / times


# ---- rows -----------------------------------------------------------------------------------------

BF16, F32 = torch.bfloat16, torch.float32


def quiet(compute):
    def run():
        with torch.inference_mode():
            return compute()

    return run, lambda: some_of(run())


def backward_of(y, inputs, grads):
    def run():
        return torch.autograd.grad(y, inputs, grads, retain_graph=True)

    return run, lambda: some_of(run()[0])


def limit_copy(s):
    a = filled([s["bytes"] // 4], F32, 1, 1)
    b = torch.empty_like(a)
    return (lambda: b.copy_(a)), (lambda: some_of(a))


def limit_product(s):
    a, b = filled([s["n"], s["n"]], BF16, 1, 1), filled([s["n"], s["n"]], BF16, 1, 2)
    return quiet(lambda: a.mm(b))


def host_add(s):
    a, b = filled([16], F32, 1, 1), filled([16], F32, 1, 2)
    return quiet(lambda: a + b)


def norm_data(s, grad):
    sizes = [s["rows"], s["columns"]]
    data = [filled(z, BF16, 1, i + 1) for i, z in enumerate([sizes, sizes, sizes[1:], sizes[1:]])]
    return [t.requires_grad_(grad) for t in data], sizes


def layer_norm_forward(s):
    (x, _, w, b), sizes = norm_data(s, False)
    return quiet(lambda: F.layer_norm(x, sizes[1:], w, b))


def residual_forward(s):
    (x, r, w, b), sizes = norm_data(s, False)
    return quiet(lambda: F.layer_norm(x + r, sizes[1:], w, b))


def layer_norm_backward(s):
    (x, _, w, b), sizes = norm_data(s, True)
    return backward_of([F.layer_norm(x, sizes[1:], w, b)], [x, w, b], [filled(sizes, BF16, 1, 5)])


def image_norm(s, grad):
    sizes = [s["n"], s["c"], s["h"], s["w"]]
    data = [filled(z, BF16, 1, i + 1) for i, z in enumerate([sizes, sizes[1:2], sizes[1:2]])]
    return [t.requires_grad_(grad) for t in data], sizes


def group_norm_forward(s):
    (x, w, b), _ = image_norm(s, False)
    return quiet(lambda: F.group_norm(x, 32, w, b))


def group_norm_backward(s):
    (x, w, b), sizes = image_norm(s, True)
    return backward_of([F.group_norm(x, 32, w, b)], [x, w, b], [filled(sizes, BF16, 1, 4)])


def residual_backward(s):
    (x, r, w, b), sizes = norm_data(s, True)
    total = x + r
    y = F.layer_norm(total, sizes[1:], w, b)
    return backward_of([y, total], [x, r, w, b], [filled(sizes, BF16, 1, 5), filled(sizes, BF16, 1, 6)])


def softmax_forward(s):
    x = filled([s["rows"], s["columns"]], BF16, 4, 1)
    return quiet(lambda: x.softmax(-1))


def softmax_backward(s):
    x = filled([s["rows"], s["columns"]], BF16, 4, 1).requires_grad_()
    return backward_of([x.softmax(-1)], [x], [filled([s["rows"], s["columns"]], BF16, 1, 5)])


def sum_rows(s):
    x = filled([s["rows"], s["columns"]], F32, 1, 1)
    return quiet(lambda: x.sum(-1))


def cross_entropy(s):
    x, t = filled([s["rows"], s["columns"]], BF16, 4, 1).requires_grad_(), classes(s["rows"], s["columns"])

    def run():
        return torch.autograd.grad(F.cross_entropy(x, t), x)[0]

    return run, lambda: some_of(run())


def gelu_forward(s):
    x = filled([s["n"]], BF16, 2, 1)
    return quiet(lambda: F.gelu(x))


def add(s):
    a, b = filled([s["n"]], F32, 1, 1), filled([s["n"]], F32, 1, 2)
    return quiet(lambda: a + b)


def gpt2_sizes(tiny):
    c, vocabulary, length = (8, 24, 16) if tiny else (768, 50304, 1024)
    layer = [[c], [c], [3 * c, c], [3 * c], [c, c], [c], [c], [c], [4 * c, c], [4 * c], [c, 4 * c], [c]]
    return [[vocabulary, c], [length, c]] + 12 * layer + [[c], [c]]


def gpt2_parameters(s, grad, dtype=F32):
    out = []
    for k, sizes in enumerate(gpt2_sizes(s["tiny"])):
        p = filled(sizes, dtype, 0.02, 100 + k)
        if grad:
            p.requires_grad_()
            p.grad = filled(sizes, dtype, 0.01, 1101 + k)
        out.append(p)
    return out


def adamw(s):
    p = gpt2_parameters(s, True)
    step = torch.optim.AdamW(p, lr=1e-3, weight_decay=0.1, fused=True).step
    return step, lambda: (step(), some_of(p[2]))[1]


def masters_step(parameters, **options):
    """PyTorch's optimizers keep no masters: a fused one of float32 copies, with casts of all gradients and back."""
    masters = [p.detach().float().requires_grad_() for p in parameters]
    adam = torch.optim.AdamW(masters, fused=True, **options)

    def step():
        for m in masters:
            m.grad = m.grad if m.grad is not None else torch.empty_like(m)
        torch._foreach_copy_([m.grad for m in masters], [p.grad for p in parameters])
        adam.step()
        torch._foreach_copy_([p.detach() for p in parameters], [m.detach() for m in masters])

    return step


def adamw_masters(s):
    p = gpt2_parameters(s, True, BF16)
    step = masters_step(p, lr=1e-3, weight_decay=0.1)
    return step, lambda: (step(), some_of(p[2]))[1]


def clip_grads(s):
    p = gpt2_parameters(s, True)

    def run():
        norm = torch.nn.utils.get_total_norm([t.grad for t in p], foreach=True)
        torch.nn.utils.clip_grads_with_norm_(p, 1e-3, norm, foreach=True)

    return run, lambda: (run(), some_of(p[2].grad))[1]


def reduce_add(s):
    x = [filled([s["elements"]], F32, 1, k + 1) for k in range(4)]
    out = torch.empty_like(x[0])

    def run():
        torch.add(x[0], x[1], out=out)
        out.add_(x[2])
        out.add_(x[3])

    return run, lambda: (run(), some_of(out))[1]


def broadcast(s):
    p = gpt2_parameters(s, False)

    def run():
        return [[t.clone() for t in p] for _ in range(3)]

    return run, lambda: some_of(run()[2][2])


def linear_turns(s, grad):
    m, k, n = s["m"], s["k"], s["n"]
    sets = 2 if m < 1000 else 1 + (128 << 20) // (2 * (m * k + m * n))
    turns = []
    for i in range(sets):
        data = [filled([m, k], BF16, 1, 10 * i + 1), filled([n, k], BF16, 0.05, 10 * i + 2), filled([n], BF16, 0.1, 10 * i + 3)]
        turns.append([t.requires_grad_(grad) for t in data])
    return turns


def in_turn(count):
    k = 0
    while True:
        yield k % count
        k += 1


def linear_forward(s):
    turns = linear_turns(s, False)
    at = in_turn(len(turns))

    def compute(i):
        with torch.inference_mode():
            y = F.linear(*turns[i])
            return F.gelu(y, approximate="tanh") if s["gelu"] else y

    return (lambda: compute(next(at))), (lambda: some_of(compute(0)))


def linear_backward(s):
    turns = linear_turns(s, True)
    y = [F.linear(*t) for t in turns]
    gy = [filled([s["m"], s["n"]], BF16, 1, 10 * i + 4) for i in range(len(turns))]
    at = in_turn(len(turns))

    def compute(i):
        return torch.autograd.grad([y[i]], turns[i], [gy[i]], retain_graph=True)

    return (lambda: compute(next(at))), (lambda: sum((some_of(g) for g in compute(0)), []))


def mlp_of(s, grad):
    m, k, n = s["m"], s["k"], s["n"]
    sizes = [([m, k], 1), ([n, k], 0.05), ([n], 0.1), ([k, n], 0.05), ([k], 0.1)]
    data = [filled(z, BF16, scale, i + 1).requires_grad_(grad) for i, (z, scale) in enumerate(sizes)]
    return data, lambda: F.linear(F.gelu(F.linear(*data[:3]), approximate="tanh"), *data[3:])


def mlp_forward(s):
    return quiet(mlp_of(s, False)[1])


def mlp_backward(s):
    data, forward = mlp_of(s, True)
    y, gy = forward(), filled([s["m"], s["k"]], BF16, 1, 6)

    def run():
        return torch.autograd.grad([y], data, [gy], retain_graph=True)

    return run, lambda: some_of(run()[1])


def convolution_operands(s, grad):
    """Channels last, as PyTorch's own advice is."""
    sizes = [s["images"], s["in"], s["size"], s["size"]], [s["out"], s["in"], 3, 3], [s["out"]]
    x, w, b = (filled(n, torch.float32, scale, i + 1) for i, (n, scale) in enumerate(zip(sizes, (1, 0.05, 0.1))))
    x, w = (t.to(memory_format=torch.channels_last) for t in (x, w))
    return [t.requires_grad_(grad) for t in (x, w, b)]


def convolution_forward(s):
    x, w, b = convolution_operands(s, False)
    return quiet(lambda: F.conv2d(x, w, b, padding=1))


def convolution_backward(s):
    operands = convolution_operands(s, True)
    y = F.conv2d(*operands, padding=1)
    gy = filled([s["images"], s["out"], s["size"], s["size"]], torch.float32, 1, 4).to(memory_format=torch.channels_last)

    def compute():
        return torch.autograd.grad([y], operands, [gy], retain_graph=True)

    return compute, (lambda: sum((some_of(g) for g in compute()), []))


def attention_forward(s):
    q, k, v = attention_parts(s, False)[0]
    return quiet(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True))


def attention_backward(s):
    parts, shape = attention_parts(s, True)
    y = F.scaled_dot_product_attention(*parts, is_causal=True)
    gy = filled(shape, BF16, 1, 5).transpose(1, 2)

    def run():
        return torch.autograd.grad([y], parts, [gy], retain_graph=True)

    return run, lambda: some_of(run()[0].contiguous())


def attention_parts(s, grad):
    shape = [s["batch"], s["length"], s["heads"], s["width"]]
    packed = filled([shape[0], shape[1], 3] + shape[2:], BF16, 1, 1).requires_grad_(grad)
    return [packed.select(2, i).transpose(1, 2) for i in range(3)], shape


class Weights:
    def __init__(self, dtype=F32):
        self.all, self.dtype = [], dtype

    def __call__(self, sizes, scale):
        self.all.append(filled(sizes, self.dtype, scale, 500 + len(self.all)).requires_grad_())
        return self.all[-1]


def step_of(parameters, optimizer, loss):
    def run():
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return run, lambda: (run(), sum((some_of(p) for p in parameters), []))[1]


def mnist_step(s):
    w, h = Weights(), s["hidden"]
    sizes = [([h, 784], 0.05), ([h], 0.1), ([h, h], 0.05), ([h], 0.1), ([10, h], 0.05), ([10], 0.1)]
    w1, b1, w2, b2, w3, b3 = [w(*z) for z in sizes]
    x, y = filled([s["batch"], 784], F32, 1, 1), classes(s["batch"], 10)

    def loss():
        z = F.relu(F.linear(F.relu(F.linear(x, w1, b1)), w2, b2))
        return F.cross_entropy(F.linear(z, w3, b3), y)

    return step_of(w.all, torch.optim.SGD(w.all, lr=1e-3, fused=GPU.type == "cuda"), loss)


def tiny_gpt_step(s):
    w, c, length, batch, heads = Weights(), s["c"], s["length"], s["batch"], s["heads"]
    symbols, places = w([65, c], 0.02), w([length, c], 0.02)
    blocks = []
    for _ in range(s["layers"]):
        sizes = [([c], 1), ([3 * c, c], 0.02), ([c, c], 0.02), ([c], 1), ([4 * c, c], 0.02), ([c, 4 * c], 0.02)]
        blocks.append([w(*z) for z in sizes])
    gain = w([c], 1)
    text = classes(batch * length, 65).view(batch, length)
    target = classes(batch * length + 1, 65)[1:].clone()

    def loss():
        x = F.embedding(text, symbols) + places
        for gain1, packed, joined, gain2, wide, narrow in blocks:
            qkv = F.linear(F.layer_norm(x, [c], gain1), packed).view(batch, length, 3, heads, c // heads)
            q, k, v = [qkv.select(2, i).transpose(1, 2) for i in range(3)]
            seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + F.linear(seen.transpose(1, 2).reshape(batch, length, c), joined)
            x = x + F.linear(F.gelu(F.linear(F.layer_norm(x, [c], gain2), wide)), narrow)
        return F.cross_entropy(F.linear(F.layer_norm(x, [c], gain), symbols).view(-1, 65), target)

    return step_of(w.all, torch.optim.AdamW(w.all, lr=1e-3, fused=True), loss)


def gpt2_step(s, compiled=False, deterministic=False, recomputed=False):
    w, c, length, batch, heads = Weights(BF16), s["c"], s["length"], s["batch"], s["heads"]
    symbols, places = w([s["symbols"], c], 0.02), w([length, c], 0.02)
    sizes = [([c], 1), ([c], 0.1), ([3 * c, c], 0.02), ([3 * c], 0.1), ([c, c], 0.02), ([c], 0.1)]
    sizes += [([c], 1), ([c], 0.1), ([4 * c, c], 0.02), ([4 * c], 0.1), ([c, 4 * c], 0.02), ([c], 0.1)]
    blocks = [[w(*z) for z in sizes] for _ in range(s["layers"])]
    gain, shift = w([c], 1), w([c], 0.1)
    text = classes(batch * length, s["symbols"]).view(batch, length)
    target = classes(batch * length + 1, s["symbols"])[1:].clone()

    def block(x, gain1, shift1, packed, packed_bias, joined, joined_bias, gain2, shift2, wide, wide_bias, narrow, narrow_bias):
        normal = F.layer_norm(x, [c], gain1, shift1)
        qkv = F.linear(normal, packed, packed_bias).view(batch, length, 3, heads, c // heads)
        q, k, v = [qkv.select(2, i).transpose(1, 2) for i in range(3)]
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + F.linear(seen.transpose(1, 2).reshape(batch, length, c), joined, joined_bias)
        h = F.gelu(F.linear(F.layer_norm(x, [c], gain2, shift2), wide, wide_bias), approximate="tanh")
        return x + F.linear(h, narrow, narrow_bias)

    def loss():
        x = F.embedding(text, symbols) + places
        for b in blocks:
            x = torch.utils.checkpoint.checkpoint(block, x, *b, use_reentrant=False) if recomputed else block(x, *b)
        logits = F.linear(F.layer_norm(x, [c], gain, shift), symbols)
        return F.cross_entropy(logits.view(-1, s["symbols"]), target)

    forward = torch.compile(loss) if compiled and GPU.type == "cuda" else loss
    step = masters_step(w.all, lr=1e-3, weight_decay=0.1)

    def run():
        for p in w.all:
            p.grad = None
        torch.use_deterministic_algorithms(deterministic)
        forward().backward()
        step()
        torch.use_deterministic_algorithms(False)

    return run, lambda: (run(), sum((some_of(p) for p in w.all), []))[1]


# By the part of the name that says what is done; sizes come with the shape.
TWINS = {
    "limit.copy": limit_copy,
    "limit.product": limit_product,
    "op.host.add": host_add,
    "layer_norm.forward": layer_norm_forward,
    "residual_layer_norm.forward": residual_forward,
    "layer_norm.backward": layer_norm_backward,
    "residual_layer_norm.backward": residual_backward,
    "group_norm.forward": group_norm_forward,
    "group_norm.backward": group_norm_backward,
    "softmax.forward": softmax_forward,
    "softmax.backward": softmax_backward,
    "sum.rows": sum_rows,
    "cross_entropy.consuming": cross_entropy,
    "gelu.forward": gelu_forward,
    "add": add,
    "adamw.fused": adamw,
    "adamw.masters": adamw_masters,
    "clip_grads": clip_grads,
    "reduce_add.4": reduce_add,
    "broadcast_coalesced.4": broadcast,
    "linear.forward": linear_forward,
    "linear.gelu.forward": linear_forward,
    "linear.backward": linear_backward,
    "mlp.forward": mlp_forward,
    "mlp.backward": mlp_backward,
    "conv2d.forward": convolution_forward,
    "conv2d.implicit": convolution_forward,
    "conv2d.backward": convolution_backward,
    "attention.forward": attention_forward,
    "attention.backward": attention_backward,
    "attention.mma": attention_forward,
    "attention.wgmma": attention_forward,
    "mnist.step": mnist_step,
    "tinygpt.step": tiny_gpt_step,
    "gpt2.step": gpt2_step,
    "gpt2.step.captured": lambda s: gpt2_step(s, compiled=True),
    "gpt2.step.deterministic": lambda s: gpt2_step(s, deterministic=True),
    "gpt2.step.recomputed": lambda s: gpt2_step(s, recomputed=True),
    "gpt2.step.memory": gpt2_step,
    "gpt2.step.memory.recomputed": lambda s: gpt2_step(s, recomputed=True),
}


def twin(name):
    """The counterpart of this row, or None."""
    if name in TWINS:
        return TWINS[name]
    return TWINS.get(name.rpartition(".")[0])


def repetitions(row, run, tiny):
    run()
    once = max(seconds_of(row, run, 1), 1e-7)
    return min(max(int((1e-4 if tiny else 2e-2) / once), 1), 4 if tiny else 20000)
