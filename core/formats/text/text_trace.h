#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/progress.h"
#include "core/formats/model/model_file.h"
#include "core/trace/trace.h"

namespace retrograd {

/// The traces that are in one text: one document, in which values of equal name are one value and bound symbols that
/// are in several traces are one.
struct TextTraces {
  std::shared_ptr<Document> document;
  std::optional<Computation> computation;
  std::vector<Trace> derived;               ///< joint, forward, backward, as far as they are there, in the text's order
  std::map<std::string, Argument> numbers;  ///< inputs that are numbers, by name
  std::vector<std::string> guards;          ///< conditions on sizes, as ModelFile::guards
  std::vector<Problem> problems;            ///< ops of the computation that LibTorch does not have

  /// Null where the text has no trace of this kind.
  const Trace* find(TraceKind kind) const;
};

enum class TextParts : std::uint8_t { all, computationOnly };

/// Reads printed traces (docs/text-form.md): what printTrace writes, and what people write by hand, who may leave out
/// del lines, lines of source, and the types of what a computation's ops make. Nothing in it is executed. Every trace
/// is verified. `name` is the file, for errors. Throws Error(badInput) at "name:line:column" that says what was
/// expected. An op that `lookup` does not know is a Problem.
TextTraces readTextTraces(std::string_view text, const std::string& name, const SymbolLookup& lookup,
                          TextParts parts = TextParts::all, const Progress& progress = {});

/// The computation of a text as a file to open; its parameters, buffers and constants are described and have no data.
/// Where the text holds derived traces too, ModelFile::printed has them. Throws as readTextTraces, and where the text
/// has no computation.
ModelFile readTextModel(std::string_view text, const std::string& path, const SymbolLookup& lookup,
                        const Progress& progress = {});

}  // namespace retrograd
