#include "runtime/base/device.h"

#include <cstdlib>
#include <sstream>
#include <unordered_set>

#include "runtime/devices/devices.h"
#include "tests/runtime/expect_error.h"

namespace ramet {
namespace {

TEST(Device, Parses) {
  EXPECT_TRUE(Device("cpu").is_cpu() && !Device("cpu").has_index());
  EXPECT_EQ(Device("cpu:3"), Device(kCPU, 3));
  EXPECT_EQ(Device(std::string("cuda:7")), Device(kCUDA, 7));
  EXPECT_TRUE(Device("cuda").is_cuda());
  for (const char* bad : {"", "cpu:", "cpu:8", "cpu:-1", "cpu:1x", "cpu:01", "gpu", "CPU",
                          "cuda:", " cpu", "cpu:0:0", ":0", "cpu 0"})
    EXPECT_ERROR(Device{bad}, Error, "Invalid device string: got '" + std::string(bad) + "'");
}

TEST(Device, Prints) {
  std::ostringstream text;
  text << Device("cpu") << " " << Device(kCPU, 0) << " " << Device(kCPU, 2) << " " << Device("cuda")
       << " " << Device(kCUDA, 0) << " " << kCUDA;
  EXPECT_EQ(text.str(), "cpu cpu cpu:2 cuda cuda:0 cuda");
}

// Programs ask for these before they take another: they can be named, and nothing is ever on one.
TEST(Device, KindsThatAreNotHere) {
  const std::pair<DeviceType, const char*> kinds[] = {{kHIP, "hip"}, {kXPU, "xpu"}, {kMPS, "mps"}};
  for (const auto& [type, name] : kinds) {
    SCOPED_TRACE(name);
    const Device device(type), first(type, 0);
    std::ostringstream text;
    text << device << " " << first << " " << type;
    EXPECT_EQ(text.str(), std::string(name) + " " + name + ":0 " + name);
    EXPECT_EQ(DeviceTypeName(type, true), name);
    EXPECT_EQ(Device(name), device);
    EXPECT_EQ(Device(std::string(name) + ":0"), first);
    EXPECT_TRUE(device != Device(kCPU) && device != Device(kCUDA) && device != first);
    EXPECT_FALSE(device.is_cpu() || device.is_cuda());
    EXPECT_EQ(device.is_hip(), type == kHIP);
    EXPECT_EQ(device.is_xpu(), type == kXPU);
    EXPECT_EQ(device.is_mps(), type == kMPS);
    EXPECT_ERROR(resolve(device), Error, std::string("device ") + name + " does not exist");
    EXPECT_ERROR(DeviceGuard{first}, Error, "expected cpu or cuda");
  }
  EXPECT_EQ(DeviceTypeName(kMPS), "MPS");
  EXPECT_FALSE(Device(kCPU).is_mps() || Device(kCUDA).is_mps());
  EXPECT_FALSE(mps::is_available() || xpu::is_available());
}

TEST(Device, Compares) {
  EXPECT_TRUE(Device(kCPU) == Device(kCPU, 0) &&
              Device(kCPU, 0) == Device(kCPU));  // `cpu` is `cpu:0`
  EXPECT_TRUE(Device(kCPU) != Device(kCPU, 1));
  EXPECT_TRUE(Device(kCPU, 1) != Device(kCPU, 2));
  EXPECT_TRUE(Device(kCUDA) != Device(kCUDA, 0));
  EXPECT_TRUE(Device(kCUDA, 0) != Device(kCPU, 0));
  const std::unordered_set<Device> set{Device(kCPU), Device(kCPU, 0), Device(kCPU, 1),
                                       Device(kCUDA, 1)};
  EXPECT_EQ(set.size(), 3u);
}

TEST(Device, OrdinalsAreDense) {
  for (int n = 0; n < kMaxDevices; ++n) EXPECT_EQ(Device::from_ordinal(n).ordinal(), n);
  EXPECT_EQ(Device(kCUDA, 1).ordinal(), kMaxDevicesPerType + 1);
}

TEST(Device, Resolves) {
  EXPECT_EQ(cpu_device_count(), 8);
  EXPECT_EQ(resolve(Device(kCPU)).index(), 0);
  {
    DeviceGuard guard(Device(kCPU, 3));
    EXPECT_EQ(resolve(Device(kCPU)).index(), 3);
    EXPECT_EQ(resolve(Device(kCPU, 1)).index(), 1);
    EXPECT_EQ(current_device(), Device(kCPU, 3));
    DeviceGuard inner(Device(kCPU, 5));
    EXPECT_EQ(inner.current_device(), Device(kCPU, 5));
  }
  EXPECT_EQ(current_device(), Device(kCPU, 0));
  EXPECT_ERROR(resolve(Device(kCUDA, 1)), Error, "cuda:1");
  EXPECT_ERROR(DeviceGuard{Device(kCUDA)}, Error, "cuda");
}

// The number of devices is read once: each value in a process of its own.
TEST(DeviceDeathTest, CountFromTheEnvironment) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto with = [](const char* value) {
    setenv("RAMET_CPU_DEVICES", value, 1);
    try {
      const int n = cpu_device_count();
      bool refused = n == kMaxDevicesPerType;
      if (!refused) try {
          resolve(Device(kCPU, static_cast<DeviceIndex>(n)));
        } catch (const Error&) { refused = true; }
      std::exit(refused ? n : 90);
    } catch (const Error& e) {
      std::exit(std::string(e.what()).find("RAMET_CPU_DEVICES") != std::string::npos ? 100 : 101);
    }
  };
  EXPECT_EXIT(with("1"), testing::ExitedWithCode(1), "");
  EXPECT_EXIT(with("3"), testing::ExitedWithCode(3), "");
  EXPECT_EXIT(with(""), testing::ExitedWithCode(8), "");
  EXPECT_EXIT(with("0"), testing::ExitedWithCode(100), "");
  EXPECT_EXIT(with("9"), testing::ExitedWithCode(100), "");
  EXPECT_EXIT(with("two"), testing::ExitedWithCode(100), "");
}

}  // namespace
}  // namespace ramet
