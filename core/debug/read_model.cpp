#include "core/debug/read_model.h"

#include "core/debug/probe.h"
#include "core/formats/torchscript.h"
#include "core/tracing/op_table.h"
#include "core/tracing/torchscript.h"

namespace retrograd {

ModelFile readModel(const std::string& path, const AnalysisOptions& options, const Progress& progress) {
  const auto archive = openModelArchive(path, progress);
  if (!isTorchScript(*archive)) return readModelFile(archive, lookupSymbol, progress);
  try {
    probe(path, progress);
    return traceTorchScript(archive, {options.inputs, options.numbers, options.shapes, options.seed}, progress);
  } catch (const Error& e) {
    throw e.code() == ErrorCode::cancelled || e.place().starts_with(path) ? e : e.at(path);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::badInput, "does not fit into memory", path);
  }
}

}  // namespace retrograd
