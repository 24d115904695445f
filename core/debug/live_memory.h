#pragma once
#include <ATen/core/ivalue.h>

#include <unordered_map>

namespace retrograd {

/// Bytes of the distinct storages under the values that were added and not removed.
class LiveMemory {
 public:
  /// Returns the bytes that came to be live with this value: 0 for a view or a second name.
  std::int64_t add(const c10::IValue& value);
  void remove(const c10::IValue& value);
  std::int64_t bytes() const { return bytes_; }
  std::int64_t peak() const { return peak_; }
  void raisePeak(std::int64_t peak) { peak_ = std::max(peak_, peak); }

 private:
  struct Entry {
    std::int64_t uses = 0, bytes = 0;
  };
  std::unordered_map<const void*, Entry> storages_;
  std::int64_t bytes_ = 0, peak_ = 0;
};

}  // namespace retrograd
