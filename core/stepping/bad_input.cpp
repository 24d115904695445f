#include "core/stepping/bad_input.h"

#include <fmt/format.h>

#include "core/derivation/result_names.h"
#include "core/stepping/bad_places.h"

namespace retrograd {
namespace {

std::string kindAndName(const Analysis& analysis, const InputSpec& input) {
  if (input.kind == InputKind::parameter) return "the parameter " + input.target;
  if (input.kind == InputKind::buffer) return "the buffer " + input.target;
  return "the input " + (input.name.empty() ? analysis.document->displayName(input.value) : input.name);
}

}  // namespace

std::string badInputText(const Analysis& analysis, ValueId value, const TensorStatistics& statistics) {
  constexpr std::size_t shown = 3;
  const auto& inputs = analysis.computation().inputs;
  auto text = "the input " + analysis.document->displayName(value);
  std::string places;
  const auto bad = static_cast<std::size_t>(statistics.nan + statistics.inf);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].value != value) continue;
    text = kindAndName(analysis, inputs[i]);
    if (const auto* data = inputData(analysis, i)) places = describe(badPlaces(*data, shown), bad);
  }
  if (!places.empty()) text += ", " + places;
  text += fmt::format(" ({} of {} elements)", bad, statistics.elements);
  if (analysis.document->value(value).kind == ValueKind::cotangent)
    text += ", a gradient that an output got from outside: what made it is not in this file";
  return text;
}

bool isBadInputText(const std::string& text) {
  return text.starts_with("the input ") || text.starts_with("the parameter ") || text.starts_with("the buffer ");
}

}  // namespace retrograd
