#include <unordered_set>

#include "kernels/pointwise/pointwise.h"
#include "nn/formats/onnx/seen_internal.h"

namespace ramet::formats {
namespace {

// By name: a table of the kernels themselves would link all of them.
bool is_pointwise(const std::string& name) {
  static const std::unordered_set<std::string> all = {
#define RAMET_X(name, Row) #name,
      RAMET_POINTWISE_OPS(RAMET_X)
#undef RAMET_X
  };
  return all.count(name) != 0;
}

template <class Args> OnnxSeen::Numbers numbers_of(const KernelCall& call) {
  const Args& a = *static_cast<const Args*>(call.args);
  const bool whole = a.compute == kLong;
  return {whole ? static_cast<double>(a.s.i) : a.s.d, whole ? static_cast<double>(a.t.i) : a.t.d};
}

std::vector<OnnxSeen::At> held(ArrayRef<autograd::Input> inputs) {
  std::vector<OnnxSeen::At> out;
  for (const autograd::Input& input : inputs) {
    if (input.impl) add_ref(input.impl->refs);
    const Tensor t = input.impl ? Tensor(input.impl) : Tensor();
    out.push_back({t, t.defined() ? t.version() : 0});
  }
  return out;
}

}  // namespace

OnnxSeen::OnnxSeen() {
  Observer kernels;
  kernels.kernel_begin = [this](const KernelCall& call) { on_kernel(call); };
  observer_ = add_observer(std::move(kernels));
}
OnnxSeen::~OnnxSeen() { remove_observer(observer_); }

void OnnxSeen::on_kernel(const KernelCall& call) {
  if (std::this_thread::get_id() != thread_) return;
  const std::string name = call.name;
  constexpr std::string_view kStrided = "_strided";
  if (name.ends_with(kStrided) && is_pointwise(name.substr(0, name.size() - kStrided.size())))
    last_ = numbers_of<kernels::PointwiseStridedArgs>(call);
  else if (is_pointwise(name)) last_ = numbers_of<kernels::PointwiseArgs>(call);
}

void OnnxSeen::on_node_made(autograd::Node& node, ArrayRef<autograd::Input> inputs,
                            ArrayRef<autograd::Input> results) {
  if (node.flags & autograd::Node::kSink || results.empty()) return;
  Made made{held(inputs), held(results), last_};
  const std::lock_guard<std::mutex> lock(mutex_);
  made_[&node] = std::move(made);
}

const OnnxSeen::Made* OnnxSeen::made(const autograd::Node& node) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = made_.find(&node);
  return found == made_.end() ? nullptr : &found->second;
}

}  // namespace ramet::formats
