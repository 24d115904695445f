#pragma once
#include <string>
#include <vector>

#include "views/text/trace_index.h"

namespace retrograd::views {

/// Something one can go to by its name.
struct Place {
  enum class Kind : std::uint8_t { named, input, gradient, state, section, line, module, operation, op };
  Kind kind = Kind::op;
  std::string name;    ///< "h.3.fc.weight", "h.3.fc.weight.grad", "exp_avg of h.3.fc.weight", "step 0, optimizer",
                       ///< "train.py:28", "h.3", "linear_2", "t41"
  std::string detail;  ///< what it is: "parameter f32[8, 8]", "module, 12 ops", "aten.linear  h.3.fc"
  BoundSymbolId op;    ///< where it leads
  ValueId value;       ///< parameters, inputs, gradients and states, and what someone named
};

/// All that has a name in a document, as PyTorch and the model's own code say it: parameters and inputs, their
/// gradients, what an optimizer keeps of them, parts of a recorded step, lines of Python, modules, operations of the
/// computation, ops of the joint.
/// For a thread pool: a joint of 420,000 ops takes a moment.
std::vector<Place> places(const Analysis& analysis, const Progress& progress = {});

/// The values that people gave names, as places; `all` are those of the document.
std::vector<Place> namedPlaces(const Analysis& analysis, const std::vector<Place>& all,
                               const std::vector<std::pair<ValueId, std::string>>& names);

/// Positions of what matches, best first, at most `limit`. A query is words, each of which must be part of name or
/// detail, or its letters in that order part of the name ("lnw" finds "ln1.weight"); names that are or begin with the
/// query come first. "#12" finds the op of that number, "12" shows it before others.
std::vector<std::size_t> match(const std::vector<Place>& places, std::string_view query, std::size_t limit,
                               const Progress& progress = {});

/// How well a word fits a text: 0 not at all, else more is better. Letters compare without regard to case.
int fit(std::string_view word, std::string_view text);

}  // namespace retrograd::views
