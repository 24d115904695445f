#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/derivation/analysis.h"

namespace retrograd {

/// What a person asks of a model by options. What is absent is as the file, the reference or the saved session has it.
struct ModelRequest {
  std::optional<std::uint64_t> seed;
  std::optional<std::vector<std::string>> gradInputs;  ///< "none": no input is differentiated
  std::optional<int> order;                            ///< 2 and up: gradients of gradients
  TraceKind again = TraceKind::joint;                  ///< what `order` differentiates again
  GivenData data;
  std::map<std::string, Argument> numbers;
  std::map<std::string, InputShape> shapes;
  std::optional<PartitionOptions> partition;
  TensorMap filled;
  std::shared_ptr<const RuleRegistry> rules;
  std::optional<Device> device;

  /// Whether a saved session is as asked for. Rules do not count: the session is loaded with them.
  bool isDefault() const;
  /// What to read a file with that has to be traced. `inputs`, `seed`: of a reference, where there is one.
  DerivationRequest forReading(const TensorMap& inputs = {}, std::optional<std::uint64_t> seed = {}) const;
  /// Lays what is asked for over what a reference or a saved session asks for.
  void layOver(DerivationRequest& request) const;
};

}  // namespace retrograd
