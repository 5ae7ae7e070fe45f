#include "runtime/cuda/fault_words.h"

namespace ramet {
namespace cuda {
namespace {

using Check = decltype(FaultWord::check);

__device__ Check check_of(const FaultWord& word) {
  return *static_cast<const volatile Check*>(&word.check);
}

__global__ void read_fault_checks_kernel(FaultWord* to, const FaultWord* words) {
  to[threadIdx.x].check = check_of(words[threadIdx.x]);
}

__global__ void clear_faults_kernel(FaultWord* words) {
  FaultWord& word = words[threadIdx.x];
  if (check_of(word) != 0) atomicExch(&word.check, Check{0});
}

}  // namespace

cudaError_t read_fault_checks(FaultWord* to, const FaultWord* words, cudaStream_t stream) {
  return launch(read_fault_checks_kernel, dim3(1), dim3(kFaultWords), 0, stream, to, words);
}

cudaError_t clear_faults(FaultWord* words, cudaStream_t stream) {
  return launch(clear_faults_kernel, dim3(1), dim3(kFaultWords), 0, stream, words);
}

}  // namespace cuda
}  // namespace ramet
