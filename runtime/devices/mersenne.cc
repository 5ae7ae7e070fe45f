#include "runtime/devices/mersenne.h"

#include <cmath>
#include <cstring>

#include "runtime/tensor/tensor_base.h"

namespace ramet {

namespace {

constexpr size_t kMiddle = 397;

// The recurrence of the engine: the top bit of one word and the rest of the next.
uint32_t twisted(uint32_t word, uint32_t next) {
  const uint32_t mixed = (word & 0x80000000u) | (next & 0x7fffffffu);
  return (mixed >> 1) ^ ((next & 1) ? 0x9908b0dfu : 0u);
}

// LibTorch's layout of a state: a struct of C, little-endian.
struct Layout {
  uint64_t seed;
  int32_t left, seeded;
  uint64_t next, state[624];
  double normal_x, normal_y, normal_rho;
  int32_t has_normal;
  int32_t padding;
  float kept_float;
  uint8_t has_kept_float, padding_at_end[3];
};
static_assert(sizeof(Layout) == Mersenne::kBytes);

}  // namespace

Mersenne::Mersenne(uint64_t seed) : seed_(seed) {
  state_[0] = static_cast<uint32_t>(seed);
  for (size_t i = 1; i < kWords; ++i)
    state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + static_cast<uint32_t>(i);
}

void Mersenne::refill() {
  for (size_t i = 0; i < kWords; ++i)
    state_[i] = state_[(i + kMiddle) % kWords] ^ twisted(state_[i], state_[(i + 1) % kWords]);
  left_ = kWords;
  next_ = 0;
}

double Mersenne::normal() {
  if (has_kept_) {
    has_kept_ = false;
    return kept_;
  }
  const double u1 = uniform(), u2 = uniform();
  const double r = std::sqrt(-2.0 * std::log1p(-u2)), theta = 2.0 * M_PI * u1;
  kept_ = r * std::sin(theta);
  has_kept_ = true;
  return r * std::cos(theta);
}

std::vector<uint8_t> Mersenne::bytes() const {
  Layout l{};
  l.seed = seed_;
  l.left = left_;
  l.seeded = 1;
  l.next = static_cast<uint64_t>(next_);
  for (size_t i = 0; i < kWords; ++i) l.state[i] = state_[i];
  if (has_kept_) {
    l.normal_y = kept_;
    l.has_normal = 1;
  }
  if (has_kept_float_) {
    l.kept_float = kept_float_;
    l.has_kept_float = 1;
  }
  std::vector<uint8_t> bytes(sizeof l);
  std::memcpy(bytes.data(), &l, sizeof l);
  return bytes;
}

Mersenne Mersenne::from_bytes(const uint8_t* bytes, size_t size) {
  RAMET_CHECK(size == kBytes, "Mersenne", "state: got ", size, " bytes, expected ", kBytes);
  Layout l;
  std::memcpy(&l, bytes, sizeof l);
  RAMET_CHECK(l.seeded == 1 && l.left > 0 && l.left <= static_cast<int32_t>(kWords) &&
                  l.next <= kWords &&
                  l.left + static_cast<int32_t>(l.next) <= static_cast<int32_t>(kWords) + 1,
              "Mersenne", "state: got ", l.left, " draws left and next word ", l.next,
              ", expected at most ", kWords, " draws, all inside ", kWords, " words");
  Mersenne m(l.seed);
  m.left_ = l.left;
  m.next_ = static_cast<int32_t>(l.next);
  for (size_t i = 0; i < kWords; ++i) m.state_[i] = static_cast<uint32_t>(l.state[i]);
  m.has_kept_ = l.has_normal != 0;
  if (m.has_kept_) m.kept_ = l.normal_y;
  m.has_kept_float_ = l.has_kept_float != 0;
  if (m.has_kept_float_) m.kept_float_ = l.kept_float;
  return m;
}

TensorBase detail::state_tensor(const GeneratorState& state) {
  std::vector<uint8_t> bytes(2 * sizeof(uint64_t));
  std::memcpy(bytes.data(), &state.seed, sizeof state.seed);
  std::memcpy(bytes.data() + sizeof state.seed, &state.offset, sizeof state.offset);
  if (state.mersenne) bytes = state.mersenne->bytes();
  const TensorBase t =
      TensorBase::empty({static_cast<int64_t>(bytes.size())}, kByte, Device(kCPU, 0));
  std::memcpy(t.ptr(), bytes.data(), bytes.size());
  return t;
}

GeneratorState detail::state_from(const TensorBase& bytes) {
  const char* op = "Generator::set_state";
  RAMET_CHECK(bytes.defined() && bytes.scalar_type() == kByte && bytes.device().is_cpu() &&
                  bytes.raw_contiguous(),
              op, "RNG state: expected a dense torch.ByteTensor on the CPU");
  const auto* const p = static_cast<const uint8_t*>(bytes.ptr());
  const auto size = static_cast<size_t>(bytes.numel());
  GeneratorState state{};
  if (size == 2 * sizeof(uint64_t)) {
    std::memcpy(&state.seed, p, sizeof state.seed);
    std::memcpy(&state.offset, p + sizeof state.seed, sizeof state.offset);
    return state;
  }
  state.mersenne = std::make_shared<const Mersenne>(Mersenne::from_bytes(p, size));
  state.seed = state.mersenne->seed();
  return state;
}

}  // namespace ramet
