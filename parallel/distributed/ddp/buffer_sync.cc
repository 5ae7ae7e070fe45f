#include "parallel/distributed/ddp/buffer_sync_internal.h"

#include <algorithm>
#include <set>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "nn/layers/norm/batchnorm.h"
#include "parallel/distributed/group/tensor_bytes_internal.h"
#include "parallel/distributed/meet/socket_internal.h"
#include "parallel/replicas/buffer_page_internal.h"

namespace ramet::distributed::detail {

using nn::BufferPolicy;

namespace {

ScalarType sum_type(ScalarType t) { return is_floating(t) ? compute_type(t) : t; }

// Combines the values of the active ranks, [rank], into one; those of the other ranks are
// undefined. 16-bit sums are formed in float32 and rounded once.
Tensor combined(BufferPolicy policy, const std::string& name, const std::vector<Tensor>& all) {
  Tensor out;
  size_t first = 0;
  double count = 0;
  for (size_t r = 0; r < all.size(); ++r) {
    if (!all[r].defined()) continue;
    ++count;
    if (!out.defined()) {
      out = policy == BufferPolicy::mean  ? all[r].to(kDouble)
            : policy == BufferPolicy::sum ? all[r].to(sum_type(all[r].scalar_type()))
                                          : all[r];
      first = r;
    } else if (policy == BufferPolicy::max) {
      out = out.maximum(all[r]);
    } else if (policy == BufferPolicy::all_equal) {
      RAMET_CHECK(out.equal(all[r]), "ddp", "buffer '", name, "' of policy all_equal: rank ", r,
                  " has another value than rank ", first);
    } else if (policy != BufferPolicy::first) {
      out = out + all[r];
    }
  }
  if (policy == BufferPolicy::mean) out = out / count;
  return out.defined() ? out.to(all[first].scalar_type()) : out;
}

}  // namespace

bool BufferSync::Buffer::written() const {
  return tensor.storage_impl()->serial() != serial || tensor->data != data ||
         tensor.version() != version;
}
void BufferSync::Buffer::mark_seen() {
  serial = tensor.storage_impl()->serial();
  data = tensor->data;
  version = tensor.version();
}

BufferSync::BufferSync(const nn::Module& module, const Exceptions& exceptions) {
  std::set<const TensorImpl*> met;
  module.apply(
      nn::Module::ConstNamedModuleApplyFunction([&](const std::string& path, const nn::Module& m) {
        for (const auto& item : m.own_buffers()) {
          const Tensor& t = item.value();
          if (!t.defined() || autograd::wants_grad(t.impl()) || exceptions.tensor(t)) continue;
          const BufferPolicy policy = m.buffer_policy(item.key());
          if (policy == BufferPolicy::sync || policy == BufferPolicy::per_replica) continue;
          const bool norm = dynamic_cast<const nn::detail::BatchNormState*>(&m) != nullptr;
          if (policy == BufferPolicy::merge_stats && norm) continue;
          if (!met.insert(t.impl()).second) continue;
          buffers_.push_back({path.empty() ? item.key() : path + "." + item.key(), t, policy});
          buffers_.back().mark_seen();
          parallel::detail::keep_pages(t);
        }
      }));
}

void BufferSync::mark_equal() {
  for (Buffer& b : buffers_) b.mark_seen();
}

void BufferSync::synchronise(Companion& companion) {
  const NoGradGuard off;
  std::string mine;
  for (const Buffer& b : buffers_) mine += b.written() ? '1' : '0';
  const auto flags = companion.exchange("buffers that were written", mine);
  int source = -1;  // the rank with the values that count, where only one rank's do
  std::string written(buffers_.size(), '0');
  for (size_t r = 0; r < flags.size(); ++r) {
    if (!flags[r]) continue;
    RAMET_CHECK(flags[r]->size() == written.size(), "ddp", "buffers of rank ", r, ": got ",
                flags[r]->size(), ", expected ", written.size());
    if (source < 0) source = static_cast<int>(r);
    for (size_t i = 0; i < written.size(); ++i) written[i] = std::max(written[i], (*flags[r])[i]);
  }
  if (written.find('1') == std::string::npos) return;
  const auto gives = [&](const Buffer& b, int rank) {
    const bool one = b.policy == BufferPolicy::first || b.policy == BufferPolicy::merge_stats;
    return !one || rank == source;
  };
  Packer values;
  for (size_t i = 0; i < buffers_.size(); ++i)
    if (written[i] == '1' && gives(buffers_[i], companion.rank()))
      values.text(bytes_of(buffers_[i].tensor));
  const auto all = companion.exchange("values of buffers", values.bytes());
  std::vector<Unpacker> from;
  for (const auto& bytes : all) {
    static const std::string nothing;
    from.emplace_back(bytes ? *bytes : nothing);
  }
  // Computes all values before it writes any.
  std::vector<std::pair<Buffer*, Tensor>> made;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    Buffer& b = buffers_[i];
    if (written[i] != '1') continue;
    std::vector<Tensor> theirs(all.size());
    for (size_t r = 0; r < all.size(); ++r)
      if (all[r] && gives(b, static_cast<int>(r)))
        theirs[r] = tensor_of(from[r].text(), b.tensor, "buffer '" + b.name + "'");
    made.emplace_back(&b, combined(b.policy, b.name, theirs));
  }
  std::vector<Tensor> pages(made.size());
  for (size_t k = 0; k < made.size(); ++k) {
    auto& [b, value] = made[k];
    if (bytes_of(value) == bytes_of(b->tensor)) {
      value = Tensor();
      continue;
    }
    value = value.to(b->tensor.device());
    if (parallel::detail::alone(b->tensor, buffers_, &Buffer::tensor))
      pages[k] = parallel::detail::fresh_page(b->tensor);
  }
  for (size_t k = 0; k < made.size(); ++k) {
    const auto& [b, value] = made[k];
    if (value.defined()) {
      parallel::detail::turn_page(b->tensor, pages[k]);
      b->tensor.copy_(value);
    }
    b->mark_seen();
  }
}

}  // namespace ramet::distributed::detail
