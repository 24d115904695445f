#include "core/torch/fx/repro_model.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "core/base/error.h"
#include "core/base/memory_account.h"
#include "core/formats/files/mapped_file.h"
#include "core/formats/files/mapping_watch.h"
#include "core/formats/fx/lower_prims.h"
#include "core/formats/repro/repro_inputs.h"
#include "core/torch/fx/graph_runner.h"
#include "core/torch/tracing/convert.h"
#include "core/torch/tracing/generator.h"
#include "core/torch/tracing/lay_out.h"

namespace retrograd {
namespace {

constexpr std::int64_t mostDrawn = std::int64_t{8} << 30;

/// Declares the graph's inputs and gives their values.
class InputMaker {
 public:
  InputMaker(ModelFile& file, ComputationRecorder& recorder, std::uint64_t seed)
      : file_(file), recorder_(recorder), generator_(at::detail::createCPUGenerator(seed)), seed_(seed) {}

  c10::IValue add(const ReproInput& input) {
    if (input.number) {
      recorder_.addNumber(input.name, *input.number);
      return input.number->integer;
    }
    InputSpec spec;
    spec.name = input.name;
    spec.requiresGrad = input.requiresGrad;
    if (input.data.data || input.data.bytes > 0 || input.meta.elements() == 0) {
      const auto tensor = input.meta.elements() == 0 ? drawTensor(input.meta, generator_) : borrowTensor(input.data);
      recorder_.addInput(std::move(spec), tensor, input.meta.elements() == 0 ? snapshot(tensor) : input.data, true);
      return tensor;
    }
    drawn_ += input.meta.storageBytes();
    if (drawn_ > mostDrawn)
      throw Error(ErrorCode::badUse, "has no data, and more than 8 GiB are not drawn", "argument " + input.name);
    auto tensor = drawTensor(input.meta, generator_);
    if (tensor.strides() != at::IntArrayRef(input.meta.strides))
      tensor = laidOut(tensor, input.meta.strides, input.meta.offset);
    withoutData_[input.source].push_back(input.name);
    recorder_.addInput(std::move(spec), tensor, snapshot(tensor), true);
    return tensor;
  }

  /// One note for all that were drawn for the same reason: a script of a large graph has hundreds.
  void noteDrawn() {
    constexpr std::size_t shown = 3;
    for (const auto& [source, names] : withoutData_) {
      auto place = fmt::format("argument{} {}", names.size() == 1 ? "" : "s",
                               fmt::join(names.begin(), names.begin() + std::min(shown, names.size()), ", "));
      if (names.size() > shown) place += fmt::format(" and {} more", names.size() - shown);
      file_.problems.push_back(
          {Problem::Severity::note, source + ": drawn from seed " + std::to_string(seed_), std::move(place), -1});
    }
  }

 private:
  ModelFile& file_;
  ComputationRecorder& recorder_;
  at::Generator generator_;
  std::uint64_t seed_;
  std::int64_t drawn_ = 0;
  std::map<std::string, std::vector<std::string>> withoutData_;
};

fx::Repro readScript(const std::string& path, ModelFile& file) {
  const auto bytes = mapFile(path);
  const ReadingScope scope(bytes.size);
  file.identity = identityOf(bytes);
  return readUnchanged(bytes.data, [&] { return fx::readRepro(bytes.text(), path); });
}

}  // namespace

ModelFile readReproModel(const std::string& path, std::uint64_t seed, const Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  ModelFile file;
  file.path = path;
  file.document = std::make_shared<Document>();
  const auto repro = readScript(path, file);
  file.torchVersion = repro.torchVersion;
  const auto arguments = readReproInputs(repro, path);
  ComputationRecorder recorder(file, {}, progress);
  InputMaker maker(file, recorder, seed);
  std::vector<c10::IValue> inputs;
  for (const auto& argument : arguments) inputs.push_back(maker.add(argument));
  maker.noteDrawn();
  KeepGenerator keep;
  setGeneratorState(seededState(seed));
  at::AutoGradMode noGrad(false);
  const auto graph = fx::withoutPrims(repro.graph).graph;
  GraphRunner runner(graph, recorder, *file.document, path);
  std::vector<c10::IValue> outputs;
  {
    const AboveAutograd observed(recorder);
    outputs = runner.run(std::move(inputs), progress);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) recorder.addOutput(outputs[i], std::to_string(i));
  if (runner.movedDevices())
    file.problems.push_back(
        {Problem::Severity::note, "the graph was compiled for another device; here it runs on the CPU", path, -1});
  file.traced = false;  // the graph is the program: other values may flow in
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  PassRecord pass;
  pass.pass = "Trace";
  pass.parameters.emplace_back("repro", repro.graph.className);
  pass.seconds = seconds;
  recorder.finish(std::move(pass));
  file.seconds = seconds;
  return file;
}

}  // namespace retrograd
