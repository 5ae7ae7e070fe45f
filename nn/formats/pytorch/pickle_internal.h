// Reads the data of Python's pickles. It never imports or calls anything. The few globals that
// tensors and dictionaries are written with create values of this library. Every other global, and
// every other action that a pickle asks Python for, becomes a name only.
//
// Note [Restricted pickles]
// A pickle is a program for a stack machine, and Python's machine calls every function that it
// names. This machine knows protocols 2 to 5 without the instructions that build classes, and an
// exact list of globals (pickle_globals.cc). Any other global, and the result of calling one, is an
// opaque node: a name that is not used further. Each object is a node. The pickle owns its nodes,
// so neither cycles nor depth matter while it runs. Nodes cost a constant for each byte read. Calls
// may copy the same arguments many times, so those copies are counted. Tensors stay descriptions
// until the whole pickle has been read and its storages have been compared with the file's bytes
// (torch_storages.cc).
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "autograd/ivalue.h"
#include "nn/serialize/source_internal.h"

namespace ramet {
namespace formats {
namespace detail {

/// Where errors are: "[op] PLACE, offset N: ...".
struct Place {
  const char* op;
  std::string name;  // "x.pt", entry "archive/data.pkl"

  template <class... Parts> [[noreturn]] void bad(uint64_t offset, const Parts&... parts) const {
    fail(op, name, ", offset ", offset, ": ", parts...);
  }
};

/// A storage as a pickle names it.
struct StorageNote {
  std::string key, location;  // "cpu", "cuda:0"
  uint64_t bytes;
  size_t unit;         // bytes of what the pickle counts.
  size_t item = 0;     // bytes of an element of its tensors; 0: there are none.
  bool mixed = false;  // of several sizes
  bool bools = false;  // among them
  uint64_t at;         // where the pickle first names it
};

struct TensorNote {
  size_t storage;  // its number among the pickle's
  ScalarType dtype;
  int64_t offset;  // in elements
  std::vector<int64_t> sizes, strides;
  bool requires_grad;
};

struct Node;
/// `type`: as TorchScript names it ("List[int]"), or null.
struct NodeList {
  std::vector<Node*> items;
  const std::string* type = nullptr;
};
struct NodeTuple {
  std::vector<Node*> items;
};
struct NodeDict {
  std::vector<std::pair<Node*, Node*>> items;
  const std::string* type = nullptr;
};
/// An object of one of TorchScript's classes: its attributes, once it has been built. Or one of an
/// enumeration's values.
struct NodeObject {
  std::string name;
  Node* state = nullptr;
  Node* enumerator = nullptr;
};
struct NodeGlobal {
  std::string name;
};  // "module.name"
struct NodeStorage {
  size_t number;
  ScalarType dtype;
  const char* other = nullptr;  // the dtype's name, where this library does not have it
};
struct NodeTensor {
  TensorNote note;
};
struct NodeLong {
  std::string bytes;
};  // an integer of more than 64 bits
struct NodeMark {};
/// What this library cannot hold.
struct NodeOpaque {
  std::string name;  // "argparse.Namespace", "torch.complex64[2]"
};
/// In trees of data its text.
struct NodeDevice {
  std::string name;  // "cuda:1"
};

struct Node {
  std::variant<std::monostate, bool, int64_t, double, std::string, NodeList, NodeTuple, NodeDict,
               std::unique_ptr<NodeObject>, NodeGlobal, NodeStorage, std::unique_ptr<NodeTensor>,
               NodeLong, NodeMark, NodeOpaque, NodeDevice>
      value;
  uint64_t at = 0;  // of the opcode that made it

  template <class T> T* as() { return std::get_if<T>(&value); }
  /// "a list", "the global \"os.system\""
  std::string kind() const;
};

class Pickle {
 public:
  /// kLibTorch: with the classes of TorchScript's archives.
  enum class Dialect { kPython, kLibTorch };

