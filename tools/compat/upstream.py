"""The public names of LibTorch by area, read from its headers (and from its Python package, for what its C++ front end lacks),
without what is no goal of Ramet; and the checked-in list of them (upstream.txt): names only.
"""

import ast
import pathlib
import re
import textwrap

import cxx

LIST = pathlib.Path(__file__).absolute().parent / "upstream.txt"
API = "torch/csrc/api/include/torch/"

# What stands in no list: (kind, why, areas, names). A kind that no name is of fails.
TENSORS = "functions methods out_forms"
NO_GOAL = [
    ("internal", "upstream's own building blocks", "", r"_.*|linalg__.*"),
    ("results last", "`_out` has each of them with the result first", "out_forms", r".*_outf"),
    ("generated out forms", "its generator makes them of functions that no program gives memory", "out_forms", None),
    ("symbolic sizes", "for its compilers", "", r".*_symint(_out)?|(sym_|.*_sym_).*"),
    ("copies for views", "for its compilers: `x.view(...).clone()`", TENSORS, r"(.*_)?copy(_out)?|slice_inverse|lift.*"),
    ("functions for in-place methods", "for its compilers: `fill_`, `uniform_` and so on are methods", "functions out_forms",
     r"embedding_renorm_|(cauchy|embedding_renorm|exponential|fill|geometric|log_normal|random|resize|resize_as|set|uniform|zero|normal_functional"
     r"|rrelu_with_noise\w*)(_out)?"),
    ("the graph's inside", "nodes, metadata and counters of its engine", "autograd",
     r"ChainedViewFunc|CppNode|ErroringViewFunc|ExtractVariables|ViewFunc|AnomalyMetadata|check_variable_result"
     r"|forward_t|hash|optional_variable_list"),
    ("the profiler's callbacks", "`add_observer` tells of every kernel call", "globals",
     r"\w*(RecordFunction|Callback)\w*|IMethod|equal_if_defined"),
    ("derivatives", "its formulas call them; here they are nodes", TENSORS, r".*(_backward|_jvp)(_.*)?"),
    ("parts of other functions", "what a function or module of the front end is made of", TENSORS,
     r"(native|slow|thnn|batch_norm)_\w+|\w+_forward(_out)?|conv_depthwise3d(_out)?|convolution_overrideable|norm_except_dim"
     r"|is_distributed|frobenius_norm(_out)?|nuclear_norm(_out)?|linalg__powsum|im2col(_out)?|col2im(_out)?|grid_sampler_[23]d|noopDelete"
     r"|for_blob|key_set|getIntrusivePtr|weak_use_count|expect_contiguous|suggest_memory_format|unsafe_(chunk|split|split_with_sizes)"
     r"|is_contiguous_or_false|is_uniquely_owned|(set_)?grad_dtype|hash_tensor(_out)?|multilabel_margin_loss_forward|empty_permuted"
     r"|alias|unsafeGetTensorImpl|(un)?flatten_dense_tensors"),
    ("other backends", "there are CPUs and CUDA", "",
     r"\w*(cudnn|mkldnn|miopen|xnnpack|fbgemm|vulkan|metal)\w*|is_(hip|hpu|ipu|lazy|maia|meta|mps|mtia|privateuseone|ve|xla|xpu)"
     r"|is_fake|hip|ve|meta|kMPS|kXPU|kMeta"),
    ("quantised", "no quantised tensors", "",
     r"\w*(quantize|quantized|qparams|q_scale|q_zero|q_per_channel|fake_quant)\w*|int_repr|quantizer|qscheme|dequantize\w*"),
    ("sparse", "no sparse tensors", "",
     r"(?!sparse_$)(\w*sparse\w*|\w*coalesce\w*|(c?col|row|crow|ccol)_indices|indices|values|dense_dim|to_dense"
     r"|[hs]spaddmm|sspaddmm_out|smm|hspmm\w*)|SparseAdam"),
    ("nested", "no nested tensors", "", r"\w*nested\w*|to_padded_tensor\w*"),
    ("second spellings", "the functions of torch::fft and torch::special", "functions out_forms", r"(fft|special)_\w+"),
    ("lazy modules", "sizes are given", "python_modules", r"Lazy\w+"),
    ("base classes", "in C++ a template or `Cloneable`", "python_modules python_optimizers",
     r"Module|Container|RNNBase|RNNCellBase|Optimizer|LRScheduler"),
    ("renamed", "C++ has it under another name, or had it under this one before", "python_modules python_schedules python_utils",
     r"NLLLoss2d|ReduceLROnPlateau|clip_grad_norm|UpsamplingBilinear2d|UpsamplingNearest2d"),
    ("Python's", "needs what Python has: objects that change their class, modules as modules",
     "python_utils python_optimizers python_schedules",
     r"get_\w+_avg_fn|parametriz\w+|stateless|rnn|skip_init|swap_in_optimizer_params_and_state|functional|lr_scheduler|swa_utils"),
]

