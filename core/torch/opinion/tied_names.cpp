#include "core/torch/opinion/tied_names.h"

#include <algorithm>

#include "core/formats/jobs/input_sources.h"
#include "core/torch/judging/compare.h"

namespace retrograd {
namespace {

bool isOneMemory(const TensorData& a, const TensorData& b) {
  return a.data != nullptr && a.data == b.data && a.meta.offset == b.meta.offset && a.meta.sizes == b.meta.sizes &&
         a.meta.strides == b.meta.strides && a.meta.dtype == b.meta.dtype;
}

bool isConstant(const TensorData& tensor) {
  const auto values = asDoubles(tensor);
  return std::all_of(values.begin(), values.end(), [&](double value) { return value == values.front(); });
}

}  // namespace

std::vector<std::string> tiedNames(const TensorMap& weights, std::string_view name) {
  const auto wanted = jobs::plainName(name);
  const auto own = std::find_if(weights.begin(), weights.end(),
                                [&](const auto& weight) { return jobs::plainName(weight.first) == wanted; });
  if (own == weights.end()) return {};
  std::vector<std::string> names;
  for (auto other = weights.begin(); other != weights.end(); ++other) {
    if (other == own) continue;
    if (isOneMemory(own->second, other->second) || (identical(own->second, other->second) && !isConstant(own->second)))
      names.push_back(jobs::plainName(other->first));
  }
  return names;
}

}  // namespace retrograd
