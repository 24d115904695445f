#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/fx/fx_graph.h"
#include "core/formats/jobs/job_log.h"

namespace retrograd::jobs {

/// What an input of a compiled function is in the Python program, as Dynamo described it. No data.
struct InputSource {
  enum class Kind : std::uint8_t { input, parameter, buffer, number };
  Kind kind = Kind::input;
  std::string source;  ///< "L['model']._modules['emb']._parameters['weight']"
  std::string name;    ///< "emb.weight", whatever object holds the module; of a user's tensor "ids", "batch.x"
  std::vector<std::string> path{};  ///< the keys along the source: "model", "emb", "weight"; empty where it is not one
  std::size_t held = 0;             ///< path[held..] is the name; what precedes it holds the module or the inputs
  std::string dtype;                ///< "torch.float32"; empty where it was not described
  std::vector<std::int64_t> sizes;
  bool requiresGrad = false;
};

/// The inputs that an attempt describes, in the order in which Dynamo met them.
std::vector<InputSource> describedInputs(const JobLog& log, const Attempt& attempt);
/// The size symbols of an attempt with the numbers that they stood for.
std::map<std::string, std::int64_t> sizeHints(const JobLog& log, const Attempt& attempt);

/// What a source names: kind, name and path of the result alone.
InputSource readInputSource(std::string_view source);

/// The names that a file may have for a source, the longest first: "model.emb.weight", "emb.weight"; of a user's tensor
/// also the ends of its name ("x" of "batch.x").
std::vector<std::string> namesOf(const InputSource& source);

/// For each input of the Dynamo graph the source that it is named after; none where no description has that name
/// (sizes, opaque objects). Dynamo makes the name of a placeholder from its source; where two sources give one name, it
/// counts them in order.
std::vector<std::optional<InputSource>> bindInputs(const fx::Graph& dynamo, const std::vector<InputSource>& described);

/// A parameter's name without what wrappers put into it: `_orig_mod.`, `module.`, `_fsdp_wrapped_module.`.
std::string plainName(std::string_view name);

}  // namespace retrograd::jobs
