// Names, texts and numbers as C++ writes them.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <sstream>

#include "nn/script/translation/translation_internal.h"
#include "runtime/base/classic.h"
#include "runtime/tensor/print.h"

namespace ramet::script {
namespace {

constexpr std::string_view kKeywords[] = {
    "alignas",      "alignof",       "and",          "asm",
    "auto",         "bitand",        "bitor",        "bool",
    "break",        "case",          "catch",        "char",
    "class",        "compl",         "concept",      "const",
    "constexpr",    "continue",      "co_await",     "co_yield",
    "decltype",     "default",       "delete",       "do",
    "double",       "else",          "enum",         "explicit",
    "export",       "extern",        "false",        "float",
    "for",          "friend",        "goto",         "if",
    "inline",       "int",           "long",         "mutable",
    "namespace",    "new",           "noexcept",     "not",
    "nullptr",      "operator",      "or",           "private",
    "protected",    "public",        "ramet",        "register",
    "requires",     "return",        "short",        "signed",
    "sizeof",       "static",        "std",          "struct",
    "switch",       "template",      "this",         "throw",
    "true",         "try",           "typedef",      "typeid",
    "typename",     "union",         "unsigned",     "using",
    "virtual",      "void",          "volatile",     "wchar_t",
    "while",        "xor",           "main",         "errno",
    "assert",       "NULL",          "NAN",          "INFINITY",
    "and_eq",       "or_eq",         "not_eq",       "xor_eq",
    "static_cast",  "const_cast",    "dynamic_cast", "reinterpret_cast",
    "thread_local", "static_assert", "co_return",    "char8_t",
    "char16_t",     "char32_t",      "constinit",    "consteval"};

// Macros of compilers and of C's headers, which know no namespaces, and types that have no
// namespace in what is written.
constexpr const char* kMacros =
    "alloca assert assert_perror be16toh be32toh be64toh BIG_ENDIAN BUFSIZ BYTE_ORDER "
    "CHAR_BIT CLOCKS_PER_SEC CSIGNAL DECIMAL_DIG DOMAIN E2BIG EACCES EADDRINUSE EADDRNOTAVAIL "
    "EADV EAFNOSUPPORT EAGAIN EALREADY EBADE EBADF EBADFD EBADMSG EBADR EBADRQC EBADSLT "
    "EBFONT EBUSY ECANCELED ECHILD ECHRNG ECOMM ECONNABORTED ECONNREFUSED ECONNRESET EDEADLK "
    "EDEADLOCK EDESTADDRREQ EDOM EDOTDOT EDQUOT EEXIST EFAULT EFBIG EHOSTDOWN EHOSTUNREACH "
    "EHWPOISON EIDRM EILSEQ EINPROGRESS EINTR EINVAL EIO EISCONN EISDIR EISNAM EKEYEXPIRED "
    "EKEYREJECTED EKEYREVOKED EL2HLT EL2NSYNC EL3HLT EL3RST ELIBACC ELIBBAD ELIBEXEC ELIBMAX "
    "ELIBSCN ELNRNG ELOOP EMEDIUMTYPE EMFILE EMLINK EMSGSIZE EMULTIHOP ENAMETOOLONG ENAVAIL "
    "ENETDOWN ENETRESET ENETUNREACH ENFILE ENOANO ENOBUFS ENOCSI ENODATA ENODEV ENOENT "
    "ENOEXEC ENOKEY ENOLCK ENOLINK ENOMEDIUM ENOMEM ENOMSG ENONET ENOPKG ENOPROTOOPT ENOSPC "
    "ENOSR ENOSTR ENOSYS ENOTBLK ENOTCONN ENOTDIR ENOTEMPTY ENOTNAM ENOTRECOVERABLE ENOTSOCK "
    "ENOTSUP ENOTTY ENOTUNIQ ENXIO EOF EOPNOTSUPP EOVERFLOW EOWNERDEAD EPERM EPFNOSUPPORT "
    "EPIPE EPROTO EPROTONOSUPPORT EPROTOTYPE ERANGE EREMCHG EREMOTE EREMOTEIO ERESTART "
    "ERFKILL EROFS errno ESHUTDOWN ESOCKTNOSUPPORT ESPIPE ESRCH ESRMNT ESTALE ESTRPIPE ETIME "
    "ETIMEDOUT ETOOMANYREFS ETXTBSY EUCLEAN EUNATCH EUSERS EWOULDBLOCK EXDEV EXFULL "
    "fpclassify htobe16 htobe32 htobe64 htole16 htole32 htole64 HUGE HUGE_VAL HUGE_VALF "
    "HUGE_VALL i386 INFINITY int16_t int32_t int64_t int8_t intmax_t intptr_t iseqsig "
    "isfinite isinf isnan isnormal issignaling issubnormal le16toh le32toh le64toh linux "
    "LITTLE_ENDIAN LONG_BIT major makedev MATH_ERREXCEPT math_errhandling MATH_ERRNO MAXFLOAT "
    "MAX_CANON MAX_INPUT MB_CUR_MAX minor NAN NFDBITS NULL NZERO offsetof OVERFLOW PDP_ENDIAN "
    "PIPE_BUF PLOSS pthread_cleanup_pop pthread_cleanup_push ptrdiff_t sched_priority setjmp "
    "sigmask signbit SING size_t SNAN SNANF SNANL ssize_t stderr stdin stdout strdupa "
    "strndupa TEMP_FAILURE_RETRY timeradd timerclear timercmp timerisset timersub "
    "TIMESPEC_TO_TIMEVAL TIMEVAL_TO_TIMESPEC TLOSS uint16_t uint32_t uint64_t uint8_t "
    "uintmax_t uintptr_t UNDERFLOW unix va_arg va_copy va_end va_start WCONTINUED WEOF "
    "WEXITED WEXITSTATUS WIFCONTINUED WIFEXITED WIFSIGNALED WIFSTOPPED WNOHANG WNOWAIT "
    "WORD_BIT WSTOPPED WSTOPSIG WTERMSIG WUNTRACED X_TLOSS";
// Most macros of C's headers are families: "M_PI", "INT_MAX", "PATH_MAX".
constexpr std::string_view kMacroStarts[] = {
    "M_",           "FP_",   "INT_",     "INT8_",   "INT16_",  "INT32_",  "INT64_",    "INTMAX_",
    "INTPTR_",      "UINT",  "UCHAR_",   "ULLONG_", "ULONG_",  "USHRT_",  "CHAR_",     "SCHAR_",
    "SHRT_",        "LONG_", "LLONG_",   "SIZE_",   "SIG_",    "SEEK_",   "CLOCK_",    "CLONE_",
    "CLOSE_RANGE_", "CPU_",  "PTHREAD_", "LC_",     "ADJ_",    "MOD_",    "STA_",      "SCHED_",
    "DBL_",         "FLT_",  "LDBL_",    "EXIT_",   "ATOMIC_", "RENAME_", "SYS_",      "ITIMER_",
    "TIMER_",       "TIME_", "FD_",      "FE_",     "F_",      "L_",      "P_",        "R_",
    "W_",           "X_",    "STDIN_",   "STDOUT_", "STDERR_", "SEM_",    "HUGE_VAL_", "RAMET_"};
constexpr std::string_view kMacroEnds[] = {"_MAX", "_MIN", "_WIDTH"};

bool is_macro(const std::string& name) {
  static const std::string macros = kMacros;
  const auto starts = [&](std::string_view with) { return name.rfind(with, 0) == 0; };
  const auto ends = [&](std::string_view with) {
    return name.size() > with.size() &&
           name.compare(name.size() - with.size(), with.size(), with) == 0;
  };
  return has_word(macros, name) ||
         std::any_of(std::begin(kMacroStarts), std::end(kMacroStarts), starts) ||
         std::any_of(std::begin(kMacroEnds), std::end(kMacroEnds), ends);
}

std::string cpp_int(int64_t value) {
  if (value == std::numeric_limits<int64_t>::min()) return "std::numeric_limits<int64_t>::min()";
  return std::to_string(value);
}

}  // namespace

std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

bool in_word(char c) { return c == '_' || detail::is_letter_or_digit(c); }

bool has_word(const std::string& text, const std::string& word) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !in_word(text[at - 1])) && (end == text.size() || !in_word(text[end])))
      return true;
  }
  return false;
}

