#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/tensor_meta.h"
#include "core/formats/fx/fx_graph.h"
#include "core/sizes/number.h"
#include "core/sizes/size_expression.h"

namespace retrograd::jobs {

/// Numbers of the texts that a graph has for sizes. What the job does not say is taken for 2 and more, and noted.
class KnownSizes {
 public:
  /// `notes`: where to say what was taken for granted.
  KnownSizes(SizeBindings sizes, std::vector<std::string>& notes) : sizes_(std::move(sizes)), notes_(notes) {}

  /// An int, float or bool: "4*s23", "IntTrueDiv(s23, 2)".
  Number number(const std::string& text);
  /// Of a tensor's annotation.
  TensorMeta meta(const fx::Type& type);
  bool hasAssumed() const { return !assumed_.empty(); }

 private:
  std::int64_t assume(const std::string& text);
  std::int64_t size(const std::string& text);

  SizeBindings sizes_, assumed_;
  std::vector<std::string>& notes_;
};

}  // namespace retrograd::jobs
