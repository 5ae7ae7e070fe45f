// Reads the options of a module or an optimizer from a JSON object; errors name the place in it.
#pragma once
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "nn/module/any_module.h"
#include "nn/module/field_internal.h"

namespace ramet::c {

using Json = nlohmann::json;
using nn::detail::Field;

/// Strict: an Error of `op` on what is no JSON, or has a key twice.
std::shared_ptr<const Json> parse_json(const char* op, const std::string& text);

/// Reads one object. The caller asks for each option by its name; finish() refuses all other
/// entries.
class Reader {
 public:
  /// `what` the options are of, "Linear"; `path`: where the object stands, "layers[2]", "" for the
  /// whole text.
  Reader(const char* op, const Json& object, std::string path, std::string what);

  const char* op() const { return op_; }
  const std::string& path() const { return path_; }
  void set_what(std::string what) { what_ = std::move(what); }
  /// The place of entry `name` in the text, for errors.
  std::string place(const std::string& name) const;
  /// The entry, or null if there is none. Marks it as known for finish().
  const Json* entry(const char* name);

  /// The options of a list. Where there is no entry the value stays as it is.
  void read(const std::vector<Field>& list);
  void read(const char* name, std::string& value);
  // Where there is no such entry: an Error.
  void need(const char* name);
  std::string text(const char* name);

  /// On an entry that no call has asked for: an Error that lists what `what` has.
  void finish() const;
  /// "layers[2].bias: expected true or false, got 3".
  [[noreturn]] void refuse(const std::string& name, const std::string& expected) const;
  [[noreturn]] void refuse(const std::string& place, const std::string& expected,
                           const Json& got) const;
  /// The module `Impl(options)`; its constructor's errors say where.
  template <class Impl, class... Options> nn::AnyModule make(const Options&... options) const {
    finish();
    try {
      return nn::AnyModule(std::make_shared<Impl>(options...));
    } catch (Error& error) {
      add_place(error);
      throw;
    }
  }

 private:
  void read(const Field& field);
  size_t read_numbers(const std::vector<Field>& list, size_t begin);
  void add_place(Error& error) const;

  const char* op_;
  const Json* object_;
  std::string path_, what_;
  std::vector<std::string> asked_;
};

}  // namespace ramet::c
