#pragma once
#include <ATen/core/ivalue.h>
#include <c10/core/StorageImpl.h>

#include <optional>
#include <unordered_map>

namespace retrograd {

/// Bytes of the distinct storages under the values that a run holds, and of those that only what is kept of its past
/// holds.
class LiveMemory {
 public:
  /// Returns the bytes that became live with this value: 0 for a view or a second name.
  std::int64_t add(const c10::IValue& value);
  void remove(const c10::IValue& value);
  /// What is kept of the run's past holds the value, or no longer.
  void keep(const c10::IValue& value);
  void drop(const c10::IValue& value);
  /// Whether the run holds memory of this value.
  bool isHeld(const c10::IValue& value) const;
  /// Memory that is somebody else's and there anyway: holding it costs nothing.
  void exclude(const c10::IValue& value);

  std::int64_t bytes() const { return bytes_; }
  std::int64_t peak() const { return peak_; }
  void raisePeak(std::int64_t peak) { peak_ = std::max(peak_, peak); }
  /// Of storages that the run does not hold any more and its past does.
  std::int64_t keptBytes() const { return keptBytes_; }

 private:
  struct Entry {
    std::int64_t uses = 0, keeps = 0, bytes = 0;
    bool excluded = false;
    std::optional<c10::weak_intrusive_ptr<c10::StorageImpl>>
        anchor;  ///< of what is excluded: nothing else gets its address
  };
  Entry* entryOf(const c10::IValue& value);
  using Storages = std::unordered_map<const void*, Entry>;
  Storages::iterator find(const c10::IValue& value);
  void forget(Storages::iterator it);

  Storages storages_;
  std::int64_t bytes_ = 0, peak_ = 0, keptBytes_ = 0;
};

}  // namespace retrograd
