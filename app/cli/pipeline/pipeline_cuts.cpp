#include "app/cli/pipeline/pipeline_cuts.h"

#include "app/cli/parsing/input.h"

#include "core/torch/judging/reference.h"
#include "core/torch/tracing/thread_scope.h"

namespace retrograd::cli {

void addCuts(Parser parser, CutRequest& request) {
  parser
      .add("--at", request.at,
           "MODULE[:before|after] or #OP[:before|after]: cut at each call of the module, or at the op; repeatable, "
           "added to the file's markers")
      .repeatable();
  parser.add("--stages", request.stages, "cut into N stages of equal load").aboveZero();
  parser
      .add("--balance",
           "what load means: time (measured by running; the default), estimate (time estimated from the ops), "
           "parameters or bytes",
           [&request](const std::string& by) {
             request.balance = by == "time"         ? Balance::time
                               : by == "estimate"   ? Balance::estimate
                               : by == "parameters" ? Balance::parameters
                                                    : Balance::bytes;
           })
      .oneOf({"time", "estimate", "parameters", "bytes"});
  parser.flag("--ignore-markers", "ignore the markers of the file", [&request] { request.useMarkers = false; });
  parser
      .add("--transmit",
           "parameters that several stages use and that the first one sends to the others, comma separated, or all "
           "(default: each stage has a copy)",
           [&request](const std::vector<std::string>& names) {
             for (const auto& name : names)
               if (name == "all") request.options.multiUse = MultiUse::transmit;
               else request.options.multiUseOf[name] = MultiUse::transmit;
           })
      .commaSeparated();
  parser
      .add("--devices",
           "device of each stage, comma separated, or one for all: cpu, cuda or cuda:N; their device literals are "
           "rewritten",
           [&request](const std::vector<std::string>& names) {
             for (const auto& name : names) request.options.devices.push_back(parseDevice(name));
           })
      .commaSeparated();
  parser.add("--loss", request.loss,
             "which output is the loss: its name, or (False, {'loss': True}) in the shape of what the model returns");
}

void CutOptions::addTo(Parser parser) {
  parser.add("file", file, "a model (.pt2, TorchScript, printed traces) or a .retrograd session").required();
  addOptionsTo(parser);
}

void CutOptions::addOptionsTo(Parser parser) {
  addCuts(parser, request);
  input.addTo(parser, /*batch=*/false);
}

CutModel CutOptions::open(bool derive, const Progress& progress) const { return open(derive, input.given(), progress); }

CutModel CutOptions::open(bool derive, const Reference& given, const Progress& progress) const {
  const auto path = inputFile(file);
  requireFile(path);
  setThreads(input.threads);
  if (input.order && *input.order > 1) badUse("--order is not for pipelines: their stages have one backward", file);
  return openCut(
      path, request, input.forReading(given), [&](const ModelFile& model) { return input.forFile(model, given); },
      derive, progress);
}

}  // namespace retrograd::cli