# Which namespace an area is of, and its names there. Those of C++ are read through the front end's headers.
SPACES = {
    "modules": ("torch::nn", None),
    "options": ("torch::nn", r"\w+Options"),
    "functionals": ("torch::nn::functional", r"(?!\w+FuncOptions)\w+"),
    "functional_options": ("torch::nn::functional", r"\w+FuncOptions"),
    "init": ("torch::nn::init", r"\w+"),
    "utils": ("torch::nn::utils", r"\w+"),
    "rnn": ("torch::nn::utils::rnn", r"\w+"),
    "optimizers": ("torch::optim", r"(?!\w*LR)\w+"),
    "schedules": ("torch::optim", r"\w*LR\w*"),
    "data": ("torch::data", r"\w+"),
    "datasets": ("torch::data::datasets", r"\w+"),
    "samplers": ("torch::data::samplers", r"\w+"),
    "transforms": ("torch::data::transforms", r"\w+"),
    "serialisation": ("torch::serialize", r"\w+"),
    "cuda": ("torch::cuda", r"\w+"),
    "globals": ("torch", r"\w+"),
    "fft": ("torch::fft", r"\w+"),
    "special": ("torch::special", r"(?!\w+_out$)\w+"),
}
# {area: (file of the Python package, of which C++ area it has more)}
PYTHON = {
    "python_modules": (["nn/modules/__init__.py"], "modules"),
    "python_utils": (["nn/utils/__init__.py"], "utils"),
    "python_rnn": (["nn/utils/rnn.py"], "rnn"),
    "python_optimizers": (["optim/__init__.py"], "optimizers"),
    "python_schedules": (["optim/lr_scheduler.py", "optim/swa_utils.py"], "schedules"),
}


def front_end(compiler, include):
    """{namespace: names} of torch/torch.h's front end."""
    options = ["-std=c++20", "-Itorch/csrc/api/include"]
    return cxx.names_of("torch/torch.h", include, compiler=compiler, options=options, wanted=lambda path: API in path)


def functions(include):
    """Functions in namespace at that headers of ATen/ops define, and the out forms that have a kernel or a formula of their own."""
    found, written = set(), set()
    for path in sorted((include / "ATen/ops").glob("*.h")):
        if not re.search(r"_(ops|native|dispatch|meta)$", path.stem) or (path.parent / (path.stem + "_ops.h")).exists():
            found.update(re.findall(r"^inline [^\n(]*?\b(\w+)\(", path.read_text(), flags=re.M))
        elif path.stem.endswith("_dispatch") and "_compositeexplicitautograd_" not in path.stem:
            written.update(re.findall(r"\b(\w+_out)\(", path.read_text()))
    return found, written


def methods(include):
    pattern = r"^  (?:const )?(?:template ?<[^\n]*> *)?[\w:<>, &*]+? ?(?:& ?)?\b(\w+)\((?=[^;{]*\) const)"
    texts = [(include / "ATen/core" / name).read_text() for name in ("TensorBody.h", "TensorBase.h")]
    return {name for text in texts for name in re.findall(pattern, text, flags=re.M)} - {"operator"}


