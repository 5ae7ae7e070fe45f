#!/usr/bin/env bash
# What tools/cuda/check_ptx.py says of machine code that is as it should be, and of a stack, narrow loads and a kernel that is
# gone. Needs nvcc.
set -euo pipefail

check=$PWD/tools/cuda/check_ptx.py
if ! ls "${CUDA_PATH:-/usr/local/cuda}/bin/nvcc" >/dev/null 2>&1; then
  [[ $(python3 "$check") == *"not run: no nvcc"* ]] || { echo "expected that it says it was not run"; exit 1; }
  echo "skipped: no CUDA toolkit (CUDA_PATH, /usr/local/cuda)"
  exit 0
fi
work=$TEST_TMPDIR/work
mkdir -p "$work"/{good,bad}
failed=0
expect() { # what is printed, a part of it that must be there
  [[ $1 == *"$2"* ]] || { echo "expected: $2"; echo "got: $1"; failed=1; }
}

cat >"$work/good/fill.cu" <<'CU'
__global__ void fill(float* p) { p[threadIdx.x] = 1; }
CU
expect "$(python3 "$check" --folder "$work/good")" "check_ptx: 1 kernels in 1 files, 0 complaints"

cat >"$work/bad/softmax.cu" <<'CU'
template <class T> __global__ void forward_kernel(const T* in, T* out) { out[threadIdx.x] = in[threadIdx.x] * T(2); }
template <class T> __global__ void backward_kernel(const float4* in, float4* out) { out[threadIdx.x] = in[threadIdx.x]; }
template __global__ void forward_kernel<float>(const float*, float*);
template __global__ void backward_kernel<float>(const float4*, float4*);
CU
cat >"$work/bad/stack.cu" <<'CU'
__global__ void keeps(const int* in, int* out) {
  int list[64];
  for (int i = 0; i < 64; ++i) list[in[i] & 63] = i;
  out[threadIdx.x] = list[in[threadIdx.x] & 63];
}
CU
code=0
printed=$(python3 "$check" --folder "$work/bad") || code=$?
[[ $code == 1 ]] || { echo "exit code: got $code, expected 1"; failed=1; }
expect "$printed" "forward_kernelIfEvPKT_PS0_ has no 16-byte load"
expect "$printed" "no kernel named ...forward_kernelINS1_10BfloatBits..."
expect "$printed" "keepsPKiPi has 256 bytes of stack"
expect "$printed" "3 kernels in 2 files, 4 complaints"
[[ $printed != *backward_kernelIfEv* ]] || { echo "16-byte loads were not seen: $printed"; failed=1; }
exit $failed
