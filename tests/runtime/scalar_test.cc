#include "runtime/base/scalar.h"

#include <cmath>
#include <limits>
#include <sstream>

#include "tests/runtime/expect_error.h"

namespace ramet {
namespace {

TEST(Scalar, Kinds) {
  EXPECT_EQ(Scalar(1).type(), kLong);
  EXPECT_EQ(Scalar(1.0f).type(), kDouble);
  EXPECT_EQ(Scalar(true).type(), kBool);
  EXPECT_EQ(Scalar('a').type(), kLong);
  EXPECT_EQ(Scalar(Half(0.5f)).toDouble(), 0.5);
  EXPECT_EQ(Scalar(BFloat16(-2.0f)).toDouble(), -2.0);
  EXPECT_EQ(Scalar().toLong(), 0);
  EXPECT_TRUE(Scalar(2).isIntegral(false) && Scalar(false).isIntegral(true) &&
              !Scalar(false).isIntegral(false));
  EXPECT_TRUE(Scalar(2.5).isFloatingPoint() && Scalar(true).isBoolean());
}

TEST(Scalar, Converts) {
  EXPECT_EQ(Scalar(2.9).toLong(), 2);
  EXPECT_EQ(Scalar(-2.9).toInt(), -2);
  EXPECT_EQ(Scalar(3).to<float>(), 3.0f);
  EXPECT_TRUE(Scalar(2).toBool() && Scalar(0.5).toBool() && !Scalar(0.0).toBool());
  EXPECT_EQ(Scalar(true).to<int8_t>(), 1);
  EXPECT_EQ(Scalar(int64_t{9007199254740993}).toLong(), 9007199254740993);
  EXPECT_EQ(Scalar(std::numeric_limits<int64_t>::min()).toLong(),
            std::numeric_limits<int64_t>::min());
  EXPECT_EQ(Scalar(-9223372036854775808.0).toLong(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(Scalar(255).to<uint8_t>(), 255);
  EXPECT_EQ(Scalar(-1).to<uint8_t>(), 255);  // LibTorch's latitude
  EXPECT_EQ(Scalar(-255).to<uint8_t>(), 1);
  EXPECT_EQ(Scalar(127).to<int8_t>(), 127);
  EXPECT_EQ(Scalar(-128).to<int8_t>(), -128);
}

// The limits are those of c10::overflows.
TEST(Scalar, RefusesWhatDoesNotFit) {
  EXPECT_ERROR(Scalar(256).to<uint8_t>(), Error,
               "value cannot be converted to type uint8 without overflow: got 256");
  EXPECT_ERROR(Scalar(-256).to<uint8_t>(), Error, "without overflow: got -256");
  EXPECT_ERROR(Scalar(-1.0).to<uint8_t>(), Error, "without overflow");
  EXPECT_ERROR(Scalar(128).to<int8_t>(), Error, "int8 without overflow");
  EXPECT_ERROR(Scalar(-129).to<int8_t>(), Error, "int8 without overflow");
  EXPECT_ERROR(Scalar(40000).to<int16_t>(), Error, "int16 without overflow");
  EXPECT_ERROR(Scalar(int64_t{1} << 31).toInt(), Error,
               "value cannot be converted to type int32 without overflow");
  EXPECT_ERROR(Scalar(9223372036854775808.0).toLong(), Error, "int64 without overflow");
  EXPECT_ERROR(Scalar(std::nan("")).toLong(), Error, "int64 without overflow: got nan");
  EXPECT_ERROR(Scalar(std::numeric_limits<double>::infinity()).toInt(), Error, "int32");
  EXPECT_ERROR(Scalar(1e300).toFloat(), Error, "float32 without overflow: got 1e+300");
  EXPECT_ERROR(Scalar(-65505.0).to<Half>(), Error, "float16 without overflow");
  EXPECT_ERROR(Scalar(~uint64_t{0}), Error, "got 18446744073709551615");
  EXPECT_EQ(Scalar(std::numeric_limits<double>::infinity()).toFloat(),
            std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(Scalar(std::nan("")).toFloat()));
  EXPECT_EQ(Scalar(65504.0).to<Half>().bits, 0x7bff);
  EXPECT_EQ(Scalar(3.4028234663852886e38).toFloat(), std::numeric_limits<float>::max());
}

TEST(Scalar, NegatesComparesPrints) {
  EXPECT_EQ((-Scalar(3)).toLong(), -3);
  EXPECT_EQ((-Scalar(1.5)).toDouble(), -1.5);
  EXPECT_ERROR(-Scalar(true), Error, "negation");
  EXPECT_TRUE(Scalar(1).equal(1.0) && Scalar(true).equal(1) && !Scalar(2).equal(2.5));
  std::ostringstream text;
  text << Scalar(1.5) << " " << Scalar(-3) << " " << Scalar(true);
  EXPECT_EQ(text.str(), "1.5 -3 true");
}

}  // namespace
}  // namespace ramet
