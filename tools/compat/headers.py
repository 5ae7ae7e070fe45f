"""LibTorch's headers that programs include. In tools/compat/include each of them includes all of the compatibility headers.

A program that includes some other header of LibTorch's finds no file of that name, and that is the clear error. Nearly all
of them are internal to LibTorch, without a counterpart here.

They are not in the repository: names.py, Bazel and the installation write them. Those of one operation, ATen/ops/NAME.h, come
from LibTorch's names of functions and methods (upstream.txt).
"""

import re

import upstream

# {folder: names}. A name without a dot is a header's, without its .h.
HEADERS = {
    "torch": """
        all arg autograd cuda data enum expanding_array nn optim ordered_dict print serialize torch types utils version
        linalg
    """,
    "torch/nn": "cloneable functional init module modules options pimpl utils",
    "torch/nn/functional": """
        activation batchnorm conv distance dropout embedding fold instancenorm linear loss normalization padding
        pixelshuffle pooling upsampling vision
    """,
    "torch/nn/modules": """
        activation adaptive batchnorm common conv distance dropout embedding fold instancenorm linear loss normalization
        padding pixelshuffle pooling rnn transformer transformercoder transformerlayer upsampling utils
    """,
    "torch/nn/modules/container": """
        any any_module_holder any_value functional moduledict modulelist named_any parameterdict parameterlist sequential
    """,
    "torch/nn/options": """
        activation adaptive batchnorm conv distance dropout embedding fold instancenorm linear loss normalization padding
        pixelshuffle pooling rnn transformer transformercoder transformerlayer upsampling vision
    """,
    "torch/nn/parallel": "data_parallel",
    "torch/nn/utils": "clip_grad convert_parameters rnn",
    "torch/optim": "adagrad adam adamw lbfgs optimizer rmsprop serialize sgd",
    "torch/optim/schedulers": "lr_scheduler reduce_on_plateau_scheduler step_lr",
    "torch/data": "dataloader dataloader_options datasets example iterator samplers transforms worker_exception",
    "torch/data/dataloader": "base stateful stateless",
    "torch/data/datasets": "base chunk map mnist shared stateful tensor",
    "torch/data/samplers": "base custom_batch_request distributed random sequential serialize stream",
    "torch/data/transforms": "base collate lambda stack tensor",
    "torch/serialize": "archive input-archive output-archive tensor",
    "torch/csrc": "Exceptions Export",
    "torch/csrc/autograd": """
        InferenceMode anomaly_mode autograd cpp_hook custom_function edge engine function function_hook grad_mode
        graph_task input_buffer node saved_variable variable
    """,
    "torch/csrc/autograd/functions": "accumulate_grad basic_ops comm tensor utils",
    "torch/csrc/cuda": "comm",
    "torch/csrc/utils": "memory tensor_flatten variadic",
    "ATen": """
        ATen ArrayRef Backend CPUFunctions CPUGeneratorImpl Config Context DLConvertor Device DeviceGuard DimVector Dispatch
        ExpandUtils Formatting Functions Generator InferSize Layout NativeFunctions Operators Parallel Scalar ScalarOps
        ScalarType SmallVector Storage Tensor TensorAccessor TensorGeometry TensorIndexing TensorOperators TensorOptions
        TensorUtils ThreadLocalState TypeDefault Utils Version WrapDimUtils autocast_mode record_function
    """,
    "ATen/core": """
        ATenGeneral ATen_fwd Array Backtrace DeprecatedTypeProperties DimVector DistributionsHelper Formatting Generator MT19937RNGEngine
        PhiloxRNGEngine Reduction Scalar ScalarType Tensor TensorAccessor TensorBase TensorBody Variadic grad_mode ivalue
    """,
    "ATen/cuda": "CUDAContext CUDAEvent CUDAGeneratorImpl Exceptions",
    "c10/core": """
        Allocator Backend CPUAllocator CopyBytes DefaultDtype DefaultTensorOptions Device DeviceGuard DeviceType DispatchKey
        DispatchKeySet Event GeneratorImpl GradMode InferenceMode Layout MemoryFormat QScheme Scalar ScalarType
        ScalarTypeToTypeMeta Storage StorageImpl Stream StreamGuard TensorImpl TensorOptions WrapDimMinimal
    """,
    "c10/cuda": "CUDACachingAllocator CUDAException CUDAFunctions CUDAGuard CUDAMacros CUDAStream",
    "c10/macros": "Export Macros",
    "c10/util": """
        Array ArrayRef BFloat16 C++17 Deprecated DimVector Exception ExclusivelyOwned Flags FunctionRef Half Logging
        MaybeOwned Metaprogramming Optional OptionalArrayRef Registry ScopeExit SmallVector StringUtil Type TypeList
        TypeTraits UniqueVoidPtr accumulate complex either flat_hash_map hash intrusive_ptr irange math_compat order_preserving_flat_hash_map
        overloaded reverse_iterator safe_numerics ssize string_utils string_view strong_type tempfile thread_name typeid variant
    """,
    "caffe2/core": "logging",
}

