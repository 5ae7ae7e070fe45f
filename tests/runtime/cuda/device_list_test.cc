// Which logical devices there are, and the errors where there are none.
#include "runtime/cuda/device_list.h"

#include "runtime/base/device.h"
#include "runtime/cuda/device_state.h"
#include "runtime/devices/devices.h"
#include "runtime/memory/allocator.h"
#include "tests/runtime/cuda/gpus.h"

namespace ramet::testing {
namespace {

using Cards = std::vector<int>;

TEST(CudaDeviceList, ListsOfCards) {
  EXPECT_EQ(cuda::parse_device_list(nullptr, 3), (Cards{0, 1, 2}));
  EXPECT_EQ(cuda::parse_device_list(nullptr, 64).size(), 8u);
  EXPECT_EQ(cuda::parse_device_list("0,0,0,0", 1), (Cards{0, 0, 0, 0}));
  EXPECT_EQ(cuda::parse_device_list("2,0", 3), (Cards{2, 0}));
  EXPECT_EQ(cuda::parse_device_list("", 3), Cards{});
  for (const char* bad : {"0,", ",0", "a", "0 1", "-1", "0,,1", "99999999999"})
    EXPECT_MESSAGE(cuda::parse_device_list(bad, 4), std::string("got '") + bad + "'");
  EXPECT_MESSAGE(cuda::parse_device_list("0,4", 4), "there is no card 4: 4 cards found");
  EXPECT_MESSAGE(cuda::parse_device_list("0", 0), "there is no card 0: 0 cards found");
  EXPECT_MESSAGE(cuda::parse_device_list("0,0,0,0,0,0,0,0,0", 1), "expected at most 8");
}

// A program that uses the host's devices alone is not asked for a list that can be read.
TEST(CudaDeviceList, OneThatCannotBeReadIsNoMatterWithoutAGpu) {
  const Gpus gpus(gpu_settings(2), "0,x");
  EXPECT_NO_THROW(devices::synchronize());
  EXPECT_NO_THROW(empty_cache());
  EXPECT_MESSAGE(cuda::device_count(), "[RAMET_CUDA_DEVICES] got '0,x'");
}

TEST(CudaDeviceList, DevicesExistOrAreNamed) {
  RAMET_EMULATED_ONLY("machines with no card, one and two");
  {
    const Gpus gpus(gpu_settings(2));
    EXPECT_EQ(cuda::device_count(), 2);
    EXPECT_TRUE(cuda::is_available());
    EXPECT_EQ(resolve(Device(kCUDA)), Device(kCUDA, 0));
    EXPECT_EQ(resolve("cuda:1").index(), 1);
    EXPECT_MESSAGE(resolve("cuda:2"), "got cuda:2, expected cuda:0 to cuda:1");
  }
  {
    const Gpus gpus(gpu_settings(1), "0,0,0");
    EXPECT_EQ(cuda::device_count(), 3);
  }
  {
    const Gpus gpus(gpu_settings(1), "");
    EXPECT_FALSE(cuda::is_available());
    EXPECT_MESSAGE(resolve("cuda"), "RAMET_CUDA_DEVICES names none");
  }
  {
    const Gpus gpus(gpu_settings(1), "0,7");
    EXPECT_MESSAGE(cuda::device_count(), "[RAMET_CUDA_DEVICES]");
    EXPECT_MESSAGE(resolve("cuda"), "there is no card 7");
  }
  {
    // A list of GPUs does not hide that there is no driver.
    const Gpus gpus(gpu_settings(0), "0,0");
    EXPECT_FALSE(cuda::is_available());
    EXPECT_MESSAGE(resolve("cuda"), "cudaErrorNoDevice");
  }
  {
    const Gpus gpus(gpu_settings(0), "0;0");
    EXPECT_MESSAGE(resolve("cuda"), "[RAMET_CUDA_DEVICES] got '0;0'");
  }
  const Gpus gpus(gpu_settings(0));
  EXPECT_FALSE(cuda::is_available());
  EXPECT_MESSAGE(resolve("cuda"), "cudaErrorNoDevice");
  EXPECT_MESSAGE(cuda::synchronize(), "cudaErrorNoDevice");
}

TEST(CudaDeviceList, ADriverThatIsMissingOrTooOld) {
  RAMET_EMULATED_ONLY("machines without a driver and with an old one");
  emulated::Settings settings = gpu_settings(1);
  const auto told = [&](int version, const char* list) {
    settings.driver_version = version;
    const Gpus gpus(settings, list);
    EXPECT_FALSE(cuda::is_available());
    return message_of([] { resolve("cuda"); });
  };
  for (const char* list : {static_cast<const char*>(nullptr), "0,0"}) {
    const std::string missing = told(0, list), old = told(12020, list);
    EXPECT_NE(missing.find("no NVIDIA driver was found (cudaErrorInsufficientDriver)"),
              std::string::npos)
        << missing;
    EXPECT_NE(old.find("CUDA driver version is insufficient for CUDA runtime version "
                       "(cudaErrorInsufficientDriver)"),
              std::string::npos)
        << old;
  }
}

TEST(CudaDeviceList, NothingIsMadeBeforeTheFirstUse) {
  const Gpus gpus;
  EXPECT_EQ(cuda::device_count(), 2);
  cuda::synchronize(1);
  EXPECT_EQ(cuda::existing_state(0), nullptr);
  EXPECT_EQ(cuda::existing_state(1), nullptr);
}

}  // namespace
}  // namespace ramet::testing
