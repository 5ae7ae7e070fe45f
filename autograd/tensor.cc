// The autograd part of Tensor, and methods that belong to no operation.
#include "autograd/tensor.h"

#include <cstdio>
#include <limits>
#include <mutex>
#include <sstream>

#include "autograd/grad_mode.h"
#include "autograd/graph/captured_internal.h"
#include "autograd/graph/inplace.h"
#include "autograd/graph/layout.h"
#include "autograd/graph/node.h"
#include "autograd/graph/under_way_internal.h"
#include "autograd/graph/view.h"
#include "runtime/base/logging.h"
#include "runtime/capture/capture.h"
#include "runtime/tensor/print.h"

using ramet::detail::tls;

namespace ramet {

using autograd::AccumulateGrad;
using autograd::grad_accumulator;
using autograd::Node;

Tensor& Tensor::operator=(const Tensor& values) && { return copy_(values); }
Tensor& Tensor::operator=(Tensor&& values) && { return copy_(values); }
Tensor& Tensor::operator=(const Scalar& value) && { return fill_(value); }

TensorOptions Tensor::options() const {
  return TensorOptions().dtype(scalar_type()).device(device()).layout(layout());
}

const DeprecatedTypeProperties& Tensor::type() const {
  return DeprecatedTypeProperties::of(
      defined() ? deviceTypeToBackend(device().type()) : Backend::Undefined, dtype());
}

bool Tensor::leaf_slot() const { return static_cast<Node*>(p_->node)->flags & Node::kSink; }

// A view may get a history when it is next used.
bool Tensor::leaf_view() const {
  if (p_->node && !leaf_slot()) return false;
  return p_->is(TensorImpl::kRequiresGrad | TensorImpl::kNoGradView) ||
         !autograd::view_wants_grad(p_);
}

int64_t Tensor::_version() const {
  RAMET_CHECK(!is_inference(), "_version", "Inference tensors do not track version counter: got ",
              describe(*this));
  return version();
}

void Tensor::wrong_type(ScalarType asked) const {
  fail("data_ptr", "expected scalar type ", name_of(asked), " but found ", name_of(scalar_type()),
       ": got ", describe(*this));
}

void Tensor::check_narrow(int64_t most) const {
  int64_t last = 0;
  bool fits = true;
  for (int64_t d = 0; d < dim() && numel() > 0; ++d) {
    int64_t reach = 0;
    fits = fits && !__builtin_mul_overflow(sizes()[d] - 1, raw_strides()[d], &reach) &&
           !__builtin_add_overflow(last, reach, &last);
  }
  for (const int64_t n : sizes()) fits = fits && n <= most;
  for (const int64_t n : raw_strides()) fits = fits && n <= most;
  RAMET_CHECK(fits && last <= most && numel() <= most, "packed_accessor", "got ", describe(*this),
              " with strides ", raw_strides(), ", expected no more than ", most,
              " elements and strides up to that; otherwise use packed_accessor64");
}

bool Tensor::is_nonzero() const {
  RAMET_CHECK(numel() == 1, "is_nonzero", "Boolean value of Tensor with ",
              numel() == 0 ? "no values" : "more than one value", " is ambiguous: got ",
              describe(*this));
  capture::refuse("is_nonzero", "the host reads a value");
  return item().to<bool>();
}

const Tensor& Tensor::requires_grad_(bool on) const {
  RAMET_CHECK(defined(), "requires_grad_", "undefined tensor");
  if (RAMET_UNLIKELY(capture::active())) capture::used(p_);
  if (!on && !p_->node && is_leaf()) {
    p_->set(TensorImpl::kRequiresGrad, false);
    return *this;
  }
  RAMET_CHECK(!on || is_floating(scalar_type()), "requires_grad_",
              "only Tensors of floating point dtype can require gradients: got ", describe(*this));
  if (!is_leaf() && on) return *this;
  RAMET_CHECK(
      !p_->is(TensorImpl::kInference) || !on || tls.inference_mode, "requires_grad_",
      "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  // An Error also for a view made in no_grad mode, where its base has another history by now.
  if (on && p_->base) (void)autograd::wants_grad(p_);
  AccumulateGrad* sink = is_leaf() ? grad_accumulator(p_) : nullptr;
  RAMET_CHECK(sink != nullptr, "requires_grad_",
              "you can only change requires_grad flags of leaf variables: got ", describe(*this),
              " made by ", grad_fn()->name(), "; use detach()");
  p_->set(TensorImpl::kRequiresGrad, on);
  sink->device = p_->device;
  return *this;
}

namespace {
Tensor* retained_of(TensorImpl* t) {
  auto* node = static_cast<Node*>(t->node);
  if (!node || !node->extra) return nullptr;
  for (auto& [slot, g] : node->extra->retained)
    if (slot == t->slot) return &g;
  return nullptr;
}
[[noreturn, gnu::cold]] void refuse_under_way(const Tensor& leaf) {
  fail("grad", "the gradient of ", describe(leaf),
       " is being reduced over the ranks by the backward that runs: expected to look at it in a "
       "hook of its own parameter, or after the reduction (register_post_sync_hook)");
}
}  // namespace

namespace {
[[gnu::cold]] void warn_of_no_gradient(const Tensor& t) {
  RAMET_WARN_MISTAKE("[grad] the gradient of ", describe(t),
                     ", which is not a leaf, is being accessed: a backward does not keep it. Call "
                     "retain_grad() on it before, or access the leaf");
}
}  // namespace

const Tensor& Tensor::grad() const {
  static const Tensor none;
  RAMET_CHECK(defined(), "grad", "undefined tensor");
  if (!p_->node) {
    if (RAMET_UNLIKELY(p_->base != nullptr) && !is_leaf()) warn_of_no_gradient(*this);
    // Before a replay it may get a gradient, which an optimizer would then use.
    if (RAMET_UNLIKELY(capture::active()) && is_floating(scalar_type()))
      autograd::note_gradient(grad_accumulator(p_));
    return none;
  }
  if (leaf_slot()) {
    auto* sink = static_cast<AccumulateGrad*>(p_->node);
    if (RAMET_UNLIKELY(sink->mark == autograd::kUnderWay)) refuse_under_way(*this);
    if (RAMET_UNLIKELY(capture::active())) autograd::note_gradient(sink);
    return sink->grad;
  }
  const Tensor* kept = retained_of(p_);
  if (RAMET_UNLIKELY(!kept)) warn_of_no_gradient(*this);
  return kept ? *kept : none;
}

Tensor& Tensor::mutable_grad() const {
  RAMET_CHECK(defined(), "grad", "undefined tensor");
  if (AccumulateGrad* sink = grad_accumulator(p_)) {
    if (RAMET_UNLIKELY(sink->mark == autograd::kUnderWay)) refuse_under_way(*this);
    if (RAMET_UNLIKELY(capture::active())) autograd::note_gradient(sink);
    sink->mark = 0;
    return sink->grad;
  }
  Tensor* kept = retained_of(p_);
  RAMET_CHECK(kept != nullptr, "mutable_grad",
              "the .grad of a non-leaf exists only after retain_grad(): got ", describe(*this));
  return *kept;
}

autograd::NodePtr Tensor::grad_fn() const {
  (void)defined_impl("grad_fn");
  if (RAMET_UNLIKELY(is_inference())) return {};
  const autograd::RawEdge e = autograd::edge_of(p_);
  autograd::NodePtr result(e.node && !(e.node->flags & Node::kSink) ? e.node : nullptr);
  autograd::release(e.node);
  return result;
}

namespace {

// Replicas that run concurrently share the ReduceAdd node of a parameter. Their forwards may put
// hooks on it.
std::unique_lock<std::mutex> hooks_of(const Node* node) {
  static std::mutex mutex;
  return node && (node->flags & Node::kReduce) ? std::unique_lock(mutex)
                                               : std::unique_lock<std::mutex>();
}

}  // namespace

void Tensor::retain_grad() const {
  RAMET_CHECK(defined() && requires_grad(), "retain_grad",
              "can't retain_grad on Tensor that has requires_grad=False");
  if (is_leaf()) return;
  const autograd::RawEdge e = autograd::edge_of(p_);
  autograd::release(e.node);
  const auto lock = hooks_of(e.node);
  if (retained_of(p_)) return;
  e.node->more().retained.emplace_back(p_->slot, Tensor());
}
bool Tensor::retains_grad() const { return defined() && !is_leaf() && retained_of(p_) != nullptr; }

unsigned Tensor::add_hook(std::function<Tensor(const Tensor&)> hook) const {
  RAMET_CHECK(defined() && requires_grad(), "register_hook",
              "cannot register a hook on a tensor that doesn't require gradient");
  const autograd::RawEdge e = autograd::edge_of(p_);
  autograd::release(e.node);
  RAMET_CHECK(e.node != nullptr, "register_hook",
              "no gradient comes to a view made in no_grad mode: got ", describe(*this));
  const auto lock = hooks_of(e.node);
  autograd::NodeExtra& extra = e.node->more();
  extra.hooks.push_back({p_->slot, extra.next_id, std::move(hook)});
  return extra.next_id++;
}

void Tensor::remove_hook(unsigned id) const {
  auto* node = static_cast<Node*>(defined() ? p_->node : nullptr);
  const auto lock = hooks_of(node);
  const auto drop = [id](auto& hooks) {
    return std::erase_if(hooks, [id](const auto& hook) { return hook.id == id; }) != 0;
  };
  const bool found = node && node->extra && (drop(node->extra->hooks) || drop(node->extra->post));
  RAMET_CHECK(found, "remove_hook", "handle: got ", id,
              ", expected one of a hook of this tensor that is not removed yet; a write in place "
              "leaves the hooks with the values before it");
}

unsigned Tensor::register_post_accumulate_grad_hook(std::function<void(const Tensor&)> hook) const {
  AccumulateGrad* sink =
      defined() && p_->is(TensorImpl::kRequiresGrad) ? grad_accumulator(p_) : nullptr;
  RAMET_CHECK(sink != nullptr, "register_post_accumulate_grad_hook",
              "post accumulate grad hooks cannot be registered on non-leaf tensors or ones that do "
              "not require grad: got ",
              describe(*this));
  // The hook gets a handle made at the call. A handle kept here would hold this node, which holds
  // the hook.
  const Tensor alias = shallow();
  autograd::NodeExtra& extra = sink->more();
  sink->flags |= Node::kSpans;  // Note [Hooks of leaves]
  auto run = [sink, alias, call = std::move(hook)](const Tensor&) {
    Tensor leaf = alias.shallow();
    sink->hold();
    leaf->node = sink;
    leaf->flags |= TensorImpl::kRequiresGrad;
    call(leaf);
  };
  extra.post.push_back({extra.next_id, std::move(run)});
  return extra.next_id++;
}

Tensor Tensor::detach() const {
  RAMET_CHECK(defined(), "detach", "undefined tensor");
  settle();
  return shallow();
}

Tensor& Tensor::detach_() const {
  RAMET_CHECK(defined(), "detach_", "undefined tensor");
  autograd::leave_lonely_base(*this);
  RAMET_CHECK(!p_->base, "detach_", "Can't detach views in-place. Use detach() instead. Got ",
              describe(*this));
  if (RAMET_UNLIKELY(capture::active())) capture::used(p_);
  AutogradSlot::release(std::exchange(p_->node, nullptr));
  p_->slot = 0;
  p_->set(TensorImpl::kRequiresGrad, false);
  ++p_->generation;
  return autograd::as_mutable(*this);
}

Tensor Tensor::data() const {
  RAMET_CHECK(defined(), "data", "undefined tensor");
  settle();
  // Where this is a piece of scatter that shares its input's memory: writes here must not reach the
  // input.
  if (p_->storage->copy_on_write && p_->storage->refs.load(std::memory_order_acquire) == 1)
    own_memory("data");
  const bool shows_input = p_->storage->copy_on_write;
  Tensor t = shallow();
  StorageImpl* alias =
      StorageImpl::alias(p_->storage, p_->storage->data, p_->storage->bytes, nullptr);
  alias->copy_on_write = shows_input;
  t->storage->release();
  t->storage = alias;
  return t;
}

void Tensor::set_data(const Tensor& new_data) const {
  capture::refuse("set_data", "the tensor would be given other memory");
  RAMET_CHECK(defined() && new_data.defined(), "set_data", "undefined tensor");
  RAMET_CHECK(!requires_grad() || is_floating(new_data.scalar_type()), "set_data",
              "incompatible tensor type: got ", describe(new_data),
              ", expected a floating point tensor for one that requires grad");
  autograd::settle(new_data);
  const Tensor from = new_data.shallow();  // also where new_data is *this
  auto* geometry = from->rank > kInlineRank
                       ? static_cast<int64_t*>(pool::allocate(sizeof(int64_t) * 2 * from->rank))
                       : nullptr;
  if (p_->rank > kInlineRank) pool::deallocate(p_->geometry, sizeof(int64_t) * 2 * p_->rank);
  p_->rank = from->rank;
  p_->geometry = geometry;
  for (int d = 0; d < p_->rank; ++d) {
    p_->sizes()[d] = from->sizes()[d];
    p_->strides()[d] = from->strides()[d];
  }
  p_->dtype = from->dtype;
  p_->device = from->device;
  p_->numel = from->numel;
  p_->set(TensorImpl::kContiguous, from.raw_contiguous());
  p_->set(TensorImpl::kInternalLayout, false);
  // No new reference where this is the implementation's embedded storage, which it holds anyway.
  if (!p_->is(TensorImpl::kEmbedded) || from->storage != p_->embedded())
    add_ref(from->storage->refs);
  StorageImpl* old = std::exchange(p_->storage, from->storage);
  p_->data = from->data;
  if (!p_->is(TensorImpl::kEmbedded) || old != p_->embedded()) old->release();
  if (p_->node && leaf_slot()) static_cast<Node*>(p_->node)->device = p_->device;
  if (p_->base && p_->base->storage != p_->storage) {  // no view of it any more
    p_->set(TensorImpl::kNoGradView, false);
    const Tensor goes(std::exchange(p_->base, nullptr));
  }
}

Tensor& Tensor::set_(const Tensor& source) const {
  RAMET_CHECK(defined() && source.defined(), "set_", "undefined tensor");
  RAMET_CHECK(source.scalar_type() == scalar_type() && source.device() == device(), "set_",
              "Could not set a tensor to one of another type or device: got ", describe(source),
              ", expected as ", describe(*this));
  RAMET_CHECK(!tls.grad_mode || !(requires_grad() || source.requires_grad()), "set_",
              "has no derivative: got ", describe(requires_grad() ? *this : source),
              ", which requires a gradient; expected detach() of it, or no_grad mode");
  autograd::check_inplace("set_", *this);
  set_data(source);
  return autograd::as_mutable(*this);
}
Tensor& Tensor::set_(const Tensor& source, int64_t storage_offset, IntArrayRef size,
                     IntArrayRef stride) const {
  RAMET_CHECK(source.defined(), "set_", "undefined tensor");
  return set_(source.detach().as_strided(
      size, stride.empty() ? IntArrayRef(contiguous_strides(size)) : stride, storage_offset));
}
namespace {
Tensor all_of(const Tensor& like, const Storage& memory) {
  RAMET_CHECK(like.defined() && memory, "set_", "undefined tensor or storage");
  const auto n = static_cast<int64_t>(memory.nbytes() / like.element_size());
  return Tensor(TensorBase::over(memory.unsafeGetStorageImpl(), 0, n, 1, like.scalar_type()));
}
}  // namespace
Tensor& Tensor::set_(const Storage& source) const { return set_(all_of(*this, source)); }
Tensor& Tensor::set_(const Storage& source, int64_t storage_offset, IntArrayRef size,
                     IntArrayRef stride) const {
  return set_(all_of(*this, source), storage_offset, size, stride);
}
Tensor& Tensor::set_() const {
  RAMET_CHECK(defined(), "set_", "undefined tensor");
  return set_(new_empty({0}));
}

bool Tensor::is_set_to(const Tensor& o) const {
  RAMET_CHECK(defined() && o.defined(), "is_set_to", "undefined tensor");
  settle(), o.settle();
  return storage_impl() == o.storage_impl() && p_->data == o->data && sizes() == o.sizes() &&
         raw_strides() == o.raw_strides();
}

const std::string& Tensor::name() const {
  static const std::string none;
  (void)defined_impl("name");
  return none;
}

void Tensor::record_stream(Stream) const { (void)defined_impl("record_stream"); }

Tensor Tensor::_base() const {
  TensorImpl* root = defined_impl("_base")->base;
  if (!root) return {};
  while (root->base) root = root->base;
  add_ref(root->refs);
  return Tensor(root);
}

std::string Tensor::toString() const {
  if (!defined()) return "UndefinedType";
  return type_string(*this);
}

void Tensor::print() const {
  auto text = detail::classic<std::ostringstream>();
  if (defined()) text << '[' << toString() << ' ' << sizes() << "]\n";
  else text << "[UndefinedTensor]\n";
  std::fputs(text.str().c_str(), stderr);
}

std::ostream& operator<<(std::ostream& out, const Tensor& t) {
  if (t.defined()) autograd::settle(t);
  return out << static_cast<const TensorBase&>(t);
}

}  // namespace ramet
