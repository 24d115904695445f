#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/trace/trace.h"

namespace retrograd {

/// Which output of a model is its loss, as torch.distributed.pipelining has it: True or False, or tuples, lists and
/// dictionaries of these in the shape of what the model returns. Kept as written, so that errors can show it.
struct LossSpec {
  enum class Kind { flag, sequence, dictionary, other };
  Kind kind = Kind::flag;
  bool flag = false;
  bool isTuple = false;  ///< sequence: as Python writes it
  std::vector<LossSpec> items;
  std::vector<std::string> keys;  ///< dictionary: parallel to `items`
  std::string pythonType;         ///< other: "<class 'int'>"
  std::string text() const;       ///< as Python prints it
};

/// Reads a specification written in Python: `(False, {'loss': True})`. Throws Error(badUse) at the place that is wrong.
LossSpec parseLossSpec(const std::string& text);

/// The position of the loss among the computation's outputs; none for a bare False. The model's return value is taken
/// apart along the paths of its user outputs, so that a specification fits what the model's forward returned, not the
/// flat tuple of the graph. A single output may be written with a tuple around it or without. Throws Error(badUse) with
/// PyTorch's words.
std::optional<std::size_t> findLoss(const Document& document, const Computation& computation, const LossSpec& spec);

/// The same for `--loss TEXT`: a specification, or the name of an output: its path in what the model returns ("loss",
/// "0.1") or that of its value. Throws Error(badUse) where nothing is found.
std::size_t lossOutput(const Document& document, const Computation& computation, const std::string& text);

/// Says of each user output where it is in what forward returned, as Pt2Structure::outputPaths has it. Paths that
/// are not one for each user output change nothing.
void nameOutputs(Computation& computation, const std::vector<std::string>& paths);

/// Throws Error(badUse) with PyTorch's words where a gradient of 1 cannot begin at this output of the computation: the
/// value is not a scalar, or has no floating or complex dtype.
void requireScalarLoss(const Document& document, const Computation& computation, std::size_t output);

/// An output among which a loss is chosen.
struct LossChoice {
  std::string place;  ///< what lossOutput() finds it by: its path in what the model returns, or its position
  std::string value;  ///< name of the value; empty for a constant
  std::string type;   ///< as typeComment() has it; empty where it is not a tensor
  std::string
      refusal;  ///< why it cannot be the loss, as lossOutput() and requireScalarLoss() say it; empty where it can
};

/// The user outputs of the computation, in its order.
std::vector<LossChoice> lossChoices(const Document& document, const Computation& computation);

}  // namespace retrograd
