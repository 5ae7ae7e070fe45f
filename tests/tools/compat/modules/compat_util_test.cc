// LibTorch's small functions, printing of containers, at::globalContext and at::parallel_for in the
// LibTorch compatibility headers. Texts are those that LibTorch 2.15 printed for the same
// statements.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "ramet/compat/torch.h"

// A program's own printing of lists, which is taken before LibTorch's.
struct Money {
  int cents;
};
std::ostream& operator<<(std::ostream& out, const Money& m) { return out << '$' << m.cents; }
std::ostream& operator<<(std::ostream& out, const std::vector<Money>& list) {
  return out << list.size() << " sums";
}

namespace {

enum class Plain { A = 3 };

template <class F> std::string error_of(const F& f) {
  try {
    f();
  } catch (const c10::Error& e) { return e.what_without_backtrace(); }
  return "nothing";
}

TEST(CompatStr, PrintsAsLibTorch) {
  EXPECT_EQ(c10::str("a", 1, 2.5, 'c', true, std::string("s"), Plain::A, std::optional<int>(4),
                     std::optional<int>()),
            "a12.5c1s34std::nullopt");
  EXPECT_EQ(c10::str(), "");
  EXPECT_EQ(c10::str(std::vector<int>{1, 2}, torch::ones({2}).sizes(), torch::kFloat,
                     torch::Device("cpu")),
            "1 2[2]Floatcpu");
  EXPECT_EQ(c10::Join(", ", std::vector<int>{1, 2, 3}), "1, 2, 3");
  EXPECT_EQ(c10::Join("-", std::vector<std::string>{}), "");
  EXPECT_EQ(c10::str(std::vector<std::vector<int>>{{1, 2}, {3}}), "1 2 3");
  EXPECT_EQ(torch::str(std::map<std::string, int>{{"a", 1}, {"b", 2}}), "(a, 1) (b, 2)");
  EXPECT_EQ(torch::str(std::set<int>{3, 1}, std::make_pair(1, 2.5)), "1 3(1, 2.5)");
  EXPECT_EQ(c10::str(std::vector<float>{1.5, 2.25}, std::vector<bool>{true, false}), "1.5 2.251 0");
  EXPECT_EQ(c10::str(std::vector<int>(103, 7)).substr(190), "7 7 7 7 7 ...");
  EXPECT_EQ(c10::str(std::vector<torch::Tensor>(2, torch::ones({2}, torch::kInt))),
            " 1\n 1\n[ CPUIntType{2} ]  1\n 1\n[ CPUIntType{2} ]");
  EXPECT_EQ(c10::str(at::ArrayRef<at::Tensor>(torch::ones({2}, torch::kInt))),
            "[ 1\n 1\n[ CPUIntType{2} ]]");
  EXPECT_EQ(c10::demangle_type<std::vector<int>>(),
            std::string("std::vector<int, std::allocator<int> >"));
  std::ostringstream own;
  own << std::vector<Money>{{1}, {2}} << ", " << std::map<int, Money>{{1, {5}}};
  EXPECT_EQ(own.str(), "2 sums, (1, $5)");
  std::string text = "a.b.c";
  EXPECT_EQ(c10::ReplaceAll(text, ".", ".."), 2u);
  EXPECT_EQ(text, "a..b..c");
  EXPECT_EQ(c10::split("a,,b", ',').size(), 3u);
  EXPECT_EQ(c10::split("a,,b", ',')[2], "b");
}

TEST(CompatUtil, Ranges) {
  constexpr int most = [] {
    int sum = 0;
    for (const auto i : c10::irange(5)) sum += i;
    return sum;
  }();
  static_assert(most == 10, "");
  std::vector<int64_t> seen;
  for (const auto i : torch::irange(2, int64_t{5})) {
    static_assert(std::is_same<decltype(i), const int64_t>::value, "");
    seen.push_back(i);
  }
  for (const size_t i : at::irange(size_t{2})) seen.push_back(static_cast<int64_t>(i));
  for (const auto i : c10::irange(-3)) seen.push_back(i);
  for (const auto i : c10::irange(5, 2)) seen.push_back(i);
  EXPECT_EQ(seen, (std::vector<int64_t>{2, 3, 4, 0, 1}));
}

TEST(CompatUtil, SmallThings) {
  using namespace torch;  // optional, make_optional, ... are std's own
  using namespace std;
  static_assert(std::is_same<c10::optional<int>, std::optional<int>>::value, "");
  optional<int> none = nullopt;
  EXPECT_EQ(none.value_or(7) + make_optional(3).value(), 10);
  c10::variant<int, string> v = string("x");
  EXPECT_EQ(c10::visit([](const auto& value) { return sizeof(value); }, v), sizeof(string));
  EXPECT_TRUE(c10::holds_alternative<string>(v) && c10::get_if<int>(&v) == nullptr);
  EXPECT_EQ(*torch::make_unique<int>(5), 5);
  const int64_t raw[] = {1, 2, 3};
  EXPECT_EQ(c10::makeArrayRef(raw).size() + c10::makeArrayRef(raw, 2).size(), 5u);
  c10::SmallVector<int64_t, 4> list = {2, 3};
  list.append({4, 5});
  EXPECT_EQ(list.pop_back_val(), 5);
  EXPECT_EQ(torch::zeros(list).numel(), 24);
  EXPECT_EQ(c10::str(list), "[2, 3, 4]");
  EXPECT_EQ(c10::multiply_integers(list) + c10::sum_integers(list), 33);
  int left = 0;
  {
    auto at_end = c10::make_scope_exit([&] { ++left; });
    auto never = c10::make_scope_exit([&] { left += 10; });
    never.release();
    EXPECT_EQ(left, 0);
  }
  EXPECT_EQ(left, 1);
  int64_t sum = 0;
  EXPECT_TRUE(c10::add_overflows(std::numeric_limits<int64_t>::max(), int64_t{1}, &sum));
  EXPECT_FALSE(c10::mul_overflows(int64_t{3}, int64_t{4}, &sum));
  EXPECT_EQ(sum, 12);

  struct Counter : torch::CustomClassHolder {
    explicit Counter(int* alive) : alive(alive) { ++*alive; }
    ~Counter() override { --*alive; }
    int* alive;
  };
  int alive = 0;
  auto p = c10::make_intrusive<Counter>(&alive);
  c10::intrusive_ptr<torch::CustomClassHolder> base = p;
  c10::weak_intrusive_ptr<Counter> weak(p);
  EXPECT_TRUE(p.defined() && p.use_count() == 2 && weak.lock() == p);
  std::shared_ptr<Counter> shared = p;  // as Ramet's process groups are handed on
  c10::intrusive_ptr<Counter> back = shared;
  p.reset(), base.reset(), shared.reset(), back.reset();
  EXPECT_TRUE(!p.defined() && alive == 0 && !weak.lock());
}

TEST(CompatUtil, ArrayRefs) {
  const std::vector<int64_t> sizes{5, 6, 7, 8};
  const at::ArrayRef<int64_t> ref(sizes);
  EXPECT_EQ(c10::str(ref.slice(1, 2), ref.front(), ref.back(), ref.slice(3)), "[6, 7]58[8]");
  EXPECT_TRUE(ref.equals({5, 6, 7, 8}) && ref.vec() == sizes);
  EXPECT_FALSE(ref == at::IntArrayRef({5}));
}

TEST(CompatUtil, Types) {
  const auto x = at::arange(4, at::kFloat);
  EXPECT_EQ(c10::str(c10::toString(at::kBFloat16), c10::elementSize(at::kDouble)), "BFloat168");
  EXPECT_TRUE(c10::isFloatingType(at::kHalf) && c10::isIntegralType(at::kBool, true));
  EXPECT_EQ(c10::promoteTypes(at::kInt, at::kFloat), at::kFloat);
  EXPECT_EQ(at::result_type(x, at::ones(1, at::kDouble)), at::kDouble);
  EXPECT_FALSE(at::can_cast(at::kFloat, at::kInt));
  EXPECT_EQ(c10::typeMetaToScalarType(x.dtype()), at::kFloat);
  EXPECT_TRUE(x.dtype() == caffe2::TypeMeta::Make<float>());
  EXPECT_EQ(c10::CppTypeToScalarType<int64_t>::value, at::kLong);
  EXPECT_EQ(c10::str(c10::scalarTypeToTypeMeta(at::kInt)), "int");
  const at::Scalar number = 2.75;
  EXPECT_TRUE(number.isFloatingPoint() && at::Scalar(true).isBoolean());
  EXPECT_EQ(c10::str(number.toInt(), number.to<float>(), number.type()), "22.75Double");
  EXPECT_TRUE(C10_LIKELY(true) && !C10_UNLIKELY(false) && TORCH_VERSION_MAJOR >= 1);
  C10_UNUSED const int unused = 0;
  TORCH_INTERNAL_ASSERT_DEBUG_ONLY(x.defined());
  EXPECT_GE(at::hasMKL(), 0);
}

TEST(CompatContext, KeepsWhatIsSet) {
  at::Context& c = at::globalContext();
  EXPECT_EQ(&c, &torch::globalContext());
  EXPECT_EQ(c10::str(c.benchmarkCuDNN(), c.deterministicCuDNN(), c.userEnabledCuDNN(),
                     c.userEnabledMkldnn(), c.allowTF32CuBLAS(), c.allowTF32CuDNN(),
                     c.deterministicAlgorithms(), c.deterministicAlgorithmsWarnOnly(),
                     c.deterministicFillUninitializedMemory(), c.benchmarkLimitCuDNN()),
            "00110100110");
  c.setBenchmarkCuDNN(true);
  c.setDeterministicCuDNN(true);
  c.setUserEnabledCuDNN(false);
  EXPECT_TRUE(c.benchmarkCuDNN() && c.deterministicCuDNN() && !c.userEnabledCuDNN());
  c.setFloat32MatmulPrecision("medium");
  EXPECT_TRUE(c.allowTF32CuBLAS());
  EXPECT_EQ(c.float32MatmulPrecision(), at::Float32MatmulPrecision::MEDIUM);
  EXPECT_EQ(error_of([&] { c.setFloat32MatmulPrecision("low"); }),
            "[setFloat32MatmulPrecision] precision: got \"low\", expected highest, high or medium");
  c.setAllowTF32CuBLAS(false);
  EXPECT_EQ(c.float32MatmulPrecision(), at::Float32MatmulPrecision::HIGHEST);
  c.alertNotDeterministic("op");
  c.setDeterministicAlgorithms(true, false);
  EXPECT_EQ(error_of([&] {
              c.alertNotDeterministic("op");
            }).find("op does not have a deterministic implementation, but you set"),
            0u);
  c.setDeterministicAlgorithms(true, /*warn_only=*/true);
  testing::internal::CaptureStderr();
  c.alertNotDeterministic("op");
  EXPECT_NE(testing::internal::GetCapturedStderr().find("Warning: op does not have"),
            std::string::npos);
  c.setDeterministicAlgorithms(false, false);
  at::Generator g = c.defaultGenerator(at::kCPU);
  torch::manual_seed(5);
  EXPECT_EQ(g.current_seed(), 5u);  // the generator itself
  at::Generator own = at::make_generator<at::CPUGeneratorImpl>(7);
  const torch::Tensor drawn = torch::rand({3}, own);
  {
    std::lock_guard<std::mutex> lock(own.mutex());
    own.set_current_seed(7);
  }
  EXPECT_TRUE(torch::equal(torch::rand({3}, own), drawn));
  EXPECT_EQ(at::hasCUDA(), torch::cuda::is_available());
  EXPECT_EQ(torch::getNumGPUs(), static_cast<size_t>(torch::cuda::device_count()));
  EXPECT_FALSE(torch::cuda::cudnn_is_available());
  if (!at::hasCUDA()) { EXPECT_THROW(c.lazyInitCUDA(), c10::Error); }
  if (at::Context::setFlushDenormal(true)) {
    volatile float small = 1e-39f;
    EXPECT_EQ(small * 1.f, 0.f);
    at::globalContext().setFlushDenormal(false);
    EXPECT_NE(small * 1.f, 0.f);
  }
}

TEST(CompatContext, ParallelLoopsTakeEachIndexOnce) {
  const int before = torch::get_num_threads();
  std::vector<int64_t> cuts[2];
  double sums[2];
  for (const int threads : {1, 4}) {
    torch::set_num_threads(threads);
    std::vector<int> hits(1000);
    std::vector<int64_t> cut(1000);
    at::parallel_for(3, 1000, 7, [&](int64_t first, int64_t last) {
      EXPECT_GE(at::get_thread_num(), 0);
      for (int64_t i = first; i < last; ++i) ++hits[static_cast<size_t>(i)];
      cut[static_cast<size_t>(first)] = last;
    });
    EXPECT_EQ(std::count(hits.begin(), hits.end(), 1), 997);
    EXPECT_EQ(std::count(hits.begin(), hits.begin() + 3, 0), 3);
    cuts[threads > 1] = cut;
    sums[threads > 1] = at::parallel_reduce(
        1, 1000, 1, 0.,
        [](int64_t first, int64_t last, double sum) {
          for (; first < last; ++first) sum += 1. / static_cast<double>(first);
          return sum;
        },
        [](double a, double b) { return a + b; });
    EXPECT_NEAR(sums[threads > 1], 7.484470860550345, 1e-12);  // H(999)
    EXPECT_EQ(error_of([] {
                at::parallel_for(0, 100, 1, [](int64_t first, int64_t) {
                  TORCH_CHECK(first < 40, "at ", first);
                });
              }),
              "at 40");
  }
  torch::set_num_threads(before);
  EXPECT_EQ(cuts[0], cuts[1]);
  EXPECT_EQ(sums[0], sums[1]);
  bool called = false;
  at::parallel_for(0, 3, std::numeric_limits<int64_t>::max(), [&](int64_t first, int64_t last) {
    EXPECT_EQ(std::make_pair(first, last), std::make_pair(int64_t{0}, int64_t{3}));
    called = true;
  });
  EXPECT_TRUE(called);
  called = false;
  at::parallel_for(5, 5, 1, [&](int64_t, int64_t) { called = true; });
  EXPECT_FALSE(called || at::in_parallel_region());
  EXPECT_THROW(at::parallel_for(0, 5, -1, [](int64_t, int64_t) {}), c10::Error);
  torch::set_num_interop_threads(3);
  EXPECT_EQ(torch::get_num_interop_threads(), 3u);
  EXPECT_THROW(torch::set_num_interop_threads(0), c10::Error);
}

TEST(CompatCuda, GuardsAndCache) {
  const auto here = [] { return torch::ones({1}).device(); };
  {
    c10::OptionalDeviceGuard none, guard(torch::Device("cpu:1"));
    EXPECT_FALSE(none.current_device());
    EXPECT_EQ(here(), torch::Device("cpu:1"));
    guard.reset_device(torch::Device("cpu:2"));
    EXPECT_EQ(guard.current_device(), torch::Device("cpu:2"));
    EXPECT_EQ(here(), torch::Device("cpu:2"));
  }
  EXPECT_EQ(here(), torch::Device("cpu"));
  EXPECT_EQ(error_of([] { c10::cuda::CUDAGuard guard(torch::Device("cpu")); }),
            "[CUDAGuard] device: got cpu, expected a CUDA device");
  EXPECT_EQ(at::cuda::device_count(), torch::cuda::device_count());
  if (!at::cuda::is_available()) {
    EXPECT_THROW(at::cuda::CUDAGuard guard(0), c10::Error);
    EXPECT_THROW(c10::cuda::set_device(0), c10::Error);
    EXPECT_THROW(c10::cuda::current_device(), c10::Error);
  }
  torch::ones({1 << 21});  // 8 MB: kept when freed, where pools are on
  c10::cuda::CUDACachingAllocator::emptyCache();
  EXPECT_EQ(::ramet::memory_stats(torch::kCPU).cached, 0);
}

TEST(CompatProfile, WritesWhatItSaw) {
  std::ostringstream out;
  {
    torch::autograd::profiler::RecordProfile guard(out);
    RECORD_FUNCTION("my step", std::vector<c10::IValue>({torch::ones(2), 3}));
    RECORD_USER_SCOPE("part");
    EXPECT_EQ(::ramet::scope_path(), "my step > part");
  }
  EXPECT_NE(out.str().find("\"part\""), std::string::npos) << out.str();
  EXPECT_NE(error_of([] {
              torch::autograd::profiler::RecordProfile guard("/no such folder/trace.json");
            }).find("[RecordProfile] cannot write /no such folder"),
            std::string::npos);
}

}  // namespace
