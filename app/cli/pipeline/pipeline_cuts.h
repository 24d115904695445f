#pragma once
#include <string>

#include "app/cli/parsing/options.h"
#include "core/torch/stages/open_pipeline.h"

namespace retrograd::cli {

/// "--at", "--stages", "--balance", "--transmit", "--loss": where a model is cut; shared by the subcommands of
/// `pipeline`.
void addCuts(Parser parser, CutRequest& request);

/// The options of a subcommand that cuts a file and runs its stages.
struct CutOptions {
  std::string file;
  CutRequest request;
  InputOptions input;

  void addTo(Parser parser);
  /// All but the file.
  void addOptionsTo(Parser parser);
  /// Reads and cuts the file. Throws Error(badUse) where there is none, else as openCut.
  CutModel open(bool derive, const Progress& progress) const;
  /// The same with `given` instead of what the inputs file has.
  CutModel open(bool derive, const Reference& given, const Progress& progress) const;
};

}  // namespace retrograd::cli