  Pickle(Place place, serialize::detail::Source& in, Dialect dialect)
      : place_(std::move(place)), in_(in), dialect_(dialect) {}

  /// Runs the pickle that begins at `at` to its end, and says in `at` where that is.
  Node* run(uint64_t& at);

  const Place& place() const { return place_; }
  const std::vector<StorageNote>& storages() const { return storages_; }
  /// A storage's number by its key; as many as there are where no tensor names it.
  size_t storage_number(const std::string& key) const {
    const auto at = storage_numbers_.find(key);
    return at == storage_numbers_.end() ? storages_.size() : at->second;
  }

  /// The dtypes that PyTorch has, by the globals that name them.
  static bool names_dtype(const std::string& global);

  /// The value of a node; a dtype becomes its name. `tensor` makes the tensors. A node that is used
  /// twice becomes one list, dictionary or tensor. Globals and storages are no data and become
  /// opaque. Errors on cycles and on too much depth.
  IValue value(Node* node, const std::function<Tensor(const TensorNote&, uint64_t at)>& tensor);

 private:
  // pickle.cc
  uint8_t byte();
  uint64_t number(int bytes);
  std::string bytes(uint64_t n, const char* what);
  std::string line();
  /// Runs one opcode. The functions below run the opcodes of one kind; false for any other opcode.
  void step(uint8_t opcode);
  bool step_value(uint8_t opcode);
  bool step_container(uint8_t opcode);
  bool step_on_stack(uint8_t opcode);
  bool step_call(uint8_t opcode);
  Node* make(decltype(Node::value) value);
  void push(Node* node) { stack_.push_back(node); }
  template <class T> void push_new(T value) { push(make(std::move(value))); }
  Node* pop();
  Node* top();
  std::vector<Node*> pop_mark();
  void remember(uint64_t index);
  void set_items(Node* dict, const std::vector<Node*>& items);
  void append(Node* list, const std::vector<Node*>& items);
  void copying(uint64_t bytes);
  Node* opaque(const std::string& name);
  // pickle_globals.cc
  void push_global(const std::string& module, const std::string& name);
  Node* call(Node* function, Node* arguments, const char* opcode);
  void build(Node* object, Node* state);
  Node* storage(Node* id);
  /// An Error unless there are so many arguments.
  void need(const std::string& function, const std::vector<Node*>& args, size_t least, size_t most);
  // The calls of one function each.
  Node* ordered_dict(const std::string& function, const std::vector<Node*>& args);
  Node* rebuild_tensor(const std::string& function, const std::vector<Node*>& args);
  Node* rebuild_parameter(const std::string& function, const std::vector<Node*>& args);
  Node* rebuild_typed(const std::string& function, const std::vector<Node*>& args,
                      const char* opcode);
  Node* device(const std::string& function, const std::vector<Node*>& args);
  void set_type(Node* made, const std::string& type);
  Node* encoded(const std::string& function, const std::vector<Node*>& args);
  // Of tensors.
  std::vector<int64_t> extents(Node* node, const char* what);
  void add_metadata(Node* given, ScalarType dtype, std::string& other);
  void check_inside_storage(const TensorNote& note);

  Place place_;
  serialize::detail::Source& in_;
  Dialect dialect_;
  uint64_t at_ = 0, opcode_at_ = 0, copied_ = 0;
  std::deque<Node> nodes_;
  std::vector<Node*> stack_;
  std::unordered_map<uint64_t, Node*> memo_;
  std::vector<StorageNote> storages_;
  std::map<std::string, size_t> storage_numbers_;
  // One buffer ahead.
  std::string buffer_;
  uint64_t buffer_at_ = 0;
};

/// The text of an error about a file with tensors only inside of objects that cannot be read.
inline constexpr const char* kSaveAlone =
    ", which this library cannot hold, expected tensors: in Python, save them alone "
    "(torch.save(model.state_dict(), ...))";

/// How names show a dictionary's key.
std::string key_text(const IValue& key);

}  // namespace detail
}  // namespace formats
}  // namespace ramet
