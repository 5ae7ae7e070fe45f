// Scaled dot-product attention without its matrix of scores: rows are normalised while blocks of
// keys go by (Milakov and Gimelshein 2018; Dao et al. 2022), and the backward computes the blocks
// again from the logarithm of each row's sum.
#pragma once
#include "kernels/compute_bytes.h"
#include "kernels/kernel.h"

namespace ramet {
namespace kernels {

/// Most columns of a row of q, k, v.
inline constexpr int64_t kAttentionColumns = 128;

/// [batch, heads, rows, columns] with any strides, in elements, but neighbouring columns.
struct AttentionMatrix {
  void* data;
  int64_t batch, head, row;
};

/// Which body runs on a GPU.
enum class AttentionBody : uint8_t {
  kAuto,         // the fastest that takes these arguments
  kPlain,        // any floating type, computed in float (double in double)
  kTensorCores,  // mma.sync: 16-bit floats, `columns` and all strides multiples of 8, 16-byte
                 // aligned operands, at most kAttentionTensorRows rows, a scale that is a normal
                 // float times log2(e), too; the probabilities and their gradients rounded to 16
                 // bits, powers of two within 2 units in the last place of float
  kWgmma,        // the same where `columns` is 64 or 128, the scale positive, k_rows is not 0 and
                 // no stride is 0, on a card of compute capability 9.0; the backward as above.
                 // Only where RAMET_CUDA_ATTENTION=wgmma asks for it
};
/// So that positions, and those of the rows that fill a tile up, are ints.
inline constexpr int64_t kAttentionTensorRows = INT32_MAX - 1024;

/// o[i] = sum_j p[i][j] v[j], p[i] = softmax over j of scale q[i] . k[j], for each batch and head;
/// `causal`: j <= i alone. log_sum[i] = log of sum_j exp(scale q[i] . k[j]), -inf where there is
/// nothing to add up (no keys, or scores of -inf only); then o[i] is 0.
/// REQUIRES: a floating dtype, columns <= kAttentionColumns, log_sum a dense [batch, heads, q_rows]
/// of its compute type; o dense; attention_workspace bytes.
struct AttentionArgs {
  AttentionMatrix q, k, v, o;
  void* log_sum;
  void* workspace;
  int64_t batch, heads, q_rows, k_rows, columns;
  double scale;
  ScalarType dtype;
  bool causal;
  AttentionBody body;
};
RAMET_KERNEL(attention_forward, AttentionArgs);

/// With d[i] = do[i] . o[i] and s[i][j] = p[i][j] (do[i] . v[j] - d[i]) scale:
///   dq[i] = sum_j s[i][j] k[j],  dk[j] = sum_i s[i][j] q[i],  dv[j] = sum_i p[i][j] do[i],
/// each sum in order, by one task (block of threads). dq.data, or both of dk.data and dv.data, may
/// be null.
struct AttentionBackwardArgs {
  AttentionMatrix q, k, v, o, grad, dq, dk, dv;
  const void* log_sum;
  void* workspace;
  int64_t batch, heads, q_rows, k_rows, columns;
  double scale;
  ScalarType dtype;
  bool causal;
  AttentionBody body;
};
RAMET_KERNEL(attention_backward, AttentionBackwardArgs);

/// Rows of a block on the CPU.
inline constexpr int64_t kAttentionRows = 64;

/// Values (of the compute type) of one thread's buffers on the CPU: six blocks of rows, two blocks
/// of scores, a few values for each row, what the products pack.
constexpr int64_t attention_slot_values(int64_t columns) {
  return 6 * kAttentionRows * ((columns + 15) / 16 * 16) + 2 * kAttentionRows * kAttentionRows +
         4 * kAttentionRows + 40 * 1024;
}
/// Bytes, aligned to 64; `slots` is max_parallel_slots(). The backward's d[i] come first; on a GPU
/// there may be two values for each row.
constexpr int64_t attention_workspace(ScalarType t, int64_t rows, int64_t columns, bool backward,
                                      bool on_cpu, int slots) {
  return ((backward ? (rows + 15) / 16 * (on_cpu ? 16 : 32) : 0) +
          (on_cpu ? slots * attention_slot_values(columns) : 0)) *
         compute_bytes(t);
}

}  // namespace kernels
}  // namespace ramet
