// Barriers in shared memory with phases, bulk copies of tiles, products of warpgroups: see
// hopper.h.
#include "tools/emulated_gpu/executor/hopper.h"

#include <algorithm>
#include <string>

#include "tools/emulated_gpu/executor/arithmetic.h"
#include "tools/emulated_gpu/executor/report.h"
#include "tools/emulated_gpu/executor/worker.h"

namespace ramet::emulated {
namespace {

constexpr unsigned kWindow = 0x480, kRow = 128, kGroup = 1024;
constexpr int kPoison = 0xff;  // bytes of a NaN in every format

// The 64 bits of a barrier.
struct Phase {
  uint16_t count;      // how many arrivals a phase needs
  int16_t missing;     // of this phase
  int32_t bytes : 31;  // expected, not yet there
  uint32_t parity : 1;
};
static_assert(sizeof(Phase) == sizeof(uint64_t));
Phase load(const uint64_t* barrier) {
  Phase phase;
  std::memcpy(&phase, barrier, sizeof phase);
  return phase;
}
void store(uint64_t* barrier, const Phase& phase) { std::memcpy(barrier, &phase, sizeof phase); }

struct TiledMap {
  const unsigned char* data;
  uint64_t extents[4], strides[3];
  uint32_t tile[4];
};
static_assert(sizeof(TiledMap) <= 128);

// The address at which 16 bytes of a shared address are stored.
unsigned swizzled(unsigned address) { return address ^ ((address / kRow % 8) * 16); }

float element(unsigned address, bool bfloat) {
  uint16_t bits;
  std::memcpy(&bits,
              static_cast<unsigned char*>(dynamic_shared_memory()) + (swizzled(address) - kWindow),
              sizeof bits);
  return bfloat ? float_of(uint32_t(bits) << 16) : half_to_float(bits);
}
float half_of(unsigned pair, int upper, bool bfloat) {
  const unsigned bits = upper ? pair >> 16 : pair & 0xffff;
  return bfloat ? float_of(bits << 16) : half_to_float(static_cast<uint16_t>(bits));
}

// A descriptor's fields, as "Matrix Descriptor Format" has them.
struct Operand {
  unsigned address, leading, stride;
  explicit Operand(uint64_t d)
      : address(unsigned(d & 0x3fff) << 4),
        leading(unsigned(d >> 16 & 0x3fff) << 4),
        stride(unsigned(d >> 32 & 0x3fff) << 4) {}
  // Rows of the operand by the depth.
  unsigned along_depth(unsigned row, unsigned k) const {
    return address + row / 8 * stride + row % 8 * kRow + k * 2;
  }
  // The depth by columns of the operand.
  unsigned across_depth(unsigned k, unsigned column) const {
    return address + column / 64 * leading + k / 8 * stride + k % 8 * kRow + column % 64 * 2;
  }
};

// The products of a warp's lanes that are due.
struct DueProducts {
  std::vector<WarpgroupProduct>* products;
  std::vector<ProductSums>* sums;
  unsigned warp;
  bool alike = true;
};

void multiply(DueProducts* const lanes[32], size_t which) {
  const WarpgroupProduct& first = (*lanes[0]->products)[which];
  const int columns = first.fragments * 8;
  const Operand left(first.a_tile), right(first.b_tile);
  float a[16][16], b[16][128];
  for (int k = 0; k < 16; ++k)
    for (int j = 0; j < columns; ++j)
      b[k][j] = element(first.a ? right.across_depth(unsigned(k), unsigned(j))
                                : right.along_depth(unsigned(j), unsigned(k)),
                        first.bfloat);
  for (int l = 0; l < 32; ++l) {
    const unsigned* registers = (*lanes[l]->products)[which].a;
    if (!registers) continue;
    for (int e = 0; e < 8; ++e)
      a[l / 4 + e / 2 % 2 * 8][l % 4 * 2 + e % 2 + e / 4 * 8] =
          half_of(registers[e / 2], e % 2, first.bfloat);
  }
  if (!first.a)
    for (unsigned i = 0; i < 16; ++i)
      for (unsigned k = 0; k < 16; ++k)
        a[i][k] = element(left.along_depth(lanes[0]->warp % 4 * 16 + i, k), first.bfloat);
  for (int l = 0; l < 32; ++l) {
    const float* registers = (*lanes[l]->products)[which].d;
    auto of = std::find_if(lanes[l]->sums->begin(), lanes[l]->sums->end(),
                           [&](const ProductSums& s) { return s.d == registers; });
    for (int e = 0; e < first.fragments * 4; ++e) {
      const int row = l / 4 + e % 4 / 2 * 8, column = e / 4 * 8 + l % 4 * 2 + e % 2;
      float sum = first.fresh ? 0 : of->values[size_t(e)];
      for (int k = 0; k < 16; ++k) sum += a[row][k] * b[k][column];
      of->values[size_t(e)] = sum;
    }
  }
}

void multiply_lanes(void* const arguments[32], uint32_t) {
  DueProducts* lanes[32];
  for (int l = 0; l < 32; ++l) lanes[l] = static_cast<DueProducts*>(arguments[l]);
  for (int l = 0; l < 32; ++l) {
    if (lanes[l] && lanes[0] && lanes[l]->products->size() == lanes[0]->products->size()) continue;
    for (DueProducts* lane : lanes)
      if (lane) lane->alike = false;
    return;
  }
  for (size_t i = 0; i < lanes[0]->products->size(); ++i) multiply(lanes, i);
}

}  // namespace

unsigned shared_address(const void* memory) {
  return kWindow + unsigned(static_cast<const unsigned char*>(memory) -
                            static_cast<unsigned char*>(dynamic_shared_memory()));
}

void encode_tensor_map(void* map, const void* data, const uint64_t extents[4],
                       const uint64_t strides[3], const uint32_t tile[4]) {
  TiledMap to{static_cast<const unsigned char*>(data), {}, {}, {}};
  std::copy_n(extents, 4, to.extents);
  std::copy_n(strides, 3, to.strides);
  std::copy_n(tile, 4, to.tile);
  std::memcpy(map, &to, sizeof to);
}

void phase_init(uint64_t* barrier, unsigned count) {
  store(barrier, {static_cast<uint16_t>(count), static_cast<int16_t>(count), 0, 0});
}

void Worker::end_phase(uint64_t* barrier) {
  Phase phase = load(barrier);
  if (phase.missing || phase.bytes) return;
  store(barrier, {phase.count, static_cast<int16_t>(phase.count), 0, phase.parity ^ 1u});
  for (unsigned i = 0; i < count_; ++i)
    if (threads_[order_[i]].state == ThreadState::AtPhase &&
        threads_[order_[i]].argument == barrier)
      push_ready(order_[i]);
}

void phase_arrive(uint64_t* barrier, unsigned bytes, const char* file, int line) {
  Phase phase = load(barrier);
  if (--phase.missing < 0)
    device_fail(Fault::DivergentBarrier, "TOO MANY ARRIVALS in one phase of a barrier", file, line);
  phase.bytes += static_cast<int32_t>(bytes);
  store(barrier, phase);
  happens_before(barrier);
  Worker::get().end_phase(barrier);
}

void Worker::wait_for_phase(uint64_t* barrier, unsigned parity, const char* file, int line) {
  deliver(barrier);
  if (load(barrier).parity == parity) {
    CudaThread& thread = threads_[current_];
    thread.state = ThreadState::AtPhase;
    thread.argument = barrier;
    thread.file = file;
    thread.line = line;
    wait_for_others();
  }
  happens_after(barrier);
}
void phase_wait(uint64_t* barrier, unsigned parity, const char* file, int line) {
  Worker::get().wait_for_phase(barrier, parity, file, line);
}

void bulk_copy(void* target, const void* map, const int at[4], uint64_t* barrier, const char* file,
               int line) {
  TiledMap m;
  std::memcpy(&m, map, sizeof m);
  if (shared_address(target) % kGroup)
    device_fail(Fault::Misaligned, "MISALIGNED: a tile's address is no multiple of 1024", file,
                line);
  std::memset(target, kPoison, m.tile[1] * kRow);
  BulkCopy copy{target, {}, {at[0], at[1], at[2], at[3]}, barrier};
  std::memcpy(copy.map, map, sizeof copy.map);
  Worker::get().queue_copy(copy);
}

void Worker::queue_copy(const BulkCopy& copy) {
  bulk_copies_.push_back(copy);
  for (unsigned rank = 0; rank < count_; ++rank)
    if (threads_[rank].state == ThreadState::AtPhase && threads_[rank].argument == copy.barrier)
      return deliver(copy.barrier);
}

void Worker::deliver(uint64_t* barrier) {
  for (size_t i = 0; i < bulk_copies_.size();) {
    if (bulk_copies_[i].barrier != barrier) {
      ++i;
      continue;
    }
    const BulkCopy copy = bulk_copies_[i];
    bulk_copies_.erase(bulk_copies_.begin() + static_cast<ptrdiff_t>(i));
    TiledMap m;
    std::memcpy(&m, copy.map, sizeof m);
    const unsigned first = shared_address(copy.target);
    for (unsigned row = 0; row < m.tile[1]; ++row)
      for (unsigned column = 0; column < kRow / 2; ++column) {
        const int64_t at[4] = {copy.at[0] + int64_t(column), copy.at[1] + int64_t(row), copy.at[2],
                               copy.at[3]};
        uint16_t bits = 0;
        bool inside = true;
        for (int i = 0; i < 4; ++i) inside = inside && at[i] >= 0 && at[i] < int64_t(m.extents[i]);
        if (inside)
          std::memcpy(&bits,
                      m.data + at[0] * 2 + at[1] * int64_t(m.strides[0]) +
                          at[2] * int64_t(m.strides[1]) + at[3] * int64_t(m.strides[2]),
                      sizeof bits);
        std::memcpy(dynamic_ + (swizzled(first + row * kRow + column * 2) - kWindow), &bits,
                    sizeof bits);
      }
    Phase phase = load(barrier);
    phase.bytes -= static_cast<int32_t>(m.tile[1] * kRow);
    store(barrier, phase);
    end_phase(barrier);
  }
}

void product_fence() { Worker::get().products().fenced = true; }

void product_issue(const WarpgroupProduct& product, const char* file, int line) {
  Products& mine = Worker::get().products();
  if (!mine.fenced)
    device_fail(Fault::WarpPrimitive, "NO FENCE between a wait and a product", file, line);
  const auto known = [&](const ProductSums& s) { return s.d == product.d; };
  if (std::none_of(mine.sums.begin(), mine.sums.end(), known)) {
    const size_t count = static_cast<size_t>(product.fragments) * 4;
    mine.sums.push_back({product.d, std::vector<float>(product.d, product.d + count)});
    std::memset(product.d, kPoison, count * sizeof(float));
  }
  mine.open.push_back(product);
}

void product_commit() {
  Products& mine = Worker::get().products();
  mine.groups.push_back(std::move(mine.open));
  mine.open.clear();
}

void product_wait(int pending, const char* file, int line) {
  Products& mine = Worker::get().products();
  std::vector<WarpgroupProduct> due;
  while (mine.groups.size() > static_cast<size_t>(pending)) {
    due.insert(due.end(), mine.groups.front().begin(), mine.groups.front().end());
    mine.groups.erase(mine.groups.begin());
  }
  DueProducts argument{&due, &mine.sums, thread_rank() / 32};
  warp_rendezvous(0xffffffffu, &argument, &multiply_lanes, file, line);
  if (!argument.alike)
    device_fail(Fault::WarpPrimitive, "HALF A WARP: lanes wait for different products", file, line);
  mine.fenced = false;
  std::erase_if(mine.sums, [&](const ProductSums& s) {
    const auto uses = [&](const WarpgroupProduct& p) { return p.d == s.d; };
    for (const auto& group : mine.groups)
      if (std::any_of(group.begin(), group.end(), uses)) return false;
    std::copy(s.values.begin(), s.values.end(), s.d);
    return true;
  });
}

}  // namespace ramet::emulated
