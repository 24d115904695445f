#include "core/questions/saved.h"

#include <algorithm>
#include <span>

namespace retrograd {

SavedValues savedValues(const Analysis& analysis) {
  const auto& outputs = analysis.forward.outputs;
  const auto results = std::min(analysis.forward.resultCount, outputs.size());
  return savedValues(*analysis.document, std::span(outputs).subspan(results), analysis.forward.ops);
}

}  // namespace retrograd
