// Sizes that no address has, and work that is given to devices. In WebAssembly addresses have 32
// bits, and there are no threads. Elsewhere results are the same.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "ramet.h"
#include "runtime/base/checked_size.h"
#include "runtime/devices/devices.h"
#include "runtime/tensor/print.h"

namespace ramet {
namespace {

// The text of the Error that `f` throws.
template <class F> std::string error_of(const F& f) {
  try {
    f();
  } catch (const std::exception& e) { return e.what(); }
  return "no error";
}

TEST(Sizes, OfMoreThanAllMemoryAreErrors) {
  // As size_t of 32 bits each of these would be small.
  std::vector<int64_t> counts = {kMaxStorageBytes, (int64_t{1} << 60) + 4, int64_t{1} << 61};
  if (sizeof(size_t) < 8)
    for (const int64_t n : {int64_t{1} << 31, (int64_t{1} << 32) + 4, int64_t{1} << 40})
      counts.push_back(n);
  for (const int64_t n : counts) {
    EXPECT_NE(error_of([&] { empty({n}, kByte); }).find("expected"), std::string::npos) << n;
    EXPECT_NE(error_of([&] { zeros({n}, kFloat); }).find("expected"), std::string::npos) << n;
    EXPECT_NE(error_of([&] { ones({1}).expand({n}).contiguous(); }).find("expected"),
              std::string::npos)
        << n;
    EXPECT_NE(error_of([&] { arange(0, n, 1); }).find("expected"), std::string::npos) << n;
    float one = 1;
    EXPECT_NE(error_of([&] { from_blob(&one, {n}); }).find("expected"), std::string::npos) << n;
    EXPECT_NE(error_of([&] {
                zeros({2, 2}).repeat({n, 1});
              }).find("expected"),
              std::string::npos)
        << n;
  }
}

TEST(Sizes, OfExpandedTensorsHave64Bits) {
  const Tensor x = ones({1}).expand({int64_t{1} << 40});
  EXPECT_EQ(x.numel(), int64_t{1} << 40);
  EXPECT_EQ(x.stride(0), 0);
}

TEST(Devices, RunTheirTasksInOrder) {
  std::vector<int> seen;
  std::vector<uint64_t> tickets;
  for (int i = 0; i < 5; ++i)
    tickets.push_back(devices::post(Device(kCPU, 1), [&seen, i] {
      EXPECT_EQ(devices::worker(), 1);
      seen.push_back(2 * i);
      devices::wait(devices::post(Device(kCPU, 2), [] { EXPECT_EQ(devices::worker(), 2); }));
    }));
  for (const uint64_t t : tickets) devices::wait(t);
  EXPECT_EQ(seen, (std::vector<int>{0, 2, 4, 6, 8}));
  EXPECT_EQ(devices::worker(), -1);
}

TEST(Devices, RunWhatATaskWaitsFor) {
  std::vector<int> seen;
  devices::wait(devices::post(Device(kCPU, 1), [&] {
    seen.push_back(1);
    const uint64_t own = devices::post(Device(kCPU, 1), [&] { seen.push_back(3); });
    seen.push_back(2);
    devices::wait(devices::post(Device(kCPU, 2), [&, own] {
      devices::wait(own);
      seen.push_back(4);
    }));
    seen.push_back(5);
  }));
  EXPECT_EQ(seen, (std::vector<int>{1, 2, 3, 4, 5}));
}

TEST(Devices, ReportWhatATaskThrows) {
  const uint64_t ticket = devices::post(Device(kCPU, 3), [] { throw Error("planned"); });
  EXPECT_EQ(error_of([&] { devices::wait(ticket); }), "planned");
  devices::synchronize();
}

struct Numbers : data::datasets::Dataset<Numbers> {
  data::Example<> get(size_t i) override { return {full({1}, static_cast<double>(i)), rand({1})}; }
  std::optional<size_t> size() const override { return 8; }
};

// Batches do not depend on the number of workers, nor on whether there are threads for them.
TEST(DataLoader, GivesTheSameBatchesWithWorkers) {
  std::vector<std::vector<Tensor>> epochs;
  for (const size_t workers : {1, 3}) {
    manual_seed(5);
    auto loader = data::make_data_loader<data::samplers::SequentialSampler>(
        Numbers().map(data::transforms::Stack<>()),
        data::DataLoaderOptions().batch_size(2).workers(workers));
    std::vector<Tensor> batches;
    for (auto& batch : *loader) batches.push_back(cat({batch.data, batch.target}, 1));
    epochs.push_back(batches);
  }
  ASSERT_EQ(epochs[0].size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(epochs[0][i].equal(epochs[1][i])) << i;
}

TEST(Text, OfNumbersHasTheFewestDigits) {
  EXPECT_EQ(shortest_text(0.1), "0.1");
  EXPECT_EQ(shortest_text(-123456.789), "-123456.789");
  EXPECT_EQ(shortest_text(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(shortest_text(1e-30), "1e-30");
  EXPECT_EQ(shortest_text(5e-324), "5e-324");
  EXPECT_EQ(shortest_text(1.7976931348623157e308), "1.7976931348623157e+308");
  std::ostringstream text;
  text << tensor({0.5, 2.25}, kDouble) << '\n'
       << tensor({1.0, 20.0}) << '\n'
       << tensor({1e-8, 1e8});
  EXPECT_EQ(text.str(),
            " 0.5000\n 2.2500\n[ CPUDoubleType{2} ]\n  1\n 20\n[ CPUFloatType{2} ]\n"
            " 1.0000e-08\n 1.0000e+08\n[ CPUFloatType{2} ]");
}

}  // namespace
}  // namespace ramet
