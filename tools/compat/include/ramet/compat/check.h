// LibTorch's checks and the errors that they throw. TORCH_CHECK(cond, parts...) throws c10::Error
// with the parts as its text. what() ends in a line that names the place, as in LibTorch (without a
// backtrace).
#pragma once
#include "ramet/compat/str.h"

namespace ramet {
namespace compat {

template <class... Parts>
[[gnu::cold, gnu::noinline]] std::string check_text(const char*, const Parts&... parts) {
  return c10::str(parts...);
}
[[gnu::cold, gnu::noinline]] inline std::string check_text(const char* condition) {
  return std::string("Expected ") + condition + " to be true, but got false.";
}

template <class E>
[[noreturn, gnu::cold, gnu::noinline]] void throw_at(const SourceLocation& where,
                                                     const std::string& message) {
  throw E(where, message);
}

}  // namespace compat
}  // namespace ramet

// Kinds of errors that Ramet itself never throws, for programs that throw and catch them.
#define RAMET_COMPAT_ERROR(Name, Base) \
  class RAMET_API Name : public Base { \
   public:                             \
    using Base::Base;                  \
  }
namespace ramet {
namespace compat {
RAMET_COMPAT_ERROR(ErrorAlwaysShowCppStacktrace, Error);
RAMET_COMPAT_ERROR(ValueError, Error);
RAMET_COMPAT_ERROR(TypeError, Error);
RAMET_COMPAT_ERROR(BufferError, Error);
RAMET_COMPAT_ERROR(EnforceFiniteError, Error);
RAMET_COMPAT_ERROR(OnnxfiBackendSystemError, Error);
RAMET_COMPAT_ERROR(SyntaxError, Error);
RAMET_COMPAT_ERROR(DistError, Error);
RAMET_COMPAT_ERROR(DistBackendError, DistError);
RAMET_COMPAT_ERROR(DistStoreError, DistError);
RAMET_COMPAT_ERROR(DistNetworkError, DistError);
RAMET_COMPAT_ERROR(DistQueueEmptyError, DistStoreError);
}  // namespace compat
}  // namespace ramet
#undef RAMET_COMPAT_ERROR

// Those that Ramet has come into this namespace with the rest of its names.
namespace c10 {
using ::ramet::compat::BufferError;
using ::ramet::compat::DistBackendError;
using ::ramet::compat::DistError;
using ::ramet::compat::DistNetworkError;
using ::ramet::compat::DistQueueEmptyError;
using ::ramet::compat::DistStoreError;
using ::ramet::compat::EnforceFiniteError;
using ::ramet::compat::ErrorAlwaysShowCppStacktrace;
using ::ramet::compat::OnnxfiBackendSystemError;
using ::ramet::compat::SyntaxError;
using ::ramet::compat::TypeError;
using ::ramet::compat::ValueError;
using EnforceNotMet = ::ramet::Error;
}  // namespace c10
namespace caffe2 {
using EnforceNotMet = ::ramet::Error;
}

// How the macros below name an error: TORCH_CHECK_WITH(ValueError, ...) must find both kinds.
namespace ramet {
namespace compat {
namespace errors {
using namespace ::ramet::compat;
using ::ramet::Error;
using ::ramet::IndexError;
using ::ramet::LinAlgError;
using ::ramet::NotImplementedError;
using ::ramet::OutOfMemoryError;
}  // namespace errors
}  // namespace compat
}  // namespace ramet

#define RAMET_COMPAT_HERE \
  ::ramet::SourceLocation { __func__, __FILE__, static_cast<uint32_t>(__LINE__) }

#define C10_THROW_ERROR(Kind, message) \
  throw ::ramet::compat::errors::Kind(RAMET_COMPAT_HERE, message)
#define C10_BUILD_ERROR(Kind, message) ::ramet::compat::errors::Kind(RAMET_COMPAT_HERE, message)

