#include "kernels/copy/chunk.h"

#include "kernels/copy/cast.h"
#include "kernels/simd/independent.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

// Strided loops do not become faster as gathers, and the code would be three times as large.
#define RAMET_KEEP_SCALAR __asm__ volatile("")

template <class S, class C> void load_as(const void* p, int64_t stride, int64_t n, C* out) {
  const S* x = static_cast<const S*>(p);
  if (stride == 1) {
    RAMET_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) out[i] = Cast<C, S>::load(x[i]);
  } else if (stride == 0) {
    const C value = n > 0 ? Cast<C, S>::load(*x) : C{};
    for (int64_t i = 0; i < n; ++i) out[i] = value;
  } else {
    for (int64_t i = 0; i < n; ++i) {
      RAMET_KEEP_SCALAR;
      out[i] = Cast<C, S>::load(x[i * stride]);
    }
  }
}
template <class S, class C> void store_as(void* p, int64_t stride, int64_t n, const C* in) {
  S* x = static_cast<S*>(p);
  if (stride == 1) {
    RAMET_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) x[i] = Cast<C, S>::store(in[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) {
      RAMET_KEEP_SCALAR;
      x[i * stride] = Cast<C, S>::store(in[i]);
    }
  }
}

template <class C> void load_any(const void* p, ScalarType t, int64_t stride, int64_t n, C* out) {
  switch (t) {
    case ScalarType::Bool: return load_as<BoolByte>(p, stride, n, out);
    case ScalarType::Byte: return load_as<uint8_t>(p, stride, n, out);
    case ScalarType::Char: return load_as<int8_t>(p, stride, n, out);
    case ScalarType::Short: return load_as<int16_t>(p, stride, n, out);
    case ScalarType::Int: return load_as<int32_t>(p, stride, n, out);
    case ScalarType::Long: return load_as<int64_t>(p, stride, n, out);
    case ScalarType::UInt16: return load_as<uint16_t>(p, stride, n, out);
    case ScalarType::UInt32: return load_as<uint32_t>(p, stride, n, out);
    case ScalarType::Half: return load_as<HalfBits>(p, stride, n, out);
    case ScalarType::BFloat16: return load_as<BfloatBits>(p, stride, n, out);
    case ScalarType::Float: return load_as<float>(p, stride, n, out);
    case ScalarType::Double: return load_as<double>(p, stride, n, out);
    case ScalarType::Undefined: break;
  }
}
template <class C> void store_any(void* p, ScalarType t, int64_t stride, int64_t n, const C* in) {
  switch (t) {
    case ScalarType::Bool: return store_as<BoolByte>(p, stride, n, in);
    case ScalarType::Byte: return store_as<uint8_t>(p, stride, n, in);
    case ScalarType::Char: return store_as<int8_t>(p, stride, n, in);
    case ScalarType::Short: return store_as<int16_t>(p, stride, n, in);
    case ScalarType::Int: return store_as<int32_t>(p, stride, n, in);
    case ScalarType::Long: return store_as<int64_t>(p, stride, n, in);
    case ScalarType::UInt16: return store_as<uint16_t>(p, stride, n, in);
    case ScalarType::UInt32: return store_as<uint32_t>(p, stride, n, in);
    case ScalarType::Half: return store_as<HalfBits>(p, stride, n, in);
    case ScalarType::BFloat16: return store_as<BfloatBits>(p, stride, n, in);
    case ScalarType::Float: return store_as<float>(p, stride, n, in);
    case ScalarType::Double: return store_as<double>(p, stride, n, in);
    case ScalarType::Undefined: break;
  }
}

}  // namespace

void load_chunk(const void* p, ScalarType t, int64_t s, int64_t n, float* out) {
  load_any(p, t, s, n, out);
}
void load_chunk(const void* p, ScalarType t, int64_t s, int64_t n, double* out) {
  load_any(p, t, s, n, out);
}
void load_chunk(const void* p, ScalarType t, int64_t s, int64_t n, int64_t* out) {
  load_any(p, t, s, n, out);
}
void store_chunk(void* p, ScalarType t, int64_t s, int64_t n, const float* in) {
  store_any(p, t, s, n, in);
}
void store_chunk(void* p, ScalarType t, int64_t s, int64_t n, const double* in) {
  store_any(p, t, s, n, in);
}
void store_chunk(void* p, ScalarType t, int64_t s, int64_t n, const int64_t* in) {
  store_any(p, t, s, n, in);
}

}  // namespace ramet::kernels::RAMET_VARIANT
