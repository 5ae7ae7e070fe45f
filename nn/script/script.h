// Models that Python wrote as TorchScript (torch.jit.save) or as a program of torch.export (.pt2):
// loaded, run, trained and saved again.
//
// A TorchScript file holds classes with their code, as text, and the objects. A .pt2 file holds a
// graph, which becomes such a text: it is saved as TorchScript. The code is compiled once to a
// typed program and checked before it runs. It can do nothing but the operations of tensors,
// numbers, texts and lists. ramet::script::load() gives a module like any other: optimizers, state
// dicts, replicas, clones and captures work with it. ramet::jit has LibTorch's names.
//
// Read are the zip formats 3 to 10, and .pt2 files of PyTorch 2.5 to 2.15. Formats 1 and 2, files
// for mobile (.ptl), quantised tensors and custom C++ classes are refused by name.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "autograd/ivalue.h"
#include "nn/module/any_value.h"
#include "nn/module/module.h"

namespace ramet {
namespace script {
class Object;
struct ArchiveTexts;
struct ScriptFunction;
struct LoadedModule;
struct FrozenNames;
struct Move;

/// What a file may ask for before loading or running it is an Error, and where its tensors go.
struct LoadOptions {
  /// All tensors go there, and devices that the code names mean it. In a file with tensors of a GPU
  /// the CPU stays the CPU. By default tensors go to the device that the file names.
  std::optional<Device> device;
  /// Expressions, blocks and values inside each other.
  int64_t depth = 200;
  /// Calls inside each other while running.
  int64_t recursion = 200;
  /// Instructions of one call from outside.
  int64_t steps = std::numeric_limits<int64_t>::max();
  /// Bytes of all entries together, unpacked. 0: as many as the file's directory states.
  int64_t unpacked_bytes = 0;
  /// Expressions in one text of the code.
  int64_t expressions = 10000000;
  /// The name of a program in a .pt2 file that has several. By default "model", or the only one.
  std::string model;
};
}  // namespace script

namespace jit {

using ramet::IValue;
/// Values in order.
using Stack = std::vector<IValue>;
/// Texts that a file carries together with the module, by name.
using ExtraFilesMap = std::unordered_map<std::string, std::string>;
/// Arguments by name.
using Kwargs = std::unordered_map<std::string, IValue>;
/// A value with its name, as named_parameters() gives them.
template <class T> struct Named {
  std::string name;  ///< "child.weight"
  T value;           ///< a tensor, a module or an attribute
};
using NameTensor = Named<Tensor>;

/// Bytes from anywhere: derive from it to load from a place that is no file and no stream.
class RAMET_API ReadAdapter {
 public:
  virtual ~ReadAdapter();
  /// How many bytes there are.
  virtual size_t size() const = 0;
  /// Reads n bytes from `pos` on, and returns how many it read. `what` is for errors.
  virtual size_t read(uint64_t pos, void* buf, size_t n, const char* what = "") const = 0;
};

class Module;

/// A method of a module. It is compiled when it is first asked for, which is an Error that lists
/// all that this library lacks for it.
class RAMET_API Method {
 public:
  /// Its name without its class.
  const std::string& name() const { return name_; }
  /// Calls it. The arguments are checked against its parameters.
  IValue operator()(std::vector<IValue> arguments, const Kwargs& by_name = {}) const;

 private:
  friend class Module;
  Method(std::shared_ptr<script::Object> object, script::ScriptFunction* function, std::string name)
      : object_(std::move(object)), function_(function), name_(std::move(name)) {}
  std::shared_ptr<script::Object> object_;
  script::ScriptFunction* function_;
  std::string name_;
};

/// A module of a TorchScript file. Copies are handles of the same object, as in LibTorch. Several
/// threads may run it at once, unless its code assigns to its attributes.
class RAMET_API Module {
 public:
  /// Holds nothing: every call is an Error until a loaded module is assigned.
  Module() = default;

  /// Runs forward() without the module's hooks, or with them:
  IValue forward(std::vector<IValue> inputs, const Kwargs& by_name = {}) const;
  IValue operator()(std::vector<IValue> inputs, const Kwargs& by_name = {}) const;
  /// Runs a method by name.
  template <class... Args> IValue run_method(const std::string& name, Args&&... args) const {
    return get_method(name)({IValue(std::forward<Args>(args))...});
  }
  /// A method by name, where get_method() is an Error if there is none; and all of them:
  Method get_method(const std::string& name) const;
  std::optional<Method> find_method(const std::string& name) const;
  std::vector<Method> get_methods() const;

