// By bits, for numbers of threads and orders of parts, and by a sum in double.
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>

#include "tools/labs/07_same_bits/lab.h"

namespace ramet::labs {

void Team::run(int64_t parts, const std::function<void(int64_t)>& part) {
  this->parts += parts;
  std::vector<int64_t> order(static_cast<size_t>(parts));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(seed_);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  std::atomic<size_t> next{0};
  std::exception_ptr error;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int t = 0; t < threads_; ++t)
    threads.emplace_back([&] {
      try {
        for (size_t i; (i = next++) < order.size();) part(order[i]);
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex);
        error = std::current_exception();
      }
    });
  for (std::thread& t : threads) t.join();
  if (error) std::rethrow_exception(error);
}

namespace {

constexpr int64_t kMany = 50000;

std::vector<float> numbers(int64_t n) {
  std::mt19937 random(7);
  std::vector<float> x(static_cast<size_t>(n));
  for (float& v : x)
    v = std::ldexp(static_cast<float>(random() % 20001) - 10000,
                   static_cast<int>(random() % 8) - 12);
  return x;
}

float sum(const SameBitsLab& answer, const std::vector<float>& x, int threads, uint64_t seed) {
  Team team(threads, seed);
  return answer.sum(team, x.data(), static_cast<int64_t>(x.size()));
}

/// How many floats lie between.
int64_t ulps(float a, float b) {
  const auto place = [](float f) {
    int32_t bits;
    std::memcpy(&bits, &f, 4);
    return bits < 0 ? -int64_t(bits & 0x7fffffff) : int64_t(bits);
  };
  return std::llabs(place(a) - place(b));
}

std::string check_numbers(const SameBitsLab& answer) {
  for (const int64_t n : {0, 1, 2, 63, 64, 1000, 1023, 1024, 1025, 4097, 20000}) {
    const std::vector<float> x = numbers(n);
    double want = 0, size = 0;
    for (float v : x) want += v, size += std::fabs(v);
    const float got = sum(answer, x, 3, 1);
    expect(std::fabs(got - want) <= 1e-5 * size, "for n = ", n, " the sum is ", got,
           ", and in double ", want);
  }
  return "11 sizes from 0 to 20000";
}

void expect_same(float a, float b, const std::string& first, const std::string& second) {
  if (std::memcmp(&a, &b, 4) != 0)
    wrong("the sum of the same ", kMany, " numbers is ", a, " ", first, ", and ", b, " ", second,
          ": ", ulps(a, b), " units of the last place apart");
}

std::string check_threads(const SameBitsLab& answer) {
  const std::vector<float> x = numbers(kMany);
  const float one = sum(answer, x, 1, 1);
  for (const int threads : {2, 3, 4, 8})
    expect_same(one, sum(answer, x, threads, 1), "with 1 thread",
                words("with ", threads, " threads"));
  return words(one, " with 1, 2, 3, 4 and 8 threads");
}

std::string check_orders(const SameBitsLab& answer) {
  const std::vector<float> x = numbers(kMany);
  const float first = sum(answer, x, 1, 1);
  for (uint64_t seed = 2; seed < 12; ++seed)
    expect_same(first, sum(answer, x, 1, seed), "in one order of the parts",
                words("in another (number ", seed, ")"));
  return "11 orders of the parts";
}

std::string check_share(const SameBitsLab& answer) {
  const std::vector<float> x = numbers(kMany);
  Team team(8, 1);
  (void)answer.sum(team, x.data(), kMany);
  expect(team.parts >= 8, "8 threads, ", kMany, " numbers, and team.run() got ", team.parts,
         team.parts == 1 ? " part" : " parts");
  return words(team.parts, " parts");
}

}  // namespace

void grade(const SameBitsLab& answer, Report& report) {
  report.step("the numbers", "which elements does no part, or more than one, add? task.md",
              [&] { return check_numbers(answer); });
  report.step(
      "whatever order parts are done in",
      "a + b + c and c + a + b are rounded differently: chapter 12; where can a part leave its "
      "sum until all are there?",
      [&] { return check_orders(answer); });
  report.step(
      "any number of threads",
      "what does the place of a cut depend on? chapter 12, and the small example in task.md",
      [&] { return check_threads(answer); });
  report.step("something to do for 8 threads", "chapter 12", [&] { return check_share(answer); });
}

}  // namespace ramet::labs
