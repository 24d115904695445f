#include "core/torch/experiments/counterpart.h"

#include <algorithm>
#include <iterator>

#include "core/torch/analysis/analyse.h"
#include "core/torch/analysis/higher_order.h"
#include "core/torch/opening/open_model.h"
#include "core/torch/reading/read_model.h"
#include "core/torch/reading/session_file.h"

namespace retrograd {

std::shared_ptr<const Analysis> openCounterpart(const Analysis& a, const Counterpart& other, const Progress& progress) {
  auto options = optionsFromModel(a);
  if (other.precision) options.precision = other.precision;
  if (other.device) options.device = other.device;
  options.seed = other.seed.value_or(a.request.seed);
  options.exactCotangents = other.path.empty();  // the same model: its gradient begins where it does in `a`
  const auto& own = a.sessionPath.empty() ? firstOf(a).file.path : a.sessionPath;
  if (!other.weights.empty()) {
    const bool partial = options.data.partial;
    options.data = {};
    options.data.weights = other.weights;
    options.data.partial = partial;
  }
  const auto choice = chooseGraph(other.path);  // both run on what `a` was recorded with
  auto file = readModel(other.path.empty() ? own : choice ? choice->graph.model : other.path, options, progress);
  if (choice) std::ranges::move(notesOf(*choice, other.path), std::back_inserter(file.problems));
  if (file.recording) {  // runs on what is in it
    options.inputs.clear();
    options.numbers.clear();
    options.shapes.clear();
    options.data.batch.clear();
    if (other.weights.empty()) options.data.weights.clear();
  }
  return analyse(std::move(file), options, progress);
}

}  // namespace retrograd
