#include "kernels/config.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/fill.h"
#include "kernels/kernel.h"
#include "runtime/observer.h"

namespace ramet {
namespace {

TEST(Config, NamesTheVariant) {
  kernels::set_variant(kernels::Variant::kBase);
  EXPECT_NE(config().find("\ncpu kernels: base (this processor runs base"), std::string::npos)
      << config();
  EXPECT_NE(config().find("ramet: "), std::string::npos);
}

TEST(Observer, SeesKernels) {
  std::vector<std::string> journal;
  float out[4] = {};
  Observer o;
  o.kernel_begin = [&](const KernelCall& c) {
    journal.push_back(std::string("before ") + c.name);
    EXPECT_EQ(c.bytes, sizeof(kernels::FillDenseArgs));
    EXPECT_EQ(static_cast<const kernels::FillDenseArgs*>(c.args)->n, 4);
    EXPECT_EQ(out[3], 0);
  };
  o.kernel_end = [&](const KernelCall& c) {
    journal.push_back(std::string("after ") + c.name + " on " + c.stream.device.str());
    EXPECT_EQ(out[3], 1);
    EXPECT_GT(c.start, 0u);
  };
  const uint64_t number = add_observer(o);
  const Stream stream{Device(kCPU, 2), 0};
  const kernels::FillDenseArgs args{out, 4, 0x3f800000, 4};
  kernels::fill_dense(stream, args);
  remove_observer(number);
  kernels::fill_dense(stream, args);
  EXPECT_EQ(journal, (std::vector<std::string>{"before fill_dense", "after fill_dense on cpu:2"}));
}

}  // namespace
}  // namespace ramet
