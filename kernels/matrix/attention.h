// Scaled dot-product attention without its matrix of scores. Rows are normalised during the loop
// over blocks of keys (Milakov and Gimelshein 2018; Dao et al. 2022). The backward pass computes
// the blocks again from the logarithm of each row's sum.
#pragma once
#include "kernels/compute_bytes.h"
#include "kernels/kernel.h"

namespace ramet {
namespace kernels {

/// Most columns of a row of q, k, v.
inline constexpr int64_t kAttentionColumns = 128;

/// [batch, heads, rows, columns]. Columns are neighbours; the other strides, in elements, are free.
struct AttentionMatrix {
  void* data;
  int64_t batch, head, row;
};

/// The kernel that runs on a GPU.
enum class AttentionBody : uint8_t {
  kAuto,         // the fastest kernel for these arguments
  kPlain,        // any floating type, computed in float (double in double)
  kTensorCores,  // mma.sync, 16-bit floats. `columns` and all strides are multiples of 8, operands
                 // are 16-byte aligned, and there are at most kAttentionTensorRows rows. The scale,
                 // also times log2(e), is a normal float. Probabilities and their gradients are
                 // rounded to 16 bits; powers of two are within 2 units in the last place of float.
  kWgmma,        // The same if `columns` is 64 or 128, the scale is positive, k_rows is not 0 and
                 // no stride is 0. Needs a GPU of compute capability 9.0. The backward pass is as
                 // above. Only if RAMET_CUDA_ATTENTION=wgmma asks for it.
};
/// With this limit positions, including those of the rows that fill a tile, are ints.
inline constexpr int64_t kAttentionTensorRows = INT32_MAX - 1024;

/// o[i] = sum_j p[i][j] v[j], p[i] = softmax over j of scale q[i] . k[j], for each batch and head.
/// `causal`: only j <= i. log_sum[i] = log of sum_j exp(scale q[i] . k[j]). If there is nothing to
/// add (no keys, or only scores of -inf), log_sum[i] is -inf and o[i] is 0. REQUIRES: a floating
/// dtype, columns <= kAttentionColumns, log_sum a dense [batch, heads, q_rows] of its compute type;
/// rows of o do not overlap; attention_workspace bytes.
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
///   dq[i] = sum_j s[i][j] k[j],  dk[j] = sum_i s[i][j] q[i],  dv[j] = sum_i p[i][j] do[i].
/// One task (block of threads) forms each sum in order. dq.data, or both of dk.data and dv.data,
/// may be null. The three may be parts of one tensor.
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

/// Values (of the compute type) of one thread's buffers on the CPU. They are six blocks of rows,
/// two blocks of scores, a few values for each row, and packed operands of the products.
constexpr int64_t attention_slot_values(int64_t columns) {
  return 6 * kAttentionRows * ((columns + 15) / 16 * 16) + 2 * kAttentionRows * kAttentionRows +
         4 * kAttentionRows + 40 * 1024;
}
/// Bytes, aligned to 64; `slots` is max_parallel_slots(). The backward pass's d[i] come first. On a
/// GPU there may be two values for each row.
constexpr int64_t attention_workspace(ScalarType t, int64_t rows, int64_t columns, bool backward,
                                      bool on_cpu, int slots) {
  return ((backward ? (rows + 15) / 16 * (on_cpu ? 16 : 32) : 0) +
          (on_cpu ? slots * attention_slot_values(columns) : 0)) *
         compute_bytes(t);
}

}  // namespace kernels
}  // namespace ramet
