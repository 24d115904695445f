#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/formats/fx/fx_reader.h"
#include "core/trace/argument.h"
#include "core/trace/tensor_data.h"

namespace retrograd {

/// An argument that a repro script loads for its graph.
struct ReproInput {
  std::string name;                ///< of the graph's input
  std::optional<Argument> number;  ///< a size
  TensorMeta meta;                 ///< of a tensor
  TensorData data;  ///< from its storage file; without data where the script has none, or the file is not there
  bool requiresGrad = false;
  std::string source;  ///< for people: "storages/16a2...", "the script holds no data"
};

/// What load_args of a repro script asks for, one for each input of the graph, with the storages that lie next to the
/// script or in the folder its run_repro call names (looked for below the script's own folder: the machine that wrote
/// it had other paths). Storages are mapped. Throws Error(badInput) naming script and line for what load_args does that
/// is not known, and naming the storage file for one that is broken.
std::vector<ReproInput> readReproInputs(const fx::Repro& repro, const std::string& path);

/// Script of a repro folder: repro.py, fx_graph_runnable.py or minifier_launcher.py. The path itself if it is not a
/// folder or holds none.
std::string reproScript(const std::string& path);
/// Whether the path is a folder that holds one.
bool isReproFolder(const std::string& path);

}  // namespace retrograd