  /// An attribute by name. An Error where there is none, or `or_else`.
  IValue attr(const std::string& name) const;
  IValue attr(const std::string& name, IValue or_else) const;
  /// Sets an attribute. An Error unless the value has its type.
  void setattr(const std::string& name, IValue value) const;
  /// Is there such an attribute or constant?
  bool hasattr(const std::string& name) const;
  /// How many attributes it has.
  size_t num_slots() const;
  /// Sets an attribute that the class has, as a buffer, a parameter or a module. LibTorch's add one
  /// where there is none. Here that is an Error, since the class is the file's:
  void register_buffer(const std::string& name, Tensor value) const;
  void register_parameter(const std::string& name, Tensor value, bool is_buffer) const;
  void register_module(const std::string& name, const Module& module) const;

  /// Those of this module and, with `recurse`, of all below it. A module that is there twice is
  /// visited once, under its first name:
  std::vector<Tensor> parameters(bool recurse = true) const;
  std::vector<NameTensor> named_parameters(bool recurse = true) const;
  std::vector<Tensor> buffers(bool recurse = true) const;
  std::vector<NameTensor> named_buffers(bool recurse = true) const;
  /// Its own modules:
  std::vector<Module> children() const;
  std::vector<Named<Module>> named_children() const;
  /// This one first, then all below it:
  std::vector<Module> modules() const;
  std::vector<Named<Module>> named_modules() const;
  /// Calls f for all modules: those below a module first.
  void apply(const std::function<void(Module&)>& f) const;
  /// All attributes, as parameters():
  std::vector<IValue> attributes(bool recurse = true) const;
  std::vector<Named<IValue>> named_attributes(bool recurse = true) const;

  /// Moves or casts parameters and buffers in place; integer buffers keep their dtype.
  void to(Device device, ScalarType dtype, bool non_blocking = false) const;
  void to(ScalarType dtype, bool non_blocking = false) const;
  void to(Device device, bool non_blocking = false) const;
  /// The attribute `training` of all modules that have it; true where there is none:
  void train(bool on = true) const;
  void eval() const { train(false); }
  bool is_training() const;

  /// A copy with its own tensors and attributes; what was shared inside is shared in the copy.
  Module deepcopy(std::optional<Device> device = std::nullopt) const;
  /// deepcopy(), or copy() with `inplace`.
  Module clone(bool inplace = false) const { return inplace ? copy() : deepcopy(); }
  /// Another object with the same tensors and submodules.
  Module copy() const;

  /// Writes an archive that PyTorch loads: the code as it was read, the attributes as they are. A
  /// path is written whole or not at all. The same content gives the same file.
  void save(const std::string& path, const ExtraFilesMap& extra_files = {}) const;
  void save(std::ostream& out, const ExtraFilesMap& extra_files = {}) const;

  /// The module as text: its parameters, attributes, methods and modules. A method's body is its
  /// code. LibTorch prints the graph.
  std::string dump_to_str(bool print_method_bodies, bool print_attr_values,
                          bool print_param_values) const;
  /// Prints that.
  void dump(bool print_method_bodies, bool print_attr_values, bool print_param_values) const;

  /// The class's full name ("__torch__.net.Net").
  const std::string& type_name() const;
  /// Compiling TorchScript's text is not supported: an Error that says so.
  [[noreturn]] void define(const std::string& source) const;
  /// The object, as a value.
  IValue::ObjectPtr _ivalue() const;
  operator IValue() const { return IValue(_ivalue()); }
  bool operator==(const Module& o) const { return object_ == o.object_; }
  bool operator!=(const Module& o) const { return !(*this == o); }

