// at::globalContext(), at::parallel_for and what else programs set once and for all.
//
// Note [Switches without a meaning]
// cuDNN, MKL, oneDNN and TF32 are not used here, and every result is the same each time. What a
// program sets about them is kept and given back, and changes nothing else.
#pragma once
#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ramet/compat/warning.h"

namespace at {

enum class Float32MatmulPrecision { HIGHEST, HIGH, MEDIUM };
/// May cuBLAS add up 16-bit products in 16 bits, and cut a sum into parts?
enum class CuBLASReductionOption : uint8_t {
  AllowReducedPrecisionWithSplitK = 0,
  DisallowReducedPrecisionAllowSplitK = 1,
  DisallowReducedPrecisionDisallowSplitK = 2,
};

/// The settings of the process. Of LibTorch's class of that name what programs ask and set.
class RAMET_API Context {
 public:
  // Note [Switches without a meaning]
#define RAMET_COMPAT_SWITCH(Type, getter, setter, initial) \
 private:                                                  \
  std::atomic<Type> getter##_{initial};                    \
                                                           \
 public:                                                   \
  Type getter() const { return getter##_; }                \
  void setter(Type value) { getter##_ = value; }
  RAMET_COMPAT_SWITCH(bool, userEnabledCuDNN, setUserEnabledCuDNN, true)
  RAMET_COMPAT_SWITCH(bool, benchmarkCuDNN, setBenchmarkCuDNN, false)
  RAMET_COMPAT_SWITCH(int, benchmarkLimitCuDNN, setBenchmarkLimitCuDNN, 10)
  RAMET_COMPAT_SWITCH(bool, deterministicCuDNN, setDeterministicCuDNN, false)
  RAMET_COMPAT_SWITCH(bool, userEnabledMkldnn, setUserEnabledMkldnn, true)
  RAMET_COMPAT_SWITCH(bool, deterministicMkldnn, setDeterministicMkldnn, false)
  RAMET_COMPAT_SWITCH(bool, userEnabledNNPACK, setUserEnabledNNPACK, true)
  RAMET_COMPAT_SWITCH(bool, userEnabledFlashSDP, setSDPUseFlash, true)
  RAMET_COMPAT_SWITCH(bool, userEnabledMemEfficientSDP, setSDPUseMemEfficient, true)
  RAMET_COMPAT_SWITCH(bool, userEnabledMathSDP, setSDPUseMath, true)
  RAMET_COMPAT_SWITCH(bool, userEnabledCuDNNSDP, setSDPUseCuDNN, true)
  RAMET_COMPAT_SWITCH(bool, userEnabledFA3SDP, setSDPUseFA3, false)
  RAMET_COMPAT_SWITCH(bool, userEnabledFA4SDP, setSDPUseFA4, false)
  RAMET_COMPAT_SWITCH(bool, userEnabledOverrideableSDP, setSDPUseOverrideable, true)
  RAMET_COMPAT_SWITCH(bool, allowFP16BF16ReductionMathSDP, setAllowFP16BF16ReductionMathSDP, false)
  RAMET_COMPAT_SWITCH(bool, immediateMiopen, setImmediateMiopen, false)
  RAMET_COMPAT_SWITCH(bool, preferCublasltGroupedGemm, setPreferCublasltGroupedGemm, false)
  RAMET_COMPAT_SWITCH(bool, allowTF32CuDNN, setAllowTF32CuDNN, true)
  RAMET_COMPAT_SWITCH(bool, allowTF32OneDNN, setAllowTF32OneDNN, false)
  RAMET_COMPAT_SWITCH(bool, allowFP16AccumulationCuBLAS, setAllowFP16AccumulationCuBLAS, false)
  RAMET_COMPAT_SWITCH(bool, allowFP16ReductionCPU, setAllowFP16ReductionCPU, false)
  RAMET_COMPAT_SWITCH(bool, releaseWeightsWhenPrepacking, setReleaseWeightsWhenPrepacking, false)
  RAMET_COMPAT_SWITCH(bool, deterministicFillUninitializedMemory,
                      setDeterministicFillUninitializedMemory, true)
#undef RAMET_COMPAT_SWITCH
#define RAMET_COMPAT_REDUCTION(getter, setter)                                                       \
 private:                                                                                            \
  std::atomic<CuBLASReductionOption> getter##_{                                                      \
      CuBLASReductionOption::AllowReducedPrecisionWithSplitK};                                       \
                                                                                                     \
 public:                                                                                             \
  CuBLASReductionOption getter() const { return getter##_; }                                         \
  void setter(bool allow_reduced_precision, bool allow_splitk = true) {                              \
    RAMET_CHECK(allow_splitk || !allow_reduced_precision, #setter,                                   \
                "allow_splitk: got false with allow_reduced_precision, expected true");              \
    getter##_ = allow_reduced_precision ? CuBLASReductionOption::AllowReducedPrecisionWithSplitK     \
                : allow_splitk          ? CuBLASReductionOption::DisallowReducedPrecisionAllowSplitK \
                               : CuBLASReductionOption::DisallowReducedPrecisionDisallowSplitK;      \
  }
  RAMET_COMPAT_REDUCTION(allowFP16ReductionCuBLAS, setAllowFP16ReductionCuBLAS)
  RAMET_COMPAT_REDUCTION(allowBF16ReductionCuBLAS, setAllowBF16ReductionCuBLAS)
#undef RAMET_COMPAT_REDUCTION
  Float32MatmulPrecision float32MatmulPrecision() const { return precision_; }
  void setFloat32MatmulPrecision(Float32MatmulPrecision precision) { precision_ = precision; }
  /// "highest", "high" or "medium".
  void setFloat32MatmulPrecision(const std::string& name) {
    if (name == "highest") precision_ = Float32MatmulPrecision::HIGHEST;
    else if (name == "high") precision_ = Float32MatmulPrecision::HIGH;
    else if (name == "medium") precision_ = Float32MatmulPrecision::MEDIUM;
    else
      ::ramet::fail("setFloat32MatmulPrecision", "precision: got \"", name,
                    "\", expected highest, high or medium");
  }
  bool allowTF32CuBLAS() const { return precision_ != Float32MatmulPrecision::HIGHEST; }
  void setAllowTF32CuBLAS(bool allow) {
    precision_ = allow ? Float32MatmulPrecision::HIGH : Float32MatmulPrecision::HIGHEST;
  }

  // Every operation here is deterministic: this is for operations of the program's own, which say
  // alertNotDeterministic.
  bool deterministicAlgorithms() const { return deterministic_; }
  bool deterministicAlgorithmsWarnOnly() const { return warn_only_; }
  void setDeterministicAlgorithms(bool on, bool warn_only = false) {
    deterministic_ = on;
    warn_only_ = warn_only;
  }
  /// Where deterministic algorithms are asked for: an Error, or a warning.
  static void alertNotDeterministic(std::string_view caller);

  // What there is: Ramet's own kernels, and GPUs where the program is linked with them.
  static bool hasCUDA() { return ::ramet::cuda::is_available(); }
  static bool hasCUDART() { return false; }
  static bool hasCuDNN() { return ::ramet::cuda::cudnn_is_available(); }
  static bool hasCuBLASLt() { return false; }
  static bool hasCuSOLVER() { return false; }
  static bool hasMAGMA() { return false; }
  static bool hasMKL() { return false; }
  static bool hasMKLDNN() { return false; }
  static bool hasOpenMP() { return false; }
  static bool hasLAPACK() { return false; }
  static bool hasROCM() { return false; }
  static bool hasHIP() { return false; }
  static bool hasMPS() { return false; }
  static bool hasIPU() { return false; }
  static bool hasXLA() { return false; }
  static bool hasXPU() { return false; }
  static bool hasHPU() { return false; }
  static bool hasLazy() { return false; }
  static bool hasMTIA() { return false; }
  static bool hasMAIA() { return false; }
  static long versionCUDART() {
    ::ramet::fail("versionCUDART", "the CUDA runtime library is not used here");
  }
  static long versionCuDNN() { ::ramet::fail("versionCuDNN", "cuDNN is not used here"); }

  /// The generator that operations on `device` draw from: a handle to it, not a copy. On the host it
  /// gives LibTorch's numbers, from its current seed.
  ::ramet::Generator defaultGenerator(::ramet::Device device) const {
    if (device.is_cpu()) ::ramet::set_generator_kind(::ramet::GeneratorKind::kMersenne);
    return ::ramet::default_generator(device);
  }
  /// Devices are made at first use: only asks whether there is one.
  void lazyInitDevice(::ramet::DeviceType type) const {
    RAMET_CHECK(type == ::ramet::kCPU || ::ramet::cuda::is_available(), "lazyInitDevice",
                "this program has no CUDA device");
  }
  void lazyInitCUDA() const { lazyInitDevice(::ramet::kCUDA); }

  /// From now on the calling thread takes numbers too small to be normal for zero, or no longer.
  /// false where the processor cannot.
  static bool setFlushDenormal([[maybe_unused]] bool on) {
#ifdef __SSE2__
    constexpr unsigned kFlushAndZero = 0x8040;  // FTZ and DAZ of MXCSR
    const unsigned state = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(on ? state | kFlushAndZero : state & ~kFlushAndZero);
    return true;
#else
    return false;
#endif
  }

 private:
  std::atomic<Float32MatmulPrecision> precision_{Float32MatmulPrecision::HIGHEST};
  std::atomic<bool> deterministic_{false}, warn_only_{false};
};

RAMET_API inline Context& globalContext() {
  static Context& context = *new Context;
  return context;
}

inline void Context::alertNotDeterministic(std::string_view caller) {
  const Context& context = globalContext();
  if (!context.deterministicAlgorithms()) return;
  const std::string text = c10::str(caller,
                                    " does not have a deterministic implementation, but you set "
                                    "'setDeterministicAlgorithms(true)'.");
  if (context.deterministicAlgorithmsWarnOnly()) TORCH_WARN(text)
  else TORCH_CHECK(false, text)
}

inline void init() { globalContext(); }
inline bool hasCUDA() { return Context::hasCUDA(); }
inline bool hasMKL() { return Context::hasMKL(); }
inline bool hasMKLDNN() { return Context::hasMKLDNN(); }
inline bool hasOpenMP() { return Context::hasOpenMP(); }
inline bool hasLAPACK() { return Context::hasLAPACK(); }
inline bool hasMAGMA() { return Context::hasMAGMA(); }
inline bool hasHIP() { return Context::hasHIP(); }
inline bool hasMPS() { return Context::hasMPS(); }
inline bool hasXLA() { return Context::hasXLA(); }
inline bool hasXPU() { return Context::hasXPU(); }
/// CUDA devices that the program can use.
inline size_t getNumGPUs() { return static_cast<size_t>(::ramet::cuda::device_count()); }
inline std::string show_config() { return ::ramet::config(); }

/// From here on the program draws LibTorch's numbers on cpu:0 (tools/compat/RANDOM.md). All devices
/// start from this seed.
inline void manual_seed(uint64_t seed) {
  ::ramet::set_generator_kind(::ramet::GeneratorKind::kMersenne);
  ::ramet::manual_seed(seed);
}

/// The kind of generator that make_generator makes on the host; nothing else has it.
struct CPUGeneratorImpl {};
/// `at::make_generator<at::CPUGeneratorImpl>(seed)`: a generator of one's own, with LibTorch's
/// numbers.
template <class Impl>::ramet::Generator make_generator(uint64_t seed = ::ramet::kDefaultSeed) {
  static_assert(std::is_same<Impl, CPUGeneratorImpl>::value,
                "make_generator: a generator of a GPU is ramet::Generator(device, seed)");
  return ::ramet::Generator(::ramet::Device(::ramet::kCPU, 0), seed,
                            ::ramet::GeneratorKind::kMersenne);
}
namespace detail {
inline ::ramet::Generator getDefaultCPUGenerator() {
  ::ramet::set_generator_kind(::ramet::GeneratorKind::kMersenne);
  return ::ramet::default_generator(::ramet::kCPU);
}
inline ::ramet::Generator createCPUGenerator(uint64_t seed = ::ramet::kDefaultSeed) {
  return make_generator<CPUGeneratorImpl>(seed);
}
}  // namespace detail

}  // namespace at

namespace torch {
using at::manual_seed;
}  // namespace torch

// Threads. set_num_threads and get_num_threads are Ramet's.
namespace ramet {
namespace compat {
RAMET_API inline thread_local int thread_number = 0;
RAMET_API inline std::atomic<int> interop_threads{0};

/// Calls f(begin, end) for pieces of [begin, end) of at least `grain`. Where it is cut does not
/// depend on the number of threads. What f throws, of the first piece that does, goes on. Returns
/// the number of pieces, at most kMostPieces.
inline constexpr int64_t kMostPieces = 64;
template <class F> int64_t for_pieces(int64_t begin, int64_t end, int64_t grain, const F& f) {
  const int64_t n = end - begin;  // at least 1
  const int64_t size = std::min(n, std::max(grain, (n - 1) / kMostPieces + 1));
  const int64_t pieces = (n - 1) / size + 1;
  std::mutex mutex;
  std::exception_ptr error;
  int64_t of_piece = pieces;
  parallel_tasks(pieces, [&](int64_t piece, int slot) {
    const ScopedValue<int> number(thread_number, slot);
    try {
      const int64_t first = begin + piece * size;
      f(piece, first, piece + 1 < pieces ? first + size : end);
    } catch (...) {
      std::lock_guard<std::mutex> lock(mutex);
      if (piece < of_piece) {
        of_piece = piece;
        error = std::current_exception();
      }
    }
  });
  if (error) std::rethrow_exception(error);
  return pieces;
}
}  // namespace compat
}  // namespace ramet

namespace at {

/// f(first, last) for pieces of [begin, end), at least `grain` long where there are several, on the
/// threads of Ramet's pool. As in LibTorch the thread's state does not come along: f works on
/// memory.
template <class F> void parallel_for(int64_t begin, int64_t end, int64_t grain, const F& f) {
  RAMET_CHECK(grain >= 0, "parallel_for", "grain: got ", grain, ", expected at least 0");
  if (begin >= end) return;
  ::ramet::compat::for_pieces(begin, end, grain,
                              [&](int64_t, int64_t first, int64_t last) { f(first, last); });
}

/// combine(combine(identity, f(first, last, identity)), ...) over the pieces, in their order: the
/// same result for any number of threads.
template <class T, class F, class Combine>
T parallel_reduce(int64_t begin, int64_t end, int64_t grain, T identity, const F& f,
                  const Combine& combine) {
  RAMET_CHECK(grain >= 0, "parallel_reduce", "grain: got ", grain, ", expected at least 0");
  if (begin >= end) return identity;
  struct Slot {  // T may be bool
    T value;
  };
  std::vector<Slot> results(::ramet::compat::kMostPieces, Slot{identity});
  const int64_t pieces = ::ramet::compat::for_pieces(
      begin, end, grain, [&](int64_t piece, int64_t first, int64_t last) {
        results[static_cast<size_t>(piece)].value = f(first, last, identity);
      });
  T result = identity;
  for (int64_t i = 0; i < pieces; ++i)
    result = combine(result, results[static_cast<size_t>(i)].value);
  return result;
}

inline bool in_parallel_region() { return ::ramet::detail::tls.in_parallel; }
inline int get_thread_num() { return ::ramet::compat::thread_number; }
inline int64_t divup(int64_t x, int64_t y) { return x / y + (x % y > 0); }
/// Nothing to do: Ramet's threads start when they are needed.
inline void init_num_threads() {}
/// There is no pool for that here (parallel/ has threads of its own, one a device): kept and given
/// back.
inline void set_num_interop_threads(int threads) {
  RAMET_CHECK(threads > 0, "set_num_interop_threads", "threads: got ", threads,
              ", expected at least 1");
  ::ramet::compat::interop_threads = threads;
}
inline size_t get_num_interop_threads() {
  const int set = ::ramet::compat::interop_threads;
  return set > 0 ? static_cast<size_t>(set) : std::max(1u, std::thread::hardware_concurrency());
}
inline std::string get_parallel_info() {
  return c10::str("Ramet/Parallel:\n\tat::get_num_threads() : ", ::ramet::get_num_threads(),
                  "\n\tat::get_num_interop_threads() : ", get_num_interop_threads(),
                  "\nstd::thread::hardware_concurrency() : ", std::thread::hardware_concurrency(),
                  "\n");
}

}  // namespace at
