#pragma once
#include <memory>
#include <string_view>

#include "core/formats/pickle/pickle.h"

namespace retrograd {

/// The few constructors a pickle of tensors calls, done here instead of being called.
class PickleTensors {
 public:
  PickleTensors(std::shared_ptr<const Archive> archive, PickleRecord record)
      : archive_(std::move(archive)), record_(std::move(record)) {}

  /// `text` is "module name", as "collections OrderedDict". Throws Error(badInput) for a class of C++, naming it.
  bool isKnownGlobal(std::string_view text) const;
  /// Whether the global is a class of the file itself, where such may occur.
  bool isClass(const PickleValue& global) const;
  /// "__torch__.model.Net" of "__torch__.model Net".
  static std::string className(std::string_view global);
  /// What the global at `callee` makes of the tuple at `arguments`. Throws Error(badInput).
  PickleValue call(const Pickle& pickle, std::uint32_t callee, std::uint32_t arguments) const;
  /// An object of the class at `callee`, which is not created (PickleRecord::opaque).
  PickleValue opaque(const Pickle& pickle, std::uint32_t callee, std::uint32_t arguments) const;
  /// The storage that the persistent id ('storage', type, key, location, elements) names.
  PickleValue storage(const Pickle& pickle, std::uint32_t id) const;

 private:
  PickleValue tensor(const Pickle& pickle, const PickleValue& arguments, bool untyped) const;
  PickleValue typed(const Pickle& pickle, const PickleValue& arguments, std::string type) const;
  ByteRegion storageBytes(const std::string& key, std::int64_t bytes) const;

  std::shared_ptr<const Archive> archive_;
  PickleRecord record_;
};

/// Checks that the storage's bytes hold all that shape, strides and offset reach; throws Error(badInput).
void checkReach(const TensorMeta& meta, std::size_t bytes);

}  // namespace retrograd
