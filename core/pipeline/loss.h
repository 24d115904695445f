#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/trace/trace.h"

namespace retrograd {

/// Which output of a model is its loss, as torch.distributed.pipelining has it: True or False, or tuples, lists and dictionaries of these
/// in the shape of what the model returns. Kept as written, so that errors can show it.
struct LossSpec {
  enum class Kind { flag, sequence, dictionary, other };
  Kind kind = Kind::flag;
  bool flag = false;
  bool isTuple = false;                ///< sequence: as Python writes it
  std::vector<LossSpec> items;
  std::vector<std::string> keys;       ///< dictionary: parallel to `items`
  std::string pythonType;              ///< other: "<class 'int'>"
  std::string text() const;            ///< as Python prints it
};

/// Reads a specification written in Python: `(False, {'loss': True})`. Throws Error(badUse) at the place that is wrong.
LossSpec parseLossSpec(const std::string& text);

/// The position of the loss among the computation's outputs; none for a bare False. What the model returns is taken apart along the paths of
/// its user outputs, so that a specification fits what the model's forward returned, not the flat tuple of the graph. A single output may be
/// written with a tuple around it or without. Throws Error(badUse) with PyTorch's words.
std::optional<std::size_t> findLoss(const Document& document, const Computation& computation, const LossSpec& spec);

/// The same for `--loss TEXT`: a specification, or the name of an output: its path in what the model returns ("loss", "0.1") or that of its
/// value. Throws Error(badUse) where nothing is found.
std::size_t lossOutput(const Document& document, const Computation& computation, const std::string& text);

}  // namespace retrograd