#if defined(__clang__)  // C++17 has no other way to leave a comma out
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments"
#endif
// A statement as LibTorch's is, an `if` with a block: what compiles there compiles here, and the
// other way round. The parts are evaluated only where the condition fails.
#define TORCH_CHECK_WITH(Kind, condition, ...)                                      \
  if (RAMET_UNLIKELY(!(condition))) {                                               \
    ::ramet::compat::throw_at<::ramet::compat::errors::Kind>(                       \
        RAMET_COMPAT_HERE, ::ramet::compat::check_text(#condition, ##__VA_ARGS__)); \
  }
#define TORCH_CHECK_WITH_MSG(Kind, condition, type, ...) \
  TORCH_CHECK_WITH(Kind, condition, ##__VA_ARGS__)
#define TORCH_CHECK(condition, ...) TORCH_CHECK_WITH(Error, condition, ##__VA_ARGS__)
#define TORCH_CHECK_INDEX(condition, ...) TORCH_CHECK_WITH(IndexError, condition, ##__VA_ARGS__)
#define TORCH_CHECK_VALUE(condition, ...) TORCH_CHECK_WITH(ValueError, condition, ##__VA_ARGS__)
#define TORCH_CHECK_TYPE(condition, ...) TORCH_CHECK_WITH(TypeError, condition, ##__VA_ARGS__)
#define TORCH_CHECK_LINALG(condition, ...) TORCH_CHECK_WITH(LinAlgError, condition, ##__VA_ARGS__)
#define TORCH_CHECK_BUFFER(condition, ...) TORCH_CHECK_WITH(BufferError, condition, ##__VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(condition, ...) \
  TORCH_CHECK_WITH(NotImplementedError, condition, ##__VA_ARGS__)
#define TORCH_CHECK_ALWAYS_SHOW_CPP_STACKTRACE(condition, ...) \
  TORCH_CHECK_WITH(ErrorAlwaysShowCppStacktrace, condition, ##__VA_ARGS__)
#define TORCH_CHECK_ARG(condition, number, ...) \
  TORCH_CHECK(condition, "invalid argument ", number, ": ", ##__VA_ARGS__)
#define TORCH_CHECK_IF_NOT_ON_CUDA(condition, ...) TORCH_CHECK(condition, ##__VA_ARGS__)
#define STD_TORCH_CHECK(condition, ...) TORCH_CHECK(condition, ##__VA_ARGS__)

#define TORCH_INTERNAL_ASSERT(condition, ...)                                               \
  if (RAMET_UNLIKELY(!(condition))) {                                                       \
    ::ramet::compat::throw_at<::ramet::Error>(                                              \
        RAMET_COMPAT_HERE, ::c10::str(#condition " INTERNAL ASSERT FAILED at \"", __FILE__, \
                                      "\":", __LINE__, ". ", ##__VA_ARGS__));               \
  }
#ifdef NDEBUG
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(...) \
  while (false) TORCH_INTERNAL_ASSERT(__VA_ARGS__)
#else
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(...) TORCH_INTERNAL_ASSERT(__VA_ARGS__)
#endif

// Throws the exception that is being handled again, with more text. `e` is that exception, by
// reference.
#define TORCH_RETHROW(e, ...)               \
  do {                                      \
    e.add_context(::c10::str(__VA_ARGS__)); \
    throw;                                  \
  } while (false)

// Older names.
#define AT_ASSERT(...) \
  do { TORCH_INTERNAL_ASSERT(__VA_ARGS__); } while (false)
#define AT_ASSERTM(condition, ...) \
  do { TORCH_INTERNAL_ASSERT(condition, ##__VA_ARGS__); } while (false)
#define AT_CHECK(condition, ...) \
  do { TORCH_CHECK(condition, ##__VA_ARGS__); } while (false)
#define AT_ERROR(...)                                                                      \
  do {                                                                                     \
    ::ramet::compat::throw_at<::ramet::Error>(RAMET_COMPAT_HERE, ::c10::str(__VA_ARGS__)); \
  } while (false)
#define AT_INDEX_ERROR(...)                                                                     \
  do {                                                                                          \
    ::ramet::compat::throw_at<::ramet::IndexError>(RAMET_COMPAT_HERE, ::c10::str(__VA_ARGS__)); \
  } while (false)

// Caffe2's.
#define CAFFE_ENFORCE(condition, ...)                                                 \
  do {                                                                                \
    if (RAMET_UNLIKELY(!(condition)))                                                 \
      ::ramet::compat::throw_at<::ramet::Error>(                                      \
          RAMET_COMPAT_HERE, ::c10::str("[enforce fail at ", __FILE__, ":", __LINE__, \
                                        "] " #condition ". ", ##__VA_ARGS__));        \
  } while (false)
#define CAFFE_THROW(...)                     \
  ::ramet::compat::throw_at<::ramet::Error>( \
      RAMET_COMPAT_HERE,                     \
      ::c10::str("[enforce fail at ", __FILE__, ":", __LINE__, "] . ", ##__VA_ARGS__))
#define RAMET_COMPAT_ENFORCE_OP(op, a, b, ...)                                                    \
  do {                                                                                            \
    const auto& ramet_a = (a);                                                                    \
    const auto& ramet_b = (b);                                                                    \
    if (RAMET_UNLIKELY(!(ramet_a op ramet_b)))                                                    \
      ::ramet::compat::throw_at<::ramet::Error>(                                                  \
          RAMET_COMPAT_HERE, ::ramet::compat::enforce_text(__FILE__, __LINE__, #a " " #op " " #b, \
                                                           ramet_a, ramet_b, ##__VA_ARGS__));     \
  } while (false)
#define CAFFE_ENFORCE_EQ(a, b, ...) RAMET_COMPAT_ENFORCE_OP(==, a, b, ##__VA_ARGS__)
#define CAFFE_ENFORCE_NE(a, b, ...) RAMET_COMPAT_ENFORCE_OP(!=, a, b, ##__VA_ARGS__)
#define CAFFE_ENFORCE_LT(a, b, ...) RAMET_COMPAT_ENFORCE_OP(<, a, b, ##__VA_ARGS__)
#define CAFFE_ENFORCE_LE(a, b, ...) RAMET_COMPAT_ENFORCE_OP(<=, a, b, ##__VA_ARGS__)
#define CAFFE_ENFORCE_GT(a, b, ...) RAMET_COMPAT_ENFORCE_OP(>, a, b, ##__VA_ARGS__)
#define CAFFE_ENFORCE_GE(a, b, ...) RAMET_COMPAT_ENFORCE_OP(>=, a, b, ##__VA_ARGS__)
#if defined(__clang__)
#pragma clang diagnostic pop
#endif

namespace ramet {
namespace compat {
/// "[enforce fail at net.cc:3] n == 4. 3 vs 4. more"
template <class A, class B, class... Parts>
[[gnu::cold, gnu::noinline]] std::string enforce_text(const char* file, int line, const char* what,
                                                      const A& a, const B& b,
                                                      const Parts&... parts) {
  std::string text = c10::str("[enforce fail at ", file, ":", line, "] ", what, ". ", a, " vs ", b);
  if (sizeof...(parts) > 0) text += ". " + c10::str(parts...);
  return text;
}
}  // namespace compat
}  // namespace ramet
