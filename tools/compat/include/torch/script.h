// LibTorch's header for TorchScript: torch::jit is ramet::jit (nn/script/script.h). A program that
// loads a file also links //:script; one that only includes this does not. Where that component is not
// installed, there is no torch::jit.
#pragma once
#include <ramet/compat/torch.h>

#if __has_include("nn/script/script.h") || __has_include("ramet/script.h")
#include "nn/script/script.h"

namespace torch {
namespace jit {
using namespace ::ramet::jit;  // NOLINT
namespace script {
using namespace ::ramet::jit::script;  // NOLINT
}  // namespace script
}  // namespace jit
}  // namespace torch

/// LibTorch's names of an IValue's parts, and of what load() reads from.
namespace c10 {
namespace ivalue {
using Tuple = ::ramet::IValue::Tuple;
using Object = ::ramet::IValue::Object;
using Future = ::ramet::IValue::Future;
}  // namespace ivalue
}  // namespace c10
namespace caffe2 {
namespace serialize {
using ReadAdapterInterface = ::ramet::jit::ReadAdapter;
}  // namespace serialize
}  // namespace caffe2
#endif