std::string in_comment(std::string name) {
  for (char& c : name)
    if (!in_word(c) && c != '.') c = '_';
  return name;
}

std::string cpp_double(double value) {
  if (std::isnan(value)) return "std::numeric_limits<double>::quiet_NaN()";
  if (std::isinf(value))
    return std::string(value < 0 ? "-" : "") + "std::numeric_limits<double>::infinity()";
  auto text = detail::classic<std::ostringstream>();
  for (const int digits : {6, 15, 17}) {
    text.str("");
    text.precision(digits);
    text << value;
    auto back = detail::classic<std::istringstream>();
    back.str(text.str());
    double again = 0;
    if (back >> again && again == value) break;
  }
  std::string made = text.str();
  if (made.find_first_of(".e") == std::string::npos) made += ".0";
  return made;
}

std::string cpp_bool(bool value) { return value ? "true" : "false"; }

std::string cpp_number(const IValue& value) {
  if (value.isBool()) return cpp_bool(value.toBool());
  if (value.isInt()) return cpp_int(value.toInt());
  if (value.isDouble()) return cpp_double(value.toDouble());
  if (!value.isScalar()) return "";
  const Scalar number = value.toScalar();
  if (number.isBoolean()) return cpp_bool(number.toBool());
  return number.isFloatingPoint() ? cpp_double(number.toDouble()) : cpp_int(number.toLong());
}

std::string cpp_name(const std::string& name, std::set<std::string>& taken) {
  std::string made;
  for (const char c : name) made += detail::is_letter_or_digit(c) ? c : '_';
  // Names with two underscores, and with one before a capital, are the compiler's.
  for (size_t at; (at = made.find("__")) != std::string::npos;) made.erase(at, 1);
  if (made.empty() || (made[0] >= '0' && made[0] <= '9')) made.insert(0, "_");
  if (made.size() > 1 && made[0] == '_' && made[1] >= 'A' && made[1] <= 'Z') made.erase(0, 1);
  if (std::find(std::begin(kKeywords), std::end(kKeywords), made) != std::end(kKeywords) ||
      is_macro(made))
    made += '_';
  std::string tried = made;
  for (int i = 2; !taken.insert(tried).second; ++i)
    tried = made + (made.back() == '_' ? "" : "_") + std::to_string(i);
  return tried;
}

std::string cpp_text(const std::string& text) {
  std::string made = "\"";
  static constexpr char kDigits[] = "01234567";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') made.append(1, '\\').append(1, c);
    else if (c == '\n') made += "\\n";
    else if (byte < 32 || byte >= 127 || c == '?')
      made.append(1, '\\')
          .append(1, kDigits[byte >> 6])
          .append(1, kDigits[byte >> 3 & 7])
          .append(1, kDigits[byte & 7]);
    else made += c;
  }
  made += '"';
  // As a literal alone it would end at its first zero.
  if (text.find('\0') == std::string::npos) return made;
  return "std::string(" + made + ", " + std::to_string(text.size()) + ")";
}

std::string cpp_dtype(ScalarType dtype) {
  return "ramet::ScalarType::" + std::string(toString(dtype));
}

}  // namespace ramet::script
