#include "tools/emulated_gpu/blas/blas_algorithm.h"

#include <algorithm>
#include <cstring>

#include "tools/emulated_gpu/checker/checks.h"
#include "tools/emulated_gpu/runtime/control.h"

namespace ramet::emulated {
namespace {

constexpr const char* kNames[] = {"A", "B", "C", "D"};
/// A larger workspace would take too much of a small device.
constexpr uint64_t kMostWorkspace = 2048;

// Long sums of few elements, as the library does.
constexpr int64_t kLongSum = 512, kFewElements = 4096;
bool takes_halves(const MatrixProduct& p, uint32_t reductions) {
  constexpr uint32_t narrow =
      CUBLASLT_REDUCTION_SCHEME_INPLACE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
  const int64_t k = p.transpose_a ? p.a.rows : p.a.columns;
  return (reductions & narrow) && k >= kLongSum && p.d.rows * p.d.columns <= kFewElements;
}

/// The largest power of two that divides it, at most 256.
uint16_t alignment_of(uint64_t bytes) {
  bytes |= 256;
  return static_cast<uint16_t>(bytes & (~bytes + 1));
}

/// The alignment of all lines and matrices of a batch after the first ones.
uint16_t lines_of(const Layout& layout) {
  uint64_t all = 0;
  if ((layout.row_major ? layout.rows : layout.columns) > 1) all |= uint64_t(layout.stride);
  if (layout.batch > 1) all |= uint64_t(layout.batch_stride);
  return alignment_of(all * layout.element_bytes());
}

const Layout& layout_of(const MatrixProduct& p, int i) {
  const Layout* const all[] = {&p.a, &p.b, &p.c, &p.d};
  return *all[i];
}

/// Empty where `elements` from `data` on lie in one allocation that the device reaches.
std::string misplaced(const std::string& name, const void* data, int64_t elements,
                      size_t element_bytes, int device) {
  if (!elements) return "";
  Allocation allocation;
  if (!find_allocation(data, &allocation)) return name + " is no device memory";
  const auto before =
      size_t(static_cast<const char*>(data) - static_cast<const char*>(allocation.base));
  if (size_t(elements) * element_bytes > allocation.bytes - before)
    return name + " does not lie in one allocation";
  if (allocation.device != device && !peer_access_enabled(device, data))
    return name + " is memory of cuda:" + std::to_string(allocation.device) +
           ", to which cuda:" + std::to_string(device) + " has no access";
  return "";
}

std::string number(uint64_t n) { return std::to_string(n); }

uint16_t epilogue_alignment(const void* p) {
  return std::min<uint16_t>(16, alignment_of(reinterpret_cast<uintptr_t>(p)));
}

/// What is wrong with an address of the epilogue; empty where nothing is.
std::string wrong_address(const std::string& name, const void* p, int64_t elements, size_t width,
                          uint16_t promised, int device) {
  if (std::string text = misplaced(name, p, elements, width, device); !text.empty()) return text;
  if (reinterpret_cast<uintptr_t>(p) % width) return name + " begins within an element";
  if (const auto at = epilogue_alignment(p); at < promised)
    return name + " begins at a multiple of " + number(at) +
           " bytes, and the algorithm was chosen for one of " + number(promised);
  return "";
}

/// Do two pieces of memory share bytes?
bool overlap(const void* a, uint64_t a_bytes, const void* b, uint64_t b_bytes) {
  const auto x = reinterpret_cast<uintptr_t>(a), y = reinterpret_cast<uintptr_t>(b);
  return x < y + b_bytes && y < x + a_bytes;
}

/// What is wrong with the operands of the epilogue.
std::string epilogue_objection(const Algorithm& algorithm, const MatrixProduct& p,
                               const ProductMemory& m, int device) {
  const size_t width = p.d.element_bytes();
  if (p.bias)
    if (std::string text =
            wrong_address("the bias", p.bias, p.d.rows, width, algorithm.bias, device);
        !text.empty())
      return text;
  if (p.sums != Sums::kNone) {
    if (!p.sums_to) return "the bias gradient has no address";
    if (std::string text = wrong_address("the bias gradient", p.sums_to, sums_count(p), width,
                                         algorithm.bias, device);
        !text.empty())
      return text;
  }
  if (p.has_aux) {
    if (!p.aux) return "the auxiliary matrix has no address";
    const Layout aux = aux_layout(p);
    if (std::string text = wrong_address("the auxiliary matrix", p.aux, aux.extent(), width,
                                         algorithm.aux, device);
        !text.empty())
      return text;
    if (overlap(p.aux, uint64_t(aux.extent()) * width, m.d, uint64_t(p.d.extent()) * width))
      return "the auxiliary matrix overlaps D";
  }
  return "";
}

}  // namespace

// Takes a workspace as if it cut each sum into parts, with a result for each part. Where the
// workspace is too small for them, the algorithm cuts no sum.
Algorithm algorithm_for(const MatrixProduct& p, const Preference& preference) {
  Algorithm algorithm{};
  const auto elements = uint64_t(std::max<int64_t>(1, p.d.rows * p.d.columns));
  const uint64_t wanted = std::min(kMostWorkspace, (elements * sizeof(float) + kWorkspaceUnit - 1) /
                                                       kWorkspaceUnit * kWorkspaceUnit);
  if (wanted <= preference.workspace) algorithm.workspace = static_cast<uint32_t>(wanted);
  for (int i = 0; i < 4; ++i) {
    algorithm.pointers[i] = alignment_of(preference.alignment[i]);
    algorithm.lines[i] = std::min(algorithm.pointers[i], lines_of(layout_of(p, i)));
  }
  algorithm.bias = epilogue_alignment(p.sums_to ? p.sums_to : p.bias);
  algorithm.aux = epilogue_alignment(p.aux);
  algorithm.halves = takes_halves(p, preference.reductions);
  return algorithm;
}

Algorithm algorithm_for_call(const MatrixProduct& p) {
  Preference as_it_is;
  for (uint32_t& alignment : as_it_is.alignment) alignment = 1;
  return algorithm_for(p, as_it_is);
}

std::string objection(const Algorithm& algorithm, const MatrixProduct& p, const ProductMemory& m,
                      int device) {
  const void* const data[] = {m.a, m.b, m.c, m.d};
  for (int i = 0; i < 4; ++i) {
    if (i == 2 && p.beta == 0) continue;  // is not read
    const Layout& layout = layout_of(p, i);
    const size_t width = layout.element_bytes();  // D may be wider than A and B
    const std::string name = kNames[i];
    if (std::string text = misplaced(name, data[i], layout.extent(), width, device); !text.empty())
      return text;
    if (!layout.extent()) continue;
    const size_t wanted = std::max<size_t>(algorithm.pointers[i], width);
    if (const auto at = alignment_of(reinterpret_cast<uintptr_t>(data[i])); at < wanted)
      return name + " begins at a multiple of " + number(at) +
             " bytes, and the algorithm was chosen for one of " + number(wanted);
    if (const auto lines = lines_of(layout); lines < algorithm.lines[i])
      return "strides of " + name + " are multiples of " + number(lines) +
             " bytes, and the algorithm was chosen for multiples of " + number(algorithm.lines[i]);
  }
  if (std::string text = epilogue_objection(algorithm, p, m, device); !text.empty()) return text;
  if (p.d.batch > 1 && p.d.batch_stride < p.d.extent() - (p.d.batch - 1) * p.d.batch_stride)
    return "the matrices of D overlap";
  const auto is_like = [](const Layout& x, const Layout& y) {
    return x.stride == y.stride && x.batch_stride == y.batch_stride;
  };
  if (p.beta != 0 && m.c == m.d && !is_like(p.c, p.d))
    return "C is D, and their strides are not the same";
  if (m.workspace_bytes < algorithm.workspace || (algorithm.workspace && !m.workspace))
    return "the workspace has " + number(m.workspace ? m.workspace_bytes : 0) +
           " bytes, and the algorithm wants " + number(algorithm.workspace);
  if (reinterpret_cast<uintptr_t>(m.workspace) % kWorkspaceUnit)
    return "the workspace does not begin at a multiple of 256";
  return m.workspace
             ? misplaced("the workspace", m.workspace, int64_t(m.workspace_bytes), 1, device)
             : "";
}

// Fills the workspace with NaN (in every type) before and after the product. So code that keeps
// data there, reads it or expects zeros gets NaN.
void run_with_workspace(const Algorithm& algorithm, const MatrixProduct& p,
                        const ProductMemory& m) {
  const auto fill = [&] {
    if (algorithm.workspace) std::memset(m.workspace, 0xff, algorithm.workspace);
  };
  if (algorithm.workspace) host_writes(m.workspace, algorithm.workspace);
  fill();
  run_product(p, m.a, m.b, m.c, m.d);
  fill();
}

}  // namespace ramet::emulated
