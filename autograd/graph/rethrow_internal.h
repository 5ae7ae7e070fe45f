// Errors that learn on their way where they come from. Private to autograd.
#pragma once
#include <string>
#include <typeinfo>

#include "runtime/base/error.h"

namespace ramet {
namespace autograd {

/// In a handler: throws the exception again. An Error has `more` at the end of its message.
[[noreturn, gnu::cold]] inline void rethrow_with(const std::string& more) {
  // Changes a copy: other threads may hold the exception that was thrown.
  const auto with_more = [&](auto e) {
    e.append(more);
    return e;
  };
  try {
    throw;
  } catch (const IndexError& e) { throw with_more(e); } catch (const NotImplementedError& e) {
    throw with_more(e);
  } catch (const Error& e) {
    if (typeid(e) != typeid(Error)) throw;  // a copy would lose the derived class
    throw with_more(e);
  }
}

}  // namespace autograd
}  // namespace ramet
