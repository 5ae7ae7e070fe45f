#include "kernels/config.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/copy/fill.h"
#include "kernels/kernel.h"
#include "runtime/observe/observer.h"
#include "tests/variants.h"

namespace ramet {
namespace {

TEST(Config, NamesTheVariant) {
  const kernels::Variant lowest = testing::variants_here().front();
  kernels::set_variant(lowest);
  const std::string name = kernels::variant_name(lowest);
  EXPECT_NE(config().find("\ncpu kernels: " + name + " (can run " + name), std::string::npos)
      << config();
  EXPECT_NE(config().find("ramet: "), std::string::npos);
}

// RAMET_ISA is read once, at the first kernel call: each case is a process of its own.
void run_with(const char* isa) {
  setenv("RAMET_ISA", isa, 1);
  float out[4] = {};
  try {
    kernels::fill_dense({Device(kCPU, 0), 0}, {out, 4, 0x3f800000, 4});
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    std::exit(2);
  }
  std::fprintf(stderr, "%s", config().c_str());
  std::exit(out[3] == 1 ? 0 : 1);
}
TEST(Isa, IsChosenByTheEnvironment) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  // Not config(): it would choose, in the new process too.
  const std::pair<const char*, kernels::Variant> all[] = {{"base", kernels::Variant::kBase},
                                                          {"v3", kernels::Variant::kV3},
                                                          {"v4", kernels::Variant::kV4}};
  for (const auto& [isa, variant] : all) {
    const bool runs = kernels::variant_supported(variant);
    EXPECT_EXIT(run_with(isa), ::testing::ExitedWithCode(runs ? 0 : 2),
                runs ? std::string("cpu kernels: ") + isa + " "
                     : std::string("(cannot run|was built without) the kernel variant ") + isa);
  }
  EXPECT_EXIT(run_with("foo"), ::testing::ExitedWithCode(2),
              "RAMET_ISA.*got \"foo\", expected base, v3 or v4");
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
