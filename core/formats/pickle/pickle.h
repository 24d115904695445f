#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/formats/zip/archive.h"
#include "core/trace/tensor_data.h"

namespace retrograd {

/// What a pickle of tensors and plain Python values holds. Containers refer to other values of the same Pickle by
/// index, so a value that occurs twice (or, in a hostile file, contains itself) costs nothing.
struct PickleValue {
  enum class Kind : std::uint8_t {
    none,
    boolean,
    integer,
    real,
    complex,
    string,
    tuple,
    list,
    dict,
    tensor,
    storage,
    global,
    object
  };
  Kind kind = Kind::none;
  std::int64_t integer = 0;  ///< of a tensor: whether it requires a gradient
  double real = 0, imaginary = 0;
  std::string text;  ///< string; a global's "module name"; an object's class; the type TorchScript gave a list or dict
  std::vector<std::uint32_t>
      items;          ///< elements; of a dict key, value, key, value; of an object its state, where it has one
  TensorData tensor;  ///< tensor; of a storage its bytes and dtype
};

/// The values of one pickle; `root` is the one that was stored.
struct Pickle {
  std::vector<PickleValue> values;
  std::uint32_t root = 0;

  const PickleValue& at(std::uint32_t index) const { return values[index]; }
};

/// A pickle of an archive, and what may occur in it.
struct PickleRecord {
  std::string name = "data.pkl";
  std::string storages = "data/";  ///< the folder of its storages
  bool objects = false;      ///< TorchScript: instances of the file's own classes become objects; their code stays text
  bool withoutData = false;  ///< tensors have a shape and no bytes (TorchScript's traced_inputs)
  bool opaque = false;       ///< what is neither tensor nor plain value becomes an object: its class as text ("module
                             ///< name"), its arguments and then its state as items. Nothing of it is created or run.
                             ///< Contents of containers of other classes are lost
  std::size_t maxValues = 500'000;
};

/// Reads what torch.save wrote (an archive with data.pkl and data/<n>) without running anything: only the opcodes and
/// the few globals that tensors and containers need are known, any other is refused with Error(badInput) naming it.
/// Limits: half a million values where the record says nothing else, sizes that fit their storages.
/// Opcodes: Lib/pickletools.py of Python 3.13; the tensor protocol: torch/_utils.py (_rebuild_tensor_v2,
/// _rebuild_tensor_v3); TorchScript's additions: torch/csrc/jit/serialization/pickler.cpp, torch/jit/_pickle.py.
Pickle readPickle(const std::shared_ptr<const Archive>& archive, const PickleRecord& record = {});
/// The same for a pickle outside of an archive, which can hold no tensor.
Pickle readPickle(std::string_view code, const PickleRecord& record);

/// The leaves in torch.utils._pytree's order: tuples and lists in order, dicts in the order of insertion.
/// Throws Error(badInput) when they nest deeper than 100 or are more than 1 million.
std::vector<std::uint32_t> leavesOf(const Pickle& pickle, std::uint32_t from);

}  // namespace retrograd
