#pragma once
#include <memory>
#include <string_view>

#include "core/formats/pickle.h"

namespace retrograd {

/// The few constructors a pickle of tensors calls, done here instead of being called.
class PickleTensors {
 public:
  explicit PickleTensors(std::shared_ptr<const Archive> archive) : archive_(std::move(archive)) {}

  /// `text` is "module name", as "collections OrderedDict".
  static bool isKnownGlobal(std::string_view text);
  /// What the global at `callee` makes of the tuple at `arguments`. Throws Error(badInput).
  PickleValue call(const Pickle& pickle, std::uint32_t callee, std::uint32_t arguments) const;
  /// The storage that the persistent id ('storage', type, key, location, elements) names.
  PickleValue storage(const Pickle& pickle, std::uint32_t id) const;

 private:
  PickleValue tensor(const Pickle& pickle, const PickleValue& arguments, bool untyped) const;

  std::shared_ptr<const Archive> archive_;
};

/// Checks that the storage's bytes hold all that shape, strides and offset reach; throws Error(badInput).
void checkReach(const TensorMeta& meta, std::size_t bytes);

}  // namespace retrograd
