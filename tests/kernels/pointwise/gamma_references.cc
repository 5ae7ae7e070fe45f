// The gamma functions of references.h, and the inverse of erf, by Boost.Math in long double. They
// have a file of their own: Boost's headers are large.
#include <boost/math/special_functions/digamma.hpp>
#include <boost/math/special_functions/erf.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <boost/math/special_functions/polygamma.hpp>

#include "tests/kernels/pointwise/references.h"

namespace ramet::references {
namespace {

using namespace boost::math::policies;
using Values = policy<domain_error<ignore_error>, pole_error<ignore_error>,
                      overflow_error<ignore_error>, evaluation_error<ignore_error>>;

bool at_pole(R x) { return x <= 0 && std::floor(x) == x; }  // -infinity too

}  // namespace

R lgamma_of(R x) {
  if (std::isnan(x)) return x;
  if (std::isinf(x) || at_pole(x)) return INFINITY;
  return boost::math::lgamma(x, Values());
}
R digamma_of(R x) {
  if (std::isnan(x) || (std::isinf(x) && x > 0)) return x;
  if (x == 0) return std::copysign(INFINITY, -x);
  if (at_pole(x)) return NAN;
  return boost::math::digamma(x, Values());
}
R polygamma_of(R n, R x) {
  const int order = static_cast<int>(n);
  if (order == 0) return digamma_of(x);
  if (std::isnan(x)) return x;
  if (std::isinf(x)) return x > 0 ? 0 : NAN;
  if (at_pole(x)) return order % 2 ? INFINITY : -INFINITY;
  return boost::math::polygamma(order, x, Values());
}
R erfinv_of(R x) {
  if (!(std::fabs(x) < 1)) return std::fabs(x) == 1 ? x * INFINITY : NAN;
  return boost::math::erf_inv(x, Values());
}

}  // namespace ramet::references
