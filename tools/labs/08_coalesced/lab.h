// Lab 8: global memory that records which thread touches what, and what the grader calls.
#pragma once
#include "runtime/cuda/gpu.h"
#include "tools/labs/grader.h"

namespace ramet::labs {

/// The elements that each thread has touched, in its order.
struct Trace {
  unsigned *elements, *counts;  // `room` for each thread, and how many it has
  unsigned room;

  __device__ void note(int element) const {
    const unsigned block = blockIdx.y * gridDim.x + blockIdx.x,
                   thread = (block * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x,
                   k = counts[thread]++;
    if (k < room) elements[thread * room + k] = static_cast<unsigned>(element);
  }
};

/// A matrix in global memory that is read: x[i] is element i, row after row.
class Loads {
 public:
  const float* data;
  Trace trace;
  __device__ float operator[](int i) const {
    trace.note(i);
    return data[i];
  }
};

/// One that is written: y.set(i, value).
class Stores {
 public:
  float* data;
  Trace trace;
  __device__ void set(int i, float value) const {
    trace.note(i);
    data[i] = value;
  }
};

struct CoalescedLab {
  /// y, of `columns` rows, is the transpose of x, of `rows` rows.
  cudaError_t (*transpose)(Loads x, Stores y, int rows, int columns);
};
void grade(const CoalescedLab& answer, Report& report);

}  // namespace ramet::labs

#define LAB_ANSWER(space) \
  ramet::labs::CoalescedLab { &space::transpose }
