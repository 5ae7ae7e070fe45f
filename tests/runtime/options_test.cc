#include "runtime/tensor/options.h"

#include <sstream>
#include <thread>

#include "tests/runtime/expect_error.h"

namespace ramet {
namespace {

TensorOptions given(const TensorOptions& options = {}) { return options; }

TEST(TensorOptions, Defaults) {
  const TensorOptions o = given();
  EXPECT_EQ(o.dtype(), kFloat);
  EXPECT_EQ(o.device(), Device(kCPU));
  EXPECT_EQ(o.layout(), kStrided);
  EXPECT_FALSE(o.requires_grad() || o.pinned_memory() || o.is_sparse());
  EXPECT_FALSE(o.has_dtype() || o.has_device() || o.has_layout() || o.has_requires_grad() ||
               o.has_pinned_memory() || o.has_memory_format());
  EXPECT_FALSE(o.dtype_opt() || o.device_opt() || o.layout_opt() || o.requires_grad_opt() ||
               o.pinned_memory_opt() || o.memory_format_opt());
}

// Every implicit form that programs use.
TEST(TensorOptions, FromItsParts) {
  EXPECT_EQ(given(kDouble).dtype(), kDouble);
  EXPECT_EQ(given(kCPU).device_opt(), Device(kCPU));
  EXPECT_EQ(given("cpu:1").device(), Device(kCPU, 1));
  EXPECT_EQ(given(std::string("cpu:2")).device(), Device(kCPU, 2));
  EXPECT_EQ(given(Device(kCPU, 3)).device(), Device(kCPU, 3));
  EXPECT_TRUE(given(kStrided).has_layout());
  EXPECT_EQ(given(MemoryFormat::ChannelsLast).memory_format_opt(), MemoryFormat::ChannelsLast);
  EXPECT_TRUE(given(requires_grad()).requires_grad());
  EXPECT_TRUE(given(requires_grad(false)).has_requires_grad());
  EXPECT_FALSE(given(requires_grad(false)).requires_grad());
  EXPECT_EQ(given(dtype(kLong)).dtype(), kLong);
  EXPECT_EQ(given(dtype<int16_t>()).dtype(), kShort);
  EXPECT_EQ(given(device(kCPU)).device(), Device(kCPU));
  EXPECT_EQ(given(device({kCPU, 1})).device(), Device(kCPU, 1));
  EXPECT_EQ(given(device("cpu:4")).device(), Device(kCPU, 4));
  EXPECT_TRUE(given(layout(kStrided)).has_layout());
}

TEST(TensorOptions, SettersReturnCopies) {
  const TensorOptions a;
  const TensorOptions b =
      a.dtype(kFloat64).device(kCPU, 1).requires_grad(true).pinned_memory(true).layout(kStrided);
  EXPECT_FALSE(a.has_dtype() || a.has_device());
  EXPECT_EQ(b.dtype(), kDouble);
  EXPECT_EQ(b.device(), Device(kCPU, 1));
  EXPECT_TRUE(b.requires_grad() && b.pinned_memory() && b.has_layout());
  EXPECT_EQ(b.dtype<int8_t>().dtype(), kChar);
  const TensorOptions c = b.dtype(nullopt).device(nullopt).requires_grad(nullopt);
  EXPECT_FALSE(c.has_dtype() || c.has_device() || c.has_requires_grad() || c.requires_grad());
  EXPECT_EQ(a.device_index(1).device(), Device(kCUDA, 1));
}

TEST(TensorOptions, MergeTakesTheOthersSettings) {
  const TensorOptions m =
      TensorOptions(kInt).device("cpu:1").merge_in(TensorOptions(kHalf).requires_grad(true));
  EXPECT_EQ(m.dtype(), kHalf);
  EXPECT_EQ(m.device(), Device(kCPU, 1));
  EXPECT_TRUE(m.requires_grad());
  EXPECT_EQ(m.merge_memory_format(MemoryFormat::Preserve).memory_format_opt(),
            MemoryFormat::Preserve);
  EXPECT_FALSE(m.merge_memory_format(nullopt).has_memory_format());
}

TEST(TensorOptions, Prints) {
  std::ostringstream text;
  text << TensorOptions("cpu:1").memory_format(MemoryFormat::Preserve);
  EXPECT_EQ(text.str(),
            "TensorOptions(dtype=float (default), device=cpu:1, layout=Strided (default), "
            "requires_grad=false (default), "
            "pinned_memory=false (default), memory_format=Preserve)");
  EXPECT_TRUE(text.flags() & std::ios::boolalpha) << "as LibTorch leaves it";
  // What LibTorch 2.15 calls the dtypes there.
  const char* const names[] = {"bool",
                               "unsigned char",
                               "signed char",
                               "short int",
                               "int",
                               "long int",
                               "short unsigned int",
                               "unsigned int",
                               "c10::Half",
                               "c10::BFloat16",
                               "float",
                               "double"};
  for (int i = 0; i < kScalarTypes; ++i) {
    std::ostringstream one;
    one << TensorOptions(static_cast<ScalarType>(i));
    EXPECT_EQ(one.str(),
              std::string("TensorOptions(dtype=") + names[i] +
                  ", device=cpu (default), layout=Strided (default), requires_grad=false "
                  "(default), pinned_memory=false (default), memory_format=(nullopt))");
  }
}

TEST(DefaultDtype, IsTheThreads) {
  set_default_dtype(kDouble);
  EXPECT_EQ(get_default_dtype(), kDouble);
  EXPECT_EQ(TensorOptions().dtype(), kDouble);
  EXPECT_EQ(TensorOptions(kFloat).dtype(), kFloat);
  ScalarType other = kLong;
  std::thread([&] { other = get_default_dtype(); }).join();
  EXPECT_EQ(other, kFloat);
  set_default_dtype(kFloat);
  EXPECT_ERROR(set_default_dtype(kLong), Error, "only floating-point types");
}

}  // namespace
}  // namespace ramet
