// Note [Casts of parameters]
// A step casts each parameter at most once. The casts are kept in a table of the thread. Its key is
// the tensor, the dtype and the grad mode: a cast without history must not serve a recorded
// operation. An entry holds for one storage, one version of it, and one gradient slot. So a
// parameter that an optimizer has written, or that has moved, is cast again. Only inside of a
// region are casts kept. Otherwise those of a device's worker would never be dropped. The rest of
// the state is in Context, and follows work to other threads.
//
// A capture has its own table. A replay would not write the memory of a cast from outside, and a
// cast from inside has no values until the capture ends. A replica's call has its own, too: its
// parameters get new values between two calls. So has a checkpoint's function that runs again. That
// happens in a backward pass, on any thread, in a region or not. What is cast there ends with it.
#include "autograd/autocast.h"

#include <memory>
#include <unordered_map>

#include "autograd/graph/function.h"
#include "autograd/graph/graph_observer.h"
#include "autograd/graph/node.h"

using ramet::detail::tls;

namespace ramet {
namespace {

// Bits of Context::autocast.
constexpr uint8_t kOnCpu = 1, kOnCuda = 2;
// Bits of Context::autocast_choices: the dtype that is not the default, and no casts are kept.
constexpr uint8_t kHalfOnCpu = 1, kBFloat16OnCuda = 2, kNothingKept = 4;

struct Kept {
  Tensor parameter, cast;
  uint32_t version;
  const void* data;
  const StorageImpl* storage;
  const void* node;
  bool fits(const Tensor& x) const {
    return x.version() == version && x->data == data && x->storage == storage && x->node == node;
  }
};
struct Key {
  const TensorImpl* of;
  ScalarType dtype;
  bool recorded;
  bool operator==(const Key& o) const {
    return of == o.of && dtype == o.dtype && recorded == o.recorded;
  }
};
struct HashOfKey {
  size_t operator()(const Key& k) const {
    return std::hash<const void*>()(k.of) ^ (static_cast<size_t>(k.dtype) << 1) ^
           static_cast<size_t>(k.recorded);
  }
};
using Table = std::unordered_map<Key, Kept, HashOfKey>;

__thread int nesting = 0;
__thread Table* table = nullptr;  // null: nothing kept

uint8_t bit_of(const char* op, DeviceType device_type) {
  RAMET_CHECK(autocast::is_autocast_available(device_type), op, "device type: got ", device_type,
              ", expected cpu or cuda");
  return device_type == kCPU ? kOnCpu : kOnCuda;
}
uint8_t with(uint8_t bits, uint8_t bit, bool set) {
  return static_cast<uint8_t>(set ? bits | bit : bits & ~bit);
}
void check_dtype(const char* op, DeviceType device_type, ScalarType dtype) {
  RAMET_CHECK(dtype == kBFloat16 || dtype == kHalf, op, "dtype for ", device_type, ": got ",
              name_of(dtype), ", expected BFloat16 or Half");
}
void choose_dtype(DeviceType device_type, ScalarType dtype) {
  const bool cpu = device_type == kCPU;
  tls.autocast_choices = with(tls.autocast_choices, cpu ? kHalfOnCpu : kBFloat16OnCuda,
                              dtype != (cpu ? kBFloat16 : kHalf));
}

bool is_castable(const Tensor& x, DeviceType device_type) {
  return x.defined() && is_floating(x.scalar_type()) && x.scalar_type() != kDouble &&
         x.device().type() == device_type;
}

// Is it a leaf that collects gradients, or a replica of one?
bool is_parameter(const Tensor& x) {
  if (!x.requires_grad() || x.is_inference()) return false;
  if (x.is_leaf()) return true;
  return tls.replica >= 0 && x->node &&
         (static_cast<autograd::Node*>(x->node)->flags & autograd::Node::kReduce) != 0;
}

Tensor cast_now(ScalarType to_type, const Tensor& x) {
  Tensor cast = x.to(to_type);
  if (autograd::graph_observed()) autograd::tell_cast(x, cast, /*kept=*/false);
  return cast;
}

}  // namespace

namespace autocast {

bool is_autocast_available(DeviceType device_type) {
  return device_type == kCPU || device_type == kCUDA;
}
bool is_autocast_enabled(DeviceType device_type) {
  if (!is_autocast_available(device_type)) return false;
  return (tls.autocast & (device_type == kCPU ? kOnCpu : kOnCuda)) != 0;
}
void set_autocast_enabled(DeviceType device_type, bool enabled) {
  if (!enabled && !is_autocast_available(device_type)) return;
  const uint8_t bit = bit_of("set_autocast_enabled", device_type);
  tls.autocast = with(tls.autocast, bit, enabled);
}
ScalarType get_autocast_dtype(DeviceType device_type) {
  const uint8_t bit = bit_of("get_autocast_dtype", device_type);
  if (bit == kOnCpu) return tls.autocast_choices & kHalfOnCpu ? kHalf : kBFloat16;
  return tls.autocast_choices & kBFloat16OnCuda ? kBFloat16 : kHalf;
}
void set_autocast_dtype(DeviceType device_type, ScalarType dtype) {
  bit_of("set_autocast_dtype", device_type);
  check_dtype("set_autocast_dtype", device_type, dtype);
  choose_dtype(device_type, dtype);
}

int increment_nesting() { return ++nesting; }
int decrement_nesting() { return --nesting; }
void clear_cache() {
  // The table is gone before what it held dies, which may run a user's code.
  const std::unique_ptr<Table> dropped(std::exchange(table, nullptr));
}
bool is_autocast_cache_enabled() { return (tls.autocast_choices & kNothingKept) == 0; }
void set_autocast_cache_enabled(bool enabled) {
  tls.autocast_choices = with(tls.autocast_choices, kNothingKept, !enabled);
}

Tensor cached_cast(ScalarType to_type, const Tensor& x, DeviceType device_type) {
  if (!is_castable(x, device_type) || x.scalar_type() == to_type) return x;
  const bool keep = nesting > 0 && x.scalar_type() == kFloat && is_autocast_cache_enabled() &&
                    is_autocast_available(device_type) &&
                    to_type == get_autocast_dtype(device_type) && is_parameter(x);
  if (!keep) return cast_now(to_type, x);
  const Key key{x.impl(), to_type, tls.grad_mode};
  if (table) {
    const auto at = table->find(key);
    if (at != table->end() && at->second.fits(x)) {
      if (autograd::graph_observed()) autograd::tell_cast(x, at->second.cast, /*kept=*/true);
      return at->second.cast;
    }
  }
  const Tensor cast = cast_now(to_type, x);
  if (!table) table = new Table;
  (*table)[key] = {x, cast, x.version(), x->data, x->storage, x->node};
  return cast;
}

}  // namespace autocast

AutocastGuard::AutocastGuard(DeviceType device_type, std::optional<ScalarType> dtype, bool enabled,
                             std::optional<bool> cache_enabled)
    : on_(tls.autocast), choices_(tls.autocast_choices) {
  const char* op = "AutocastGuard";
  const uint8_t bit = bit_of(op, device_type);
  if (dtype && enabled) check_dtype(op, device_type, *dtype);
  if (dtype && (*dtype == kBFloat16 || *dtype == kHalf)) choose_dtype(device_type, *dtype);
  if (cache_enabled) autocast::set_autocast_cache_enabled(*cache_enabled);
  tls.autocast = with(tls.autocast, bit, enabled);
  autocast::increment_nesting();
}
AutocastGuard::~AutocastGuard() {
  if (autocast::decrement_nesting() == 0) autocast::clear_cache();
  tls.autocast = on_;
  tls.autocast_choices = choices_;
}

namespace detail {

OwnCasts::OwnCasts() : nesting_(std::exchange(nesting, 1)), kept_(std::exchange(table, nullptr)) {}
OwnCasts::~OwnCasts() {
  autocast::clear_cache();
  nesting = nesting_;
  table = static_cast<Table*>(kept_);
}

bool CustomForward::begin(autograd::AutogradContext* ctx, DeviceType device_type,
                          bool cast_inputs) {
  const uint8_t bit = bit_of("custom_fwd", device_type);
  RAMET_CHECK(ctx != nullptr, "custom_fwd",
              "got no context, expected the one that the Function's forward received");
  const bool enabled = (tls.autocast & bit) != 0;
  ctx->autocast_ = enabled && !cast_inputs;
  ctx->autocast_dtype_ = autocast::get_autocast_dtype(device_type);
  return enabled && cast_inputs;
}
CustomForward CustomForward::of(const autograd::AutogradContext* ctx) {
  RAMET_CHECK(ctx && ctx->autocast_dtype_ != ScalarType::Undefined, "custom_bwd",
              "got a context without a state, expected custom_fwd in the Function's forward");
  return {ctx->autocast_, ctx->autocast_dtype_};
}
Tensor custom_input(const Tensor& x, DeviceType device_type, ScalarType dtype) {
  return is_castable(x, device_type) && x.scalar_type() != dtype ? cast_now(dtype, x) : x;
}
std::vector<Tensor> custom_input(const std::vector<Tensor>& list, DeviceType device_type,
                                 ScalarType dtype) {
  std::vector<Tensor> cast;
  for (const Tensor& x : list) cast.push_back(custom_input(x, device_type, dtype));
  return cast;
}

}  // namespace detail
}  // namespace ramet