 private:
  friend struct script::LoadedModule;
  friend struct ModuleAccess;
  Module(std::shared_ptr<script::Object> object, std::shared_ptr<script::ArchiveTexts> texts);
  script::Object& object() const;
  bool sees(const std::string& attribute) const;
  bool sees_method(const std::string& method) const;
  std::shared_ptr<script::Object> object_;
  std::shared_ptr<script::ArchiveTexts> texts_;
  std::shared_ptr<const script::FrozenNames> frozen_;  // what is left of a frozen module
};

namespace script {
using Module = jit::Module;
using Method = jit::Method;
using ExtraFilesMap = jit::ExtraFilesMap;
}  // namespace script

/// Loads a file of torch.jit.save(), torch.export.save() or script::Module::save(). Every method of
/// the module is compiled; one Error lists all that this library lacks, with the Python file and
/// line.
RAMET_API Module load(const std::string& path, std::optional<Device> device = std::nullopt);
RAMET_API Module load(std::istream& in, std::optional<Device> device = std::nullopt);
RAMET_API Module load(std::shared_ptr<ReadAdapter> in, std::optional<Device> device = std::nullopt);
/// The same; each key of `extra_files` that the file has gets its text.
RAMET_API Module load(const std::string& path, std::optional<Device> device,
                      ExtraFilesMap& extra_files);
RAMET_API Module load(std::istream& in, std::optional<Device> device, ExtraFilesMap& extra_files);
RAMET_API Module load(std::shared_ptr<ReadAdapter> in, std::optional<Device> device,
                      ExtraFilesMap& extra_files);
/// With limits for files that are not trusted.
RAMET_API Module load(const std::string& path, const ramet::script::LoadOptions& options);
RAMET_API Module load(std::istream& in, const ramet::script::LoadOptions& options);

/// A copy with its parameters and attributes as constants: they are no longer there, and get no
/// gradients. What forward() changes stays, and so do the attributes and methods of
/// `preserved_attrs` ("scale", "encoder.weight", "other_method"). An Error in training mode. The
/// program stays as it was, and a file of the copy has all attributes.
RAMET_API Module
freeze(const Module& module,
       const std::optional<std::vector<std::string>>& preserved_attrs = std::nullopt,
       bool optimize_numerics = true);
/// freeze(), or the module itself where it is frozen. `other_methods`: that it has to have.
RAMET_API Module optimize_for_inference(const Module& module,
                                        const std::vector<std::string>& other_methods = {});
/// LibTorch compiles TorchScript's text here. This library does not: an Error that says so.
[[noreturn]] RAMET_API void compile(const std::string& source);

}  // namespace jit

namespace script {

/// A TorchScript module as an nn::Module. Its parameters and buffers are registered under their
/// names, and its modules as children. The code runs with the tensors that are registered: it may
/// be trained, moved, cloned, replicated and captured. Devices in the code and in attributes,
/// and tensors in the code, follow the module's first tensor from the device of load(). Where the
/// code assigns to a buffer, the new tensor is registered.
class RAMET_API ScriptModule : public nn::Module {
 public:
  explicit ScriptModule(const jit::Module& module);

  /// Runs the code's forward(), with the hooks that the file has. An Error if the result is no
  /// tensor.
  template <class... T,
            std::enable_if_t<sizeof...(T) != 0 && (std::is_convertible_v<const T&, Tensor> && ...),
                             int> = 0>
  Tensor forward(const T&... inputs) {
    return tensor_of(run({IValue(Tensor(inputs))...}));
  }
  /// With any arguments, and any result:
  IValue forward(std::vector<IValue> inputs) { return run(std::move(inputs)); }
  /// For AnyModule and Sequential. Boxed are tensors, numbers, texts, lists of tensors and IValues;
  /// a result that is no tensor is an IValue.
  nn::AnyValue forward_values(std::vector<nn::AnyValue>&& arguments);
  /// Does the code's forward() take one tensor and return one?
  bool maps_tensor() const;
  /// Another method of the code.
  IValue run_method(const std::string& name, std::vector<IValue> inputs);

  std::shared_ptr<nn::Module> clone(
      const std::optional<Device>& device = std::nullopt) const override;
  void pretty_print(std::ostream& stream) const override;
  /// The TorchScript module with the tensors that are registered: to save it.
  const jit::Module& script() const;

 private:
  struct Made;
  struct Slot {
    size_t slot;  // of the object
    bool buffer;
    size_t place;  // in the registry
  };
  ScriptModule(const jit::Module& module, Made& made);
  void build(Made& made);
  IValue run(std::vector<IValue> inputs);
  static Tensor tensor_of(const IValue& value);
  std::optional<Device> place() const;
  std::optional<Move> moved(const std::optional<Device>& here) const;
  void to_object() const;
  void to_object(const std::optional<Device>& here) const;
  void from_object();
  const Tensor& registered(const Slot& slot) const;
  void take_flags(const ScriptModule& source);

  jit::Module module_;
  std::vector<Slot> slots_;
  std::vector<size_t> devices_;  // slots of attributes that are the device of load()
  int64_t training_ = -1;        // the slot of `training`, or -1
};

/// Loads a file as an nn::Module.
RAMET_API std::shared_ptr<ScriptModule> load(const std::string& path,
                                             const LoadOptions& options = {});
RAMET_API std::shared_ptr<ScriptModule> load(std::istream& in, const LoadOptions& options = {});

}  // namespace script
}  // namespace ramet
