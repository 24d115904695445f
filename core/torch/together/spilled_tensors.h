#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

namespace retrograd {

/// Tensors that lie in a file without a name until they are asked for: of several ranks no more is in memory than what
/// is looked at.
class SpilledTensors {
 public:
  /// Where a tensor lies; `bytes` < 0: nowhere.
  struct Place {
    std::int64_t offset = 0, bytes = -1;
    std::vector<std::int64_t> sizes;
    at::ScalarType dtype = at::kFloat;

    explicit operator bool() const { return bytes >= 0; }
  };

  /// Throws Error(io) where no temporary file can be made.
  SpilledTensors();
  /// The elements, row by row. Throws Error(io) where the disk is full.
  Place put(const at::Tensor& tensor);
  at::Tensor get(const Place& place) const;

 private:
  struct Closed {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Closed> file_;
  std::int64_t end_ = 0;
};

}  // namespace retrograd
