#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/trace/trace.h"

namespace retrograd {

/// What a trace document says besides its traces.
struct TraceDocumentInfo {
  std::string file;                          ///< left out when empty
  std::string torchVersion;                  ///< of the writer of the file; left out when empty
  const Computation* computation = nullptr;  ///< meaning of its inputs and outputs; may be null
  const Trace* forward = nullptr;            ///< names the saved values; may be null
  std::vector<Problem> problems;
  std::vector<std::string> notes;  ///< "holds for these inputs only: ..."
};

/// The document of `retrograd trace --format json` (docs/trace.schema.json). Holds the values the given traces mention.
nlohmann::ordered_json traceDocument(const Document& document, std::span<const Trace* const> traces,
                                     const TraceDocumentInfo& info = {});

/// JSON text; strings that are not UTF-8 get replacement characters. `indent` -1: one line.
std::string dumpJson(const nlohmann::ordered_json& json, int indent = -1);

}  // namespace retrograd
