// The vector layer's contract: every word, lane by lane, against the same word for one number. The
// branch is the one that a compiler takes without options: SSE2 on x86-64, NEON on ARM64.
#define RAMET_VARIANT words
#include "kernels/simd/vec.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace ramet::kernels::RAMET_VARIANT {
namespace {

uint32_t bits_of(float x) {
  uint32_t b;
  std::memcpy(&b, &x, sizeof b);
  return b;
}

// Numbers where processors differ, and their neighbours.
std::vector<float> numbers() {
  std::vector<float> list;
  for (float x :
       {0.0f, 0.25f, 0.5f, 1.0f, 1.5f, 2.5f, 3.5f, 1e-40f, FLT_TRUE_MIN, FLT_MIN, FLT_MAX,
        8388607.5f, 8388608.0f, 2147483520.0f, 2147483648.0f, 4294967296.0f, 1e30f, INFINITY, NAN})
    for (float y : {x, std::nextafter(x, 0.0f), std::nextafter(x, INFINITY)}) {
      list.push_back(y);
      list.push_back(-y);
    }
  return list;
}

// f(x, y, i): x and y have numbers()[i + lane] and all pairs come up.
template <class F> void each_pair(const F& f) {
  const std::vector<float> list = numbers();
  for (size_t i = 0; i < list.size(); ++i)
    for (size_t j = 0; j + VL <= list.size(); ++j) f(set1(list[i]), load(&list[j]));
}
float lane(vf v, int i) {
  float t[VL];
  store(t, v);
  return t[i];
}
int32_t lane(vi v, int i) {
  int32_t t[VL];
  std::memcpy(t, &v, sizeof t);
  return t[i];
}
bool lane(vm m, vf, int i) {
  uint8_t t[VL];
  store_mask(t, m);
  EXPECT_LE(t[i], 1);
  return t[i] != 0;
}
void expect_same(float got, float want, float x, float y) {
  EXPECT_TRUE(std::isnan(want) ? std::isnan(got) : bits_of(got) == bits_of(want))
      << x << " " << y << ": " << got << ", expected " << want;
}

TEST(Vec, WordsOfTwoNumbers) {
  each_pair([](vf x, vf y) {
    for (int i = 0; i < VL; ++i) {
      const float a = lane(x, i), b = lane(y, i);
      // Of a NaN, too, the bits: it is taken as it is.
      EXPECT_EQ(bits_of(lane(max(x, y), i)), bits_of(a > b ? a : b)) << a << " " << b;
      EXPECT_EQ(bits_of(lane(min(x, y), i)), bits_of(a < b ? a : b)) << a << " " << b;
      EXPECT_EQ(lane(lt(x, y), x, i), a < b);
      EXPECT_EQ(lane(le(x, y), x, i), a <= b);
      EXPECT_EQ(lane(eq(x, y), x, i), a == b);
      EXPECT_EQ(lane(ne(x, y), x, i), !(a == b));
      EXPECT_EQ(lane(both(lt(x, y), ne(x, x)), x, i), false);
      EXPECT_EQ(lane(either(lt(x, y), ne(y, y)), x, i), a < b || std::isnan(b));
      EXPECT_EQ(lane(andnot(ne(x, y), lt(x, y)), x, i), !(a == b) && !(a < b));
      EXPECT_EQ(bits_of(lane(pick(lt(x, y), x, y), i)), bits_of(a < b ? a : b));
      EXPECT_EQ(bits_of(lane(keep(lt(x, y), x), i)), bits_of(a < b ? a : 0.0f));
      expect_same(lane(x + y, i), a + b, a, b);
      expect_same(lane(x * y, i), a * b, a, b);
      expect_same(lane(x / y, i), a / b, a, b);
      const float once = std::fma(a, b, 1.0f), twice = a * b + 1.0f;
      expect_same(lane(fma(x, y, set1(1.0f)), i), RAMET_FUSED_MULTIPLY ? once : twice, a, b);
    }
  });
}

TEST(Vec, WordsOfOneNumber) {
  const std::vector<float> list = numbers();
  for (size_t j = 0; j + VL <= list.size(); ++j) {
    const vf x = load(&list[j]);
    for (int i = 0; i < VL; ++i) {
      const float a = list[j + static_cast<size_t>(i)];
      expect_same(lane(sqrt(x), i), std::sqrt(a), a, a);
      expect_same(lane(vround(x), i), std::nearbyint(a), a, a);
      expect_same(lane(vfloor(x), i), std::floor(a), a, a);
      expect_same(lane(vceil(x), i), std::ceil(a), a, a);
      expect_same(lane(vtrunc(x), i), std::trunc(a), a, a);
      const bool fits = a < 2147483648.0f && a >= -2147483648.0f;
      EXPECT_EQ(lane(toint(x), i), fits ? static_cast<int32_t>(std::nearbyint(a)) : INT32_MIN) << a;
      if (fits) { EXPECT_EQ(lane(round(x), i), std::nearbyint(a)); }
      EXPECT_EQ(bits_of(lane(float_of(bits(x)), i)), bits_of(a));
    }
  }
}

TEST(Vec, WordsOfIntegers) {
  for (int32_t a : {0, 1, -1, 7, 1 << 30, INT32_MAX, INT32_MIN})
    for (int32_t b : {0, 1, -1, 12345, INT32_MAX, INT32_MIN}) {
      const vi x = seti(a), y = seti(b);
      const auto ua = static_cast<uint32_t>(a), ub = static_cast<uint32_t>(b);
      EXPECT_EQ(lane(addi(x, y), VL - 1), static_cast<int32_t>(ua + ub));
      EXPECT_EQ(lane(subi(x, y), 0), static_cast<int32_t>(ua - ub));
      EXPECT_EQ(lane(andi(x, y), 0), a & b);
      EXPECT_EQ(lane(ori(x, y), 0), a | b);
      EXPECT_EQ(lane(xori(x, y), 0), a ^ b);
      EXPECT_EQ(lane(shl<3>(x), 0), static_cast<int32_t>(ua << 3));
      EXPECT_EQ(lane(sra<3>(x), 0), a >> 3);
      EXPECT_EQ(lane(tofloat(x), 0), static_cast<float>(a));
    }
}

TEST(Vec, PartsOfAVector) {
  float from[VL], to[VL];
  for (int i = 0; i < VL; ++i) from[i] = static_cast<float>(i + 1);
  for (int n = 0; n <= VL; ++n) {
    for (int i = 0; i < VL; ++i) EXPECT_EQ(lane(loadn(from, n), i), i < n ? from[i] : 0.0f);
    for (float& x : to) x = -1;
    storen(to, load(from), n);
    for (int i = 0; i < VL; ++i) EXPECT_EQ(to[i], i < n ? from[i] : -1.0f);
  }
  alignas(64) float streamed[VL];
  stream(streamed, load(from));
  stream_fence();
  EXPECT_EQ(std::memcmp(streamed, from, sizeof from), 0);
  for (int at = 0; at < VL; ++at) {
    float one[VL] = {};
    one[at] = 1;
    EXPECT_TRUE(any(ne(load(one), vf{})));
  }
  EXPECT_FALSE(any(ne(vf{}, vf{})));
}

TEST(Vec, Transposes) {
  vf r[VL];
  for (int i = 0; i < VL; ++i)
    for (int j = 0; j < VL; ++j) r[i][j] = static_cast<float>(VL * i + j);
  transpose(r);
  for (int i = 0; i < VL; ++i)
    for (int j = 0; j < VL; ++j) EXPECT_EQ(lane(r[i], j), static_cast<float>(VL * j + i));
}

}  // namespace
}  // namespace ramet::kernels::RAMET_VARIANT