def listed(path):
    """__all__ of a Python file."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return set(ast.literal_eval(node.value))
    raise SystemExit("coverage: no __all__ in %s" % path)


def read(compiler, torch):
    """({area: names}, {kind: how many}) of an installed LibTorch or PyTorch."""
    include = torch / "include"
    if not (include / "ATen/ops").is_dir():
        raise SystemExit("coverage: no LibTorch in %s: include/ATen/ops is missing" % torch)
    spaces = front_end(compiler, include)
    every, written = functions(include)
    areas = {
        "functions": {n for n in every if not re.fullmatch(r"\w+_outf?|linalg_\w+", n)},
        "linear_algebra": {n for n in every if re.fullmatch(r"linalg_(?!\w+_outf?$)\w+", n)},
        "out_forms": {n for n in every if re.fullmatch(r"\w+_outf?", n)},
        "methods": methods(include),
    }
    for area, (space, pattern) in SPACES.items():
        names = set(spaces.get(space, ()))
        areas[area] = {n for n in names if (re.fullmatch(pattern, n) if pattern else n + "Impl" in names)}
    areas["autograd"] = autograd(include)
    for area, (files, more) in PYTHON.items():
        if all((torch / file).exists() for file in files):
            areas[area] = set().union(*(listed(torch / file) for file in files)) - areas[more]
    dropped = {}
    for kind, _, where, pattern in NO_GOAL:
        dropped[kind] = 0
        for area in where.split() or list(areas):
            generated = lambda n: n not in written and not n.startswith("linalg_")
            out = {n for n in areas.get(area, ()) if (re.fullmatch(pattern, n) if pattern else generated(n))}
            dropped[kind] += len(out)
            areas[area] = areas.get(area, set()) - out
    needless = [kind for kind, count in dropped.items() if not count]
    if needless:
        raise SystemExit("coverage: no name is of these kinds of NO_GOAL: " + ", ".join(needless))
    return areas, dropped


def autograd(include):
    """Classes, aliases and functions of torch::autograd in the headers that programs use."""
    found = set()
    for name in ("autograd", "custom_function", "anomaly_mode", "edge", "function_hook"):
        text = re.sub(r"//[^\n]*", "", (include / "torch/csrc/autograd" / (name + ".h")).read_text())
        found.update(re.findall(r"^(?:struct|class) (?:TORCH_API )?(\w+)(?=[^;{(]*\{)", text, flags=re.M))
        found.update(re.findall(r"^TORCH_API [\w:<>]+ (\w+)\(", text, flags=re.M))
        found.update(re.findall(r"^using (\w+) =", text, flags=re.M))
    return found


def write(areas, dropped, differs):
    lines = ["# Names of LibTorch's front end that are a goal, by area. Written by ./tools/coverage --torch PATH: do not edit."]
    for title, names in [*sorted(areas.items()), *(("differs: " + what, n) for what, n in sorted(differs.items()))]:
        lines += ["", "[%s]" % title] + textwrap.wrap(" ".join(sorted(names)), 126, break_on_hyphens=False)
    lines += ["", "[dropped]"] + ["%d %s" % (count, kind) for kind, count in dropped.items()]
    LIST.write_text("\n".join(lines) + "\n")


def stored():
    """(areas, dropped, differs) of the checked-in list."""
    sections = {}
    for line in LIST.read_text().splitlines():
        if line.startswith("["):
            section = sections.setdefault(line[1:-1], [])
        elif line and not line.startswith("#"):
            section.append(line)
    dropped = {line.partition(" ")[2]: int(line.split()[0]) for line in sections.pop("dropped")}
    words = {title: set(" ".join(lines).split()) for title, lines in sections.items()}
    differs = {title[len("differs: "):]: words.pop(title) for title in list(words) if title.startswith("differs: ")}
    return words, dropped, differs
