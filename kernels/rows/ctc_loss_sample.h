// One sample of the CTC loss: its lengths, its states and its memory, for CPUs and GPUs.
#pragma once
#include "kernels/rows/ctc_loss.h"
#include "kernels/simd/scalar_math.h"
#include "kernels/util.h"

namespace ramet::kernels::RAMET_VARIANT {

struct CtcSample {
  const int64_t* labels;
  int64_t steps, count;  // of the input; of labels
  int64_t begin;         // of its states in a row with the states of all samples
  int64_t blank;

  RAMET_INLINE CtcSample(const CtcSamples& a, int64_t b) {
    const int64_t at = a.offsets ? imin(imax(0, a.offsets[b]), a.labels) : b * a.padded;
    const int64_t room = a.offsets ? a.labels - at : a.padded;
    labels = a.targets + at;
    steps = imin(imax(0, a.input_lengths[b]), a.time);
    count = imin(imax(0, a.target_lengths[b]), room);
    begin = ctc_states(at, b);
    blank = a.blank;
  }
  RAMET_INLINE int64_t states() const { return 2 * count + 1; }
  /// Elements of a row: its states and the two that no path reaches.
  RAMET_INLINE int64_t row() const { return states() + 2; }
  RAMET_INLINE int64_t label(int64_t state) const { return state % 2 ? labels[state / 2] : blank; }
  /// May a path come to this state from state - 2?
  RAMET_INLINE bool skips(int64_t state) const {
    return state % 2 && state > 1 && labels[state / 2] != labels[state / 2 - 1];
  }
};

template <class T> RAMET_INLINE T ctc_never() { return -static_cast<T>(__builtin_inf()); }
/// The amount by which a row's largest element shifts the next row: 0 if it is not finite.
template <class T> RAMET_INLINE T ctc_shift(T largest) {
  return largest - largest == T(0) ? largest : T(0);
}

/// log_probs of one class at step t of sample b.
template <class T>
RAMET_INLINE T ctc_emission(const CtcSamples& a, int64_t t, int64_t b, int64_t label) {
  if (label < 0 || label >= a.classes) return ctc_never<T>();
  return static_cast<const T*>(
      a.log_probs)[t * a.strides[0] + b * a.strides[1] + label * a.strides[2]];
}
/// -log p from the last row of alphas and the shift subtracted from it.
template <class T>
RAMET_INLINE double ctc_negative(const CtcSample& s, const T* last, double shift) {
  if (s.steps == 0) return s.count == 0 ? 0.0 : static_cast<double>(__builtin_inf());
  const double a = static_cast<double>(last[s.states() - 1]),
               b = s.count ? static_cast<double>(last[s.states() - 2]) : ctc_never<double>(),
               top = a > b ? a : b;
  if (a == ctc_never<double>() && b == a) return static_cast<double>(__builtin_inf());
  return -(shift + top + vlog(vexp(a - top) + vexp(b - top)));
}
/// For a loss that is not finite: true, and the value that fills the gradient.
RAMET_INLINE bool ctc_is_filled(double negative, bool zero_infinity, double& with) {
  if (negative - negative == 0) return false;
  const bool zero = zero_infinity && negative > 0;
  with = zero ? 0.0 : static_cast<double>(__builtin_nanf(""));
  return true;
}

}  // namespace ramet::kernels::RAMET_VARIANT