# torch/csrc/api/include is where LibTorch keeps its torch/; programs name either.
API = "torch/csrc/api/include/"
API_HEADERS = ("torch/all", "torch/autograd", "torch/cuda", "torch/data", "torch/enum", "torch/nn", "torch/optim",
               "torch/ordered_dict", "torch/serialize", "torch/torch", "torch/types", "torch/utils", "torch/version")
API_FOLDERS = ("torch/nn", "torch/nn/functional", "torch/nn/modules", "torch/nn/modules/container", "torch/nn/options",
               "torch/nn/parallel", "torch/nn/utils", "torch/optim", "torch/optim/schedulers", "torch/data",
               "torch/data/datasets", "torch/data/samplers", "torch/data/transforms", "torch/serialize")

# Process groups are not in torch/torch.h: programs that have them link more. Folder: LibTorch's, and that of before 1.12.
C10D_FOLDERS = ("torch/csrc/distributed/c10d", "c10d")
C10D_HEADERS = """
    Backend.hpp FileStore.hpp HashStore.hpp PrefixStore.hpp ProcessGroup.hpp ProcessGroupGloo.hpp ProcessGroupMPI.hpp
    ProcessGroupNCCL.hpp Store.hpp TCPStore.hpp Types.hpp Work.hpp
"""

# The lists of names, which names.py makes too.
LISTS = ("ramet/compat/names.h", "ramet/compat/own_names.h")

# These are written by hand. The BUILD file and .gitignore name them too.
WRITTEN = ("torch/script.h", "torch/extension.h", "torch/library.h")

# Nearly all that LibTorch's other headers are made of includes one of these, and no program does.
TRAPS = """
    ATen/core/boxing/KernelFunction.h ATen/core/dispatch/Dispatcher.h
    ATen/core/ivalue_inl.h ATen/core/jit_type.h ATen/core/jit_type_base.h ATen/core/qualified_name.h ATen/native/DispatchStub.h
    c10/core/SymBool.h c10/core/SymInt.h c10/core/SymNodeImpl.h c10/core/impl/LocalDispatchKeySet.h
    c10/core/impl/PyInterpreter.h c10/macros/cmake_macros.h c10/util/python_stub.h
    torch/csrc/jit/ir/ir.h torch/csrc/python_headers.h torch/headeronly/macros/Export.h torch/headeronly/macros/Macros.h
""".split()

FORWARDING = """// One of LibTorch's headers. Written by tools/compat/names.py.
#pragma once
#include <ramet/compat/torch.h>
"""
C10D = """// One of LibTorch's headers, with process groups. Written by tools/compat/names.py.
#pragma once
#include <ramet/compat/c10d_groups.h>
"""
TRAP = """// LibTorch's own headers include this one, and programs do not. Written by tools/compat/names.py.
#error "a header of a real LibTorch in a unit with Ramet's compatibility headers: take one of the two off the include path"
#include <a_real_LibTorch_and_the_compatibility_headers_in_one_unit>  // stops here
"""


# Folder, and what programs include of what upstream.txt leaves out as LibTorch's inside.
OPERATIONS = "ATen/ops/"
MORE_OPERATIONS = "_sample_dirichlet _unsafe_view size"


def operations():
    """{path below include/: text} of the headers of single operations."""
    areas, _, _ = upstream.stored()
    listed = set().union(*(areas[area] for area in ("functions", "linear_algebra", "methods", "out_forms")))
    names = {re.sub(r"(_out|_)$", "", name) for name in listed} | set(MORE_OPERATIONS.split())
    return {OPERATIONS + name + ".h": FORWARDING for name in sorted(names)}


def forwarding():
    """{path below include/: text} of all headers that only lead to others."""
    paths = [folder + "/" + name + ".h" for folder, names in HEADERS.items() for name in names.split()]
    paths += [API + name + ".h" for name in API_HEADERS]
    paths += [API + folder + "/" + name + ".h" for folder in API_FOLDERS for name in HEADERS[folder].split()]
    files = {path: FORWARDING for path in paths}
    files.update((folder + "/" + name, C10D) for folder in C10D_FOLDERS for name in C10D_HEADERS.split())
    files.update((path, TRAP) for path in TRAPS)
    files.update(operations())
    return files


def paths():
    """Paths below include/ of all that names.py makes."""
    return {*LISTS, *forwarding()}
