#include "core/formats/recording/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>

#include "core/base/enum_array.h"
#include "core/base/error.h"
#include "core/base/memory_account.h"
#include "core/formats/files/mapping_watch.h"
#include "core/formats/json/json_tree.h"
#include "core/formats/recording/recording_stream.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/formats/zip/file_identity.h"
#include "core/trace/source.h"

namespace retrograd {
namespace {

namespace fs = std::filesystem;

constexpr EnumArray<Phase, std::string_view, phaseCount> phaseNames{
    "forward", "loss", "backward", "recompute", "hook", "accumulation", "clip", "optimizer", "other"};
constexpr std::string_view format = "retrograd.recording";
constexpr std::int64_t version = 1;
constexpr auto manifestName = "retrograd.json", streamName = "ops.jsonl";

RecordedSettings settingsOf(const Json& manifest) {
  RecordedSettings settings;
  if (const Json* made = manifest.find("made")) settings.torch = made->textAt("torch");
  const Json* found = manifest.find("settings");
  if (!found) return settings;
  settings.cpu = found->textAt("cpu");
  settings.machine = found->textAt("machine");
  settings.matmulPrecision = found->textAt("matmul_precision");
  settings.gpu = found->textAt("gpu");
  settings.threads = std::clamp<std::int64_t>(found->integerAt("threads"), 0, 4096);
  settings.deterministic = found->isTrue("deterministic");
  return settings;
}

std::vector<RecordedParameter> parametersAt(const Json& json) {
  std::vector<RecordedParameter> found;
  if (const Json* list = json.find("parameters"))
    for (const auto& one : list->items())
      found.push_back(
          {std::string(one.textAt("name")), one.isTrue("requires_grad"), std::string(one.textAt("stands_for"))});
  return found;
}

void readRaised(const Json& raised, StepRecording& recording) {
  auto& error = recording.raised;
  recording.error = raised.textAt("message");
  error.answer = raised.textAt("answer");
  if (const Json* frames = raised.find("frames"); frames && !frames->items().empty()) {
    const auto& last = frames->items().back();
    error.line = fmt::format("{}:{} in {}", fs::path(last.textAt("file")).filename().string(), last.integerAt("line"),
                             last.textAt("function"));
  }
  if (const Json* ops = raised.find("ops"))
    for (const auto& op : ops->items()) error.ops.emplace_back(op.textAt("did"), op.integerAt("n", -1));
}

void readManifest(const Json& manifest, StepRecording& recording) {
  if (manifest.textAt("format") != format) badInput("is not the manifest of a recording");
  if (const auto found = manifest.integerAt("version"); found > version)
    badInput(fmt::format("the recording is of version {}; this Retrograd reads version {}: open it with a newer one",
                         found, version));
  recording.complete = manifest.isTrue("complete");
  recording.error = manifest.textAt("error");
  recording.device = manifest.textAt("device");
  recording.rank = manifest.integerAt("rank");
  recording.ranks = manifest.integerAt("ranks", 1);
  recording.settings = settingsOf(manifest);
  if (const Json* updates = manifest.find("updates"))
    for (const auto& update : updates->items()) recording.updates.push_back(update.integer());
  if (const Json* optimized = manifest.find("optimized"))
    for (const auto& parameter : optimized->items()) recording.optimized.emplace_back(parameter.text());
  if (const Json* without = manifest.find("without_gradient"))
    for (const auto& parameter : without->items()) recording.withoutGradient.emplace_back(parameter.text());
  if (const Json* straight = manifest.find("straightens"))
    for (const auto& function : straight->items()) recording.straightens.emplace_back(function.text());
  if (const Json* raised = manifest.find("raised")) readRaised(*raised, recording);
  recording.parameters = parametersAt(manifest);
  if (const Json* optimizers = manifest.find("optimizers"))
    for (const auto& one : optimizers->items())
      recording.optimizers.push_back({std::string(one.textAt("class")), parametersAt(one)});
  if (const Json* links = manifest.find("links")) {
    recording.linked = links->integerAt("linked");
    recording.ambiguous = links->integerAt("ambiguous");
    recording.unlinked = links->integerAt("unlinked");
  }
  if (const Json* notes = manifest.find("notes"))
    for (const auto& note : notes->items()) recording.notes.emplace_back(note.text());
}

/// The data files in order of their names. One that is damaged ends them: what it held is missing.
void readData(const fs::path& folder, StepRecording& recording) {
  std::vector<fs::path> files;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error))
    if (entry->path().extension() == ".safetensors") files.push_back(entry->path());
  std::sort(files.begin(), files.end());
  for (const auto& file : files) try {
      recording.data.merge(readSafetensors(file.string()).tensors);
    } catch (const Error& e) {
      recording.damage += fmt::format("{}{}", recording.damage.empty() ? "" : "; ", e.what());
    }
}

/// Reads records up to the first line that is not a whole JSON object.
void readRecords(std::string_view stream, recording::StreamReader& reader, StepRecording& recording,
                 const Progress& progress) {
  std::uint64_t number = 0;
  const auto broken = [&](std::string_view what) {
    recording.damage += fmt::format("{}{}, line {}: {}; what follows is not shown",
                                    recording.damage.empty() ? "" : "; ", streamName, number, what);
  };
  for (std::size_t begin = 0; begin < stream.size() && !reader.ended();) {
    ++number;
    const auto end = stream.find('\n', begin);
    if (end == std::string_view::npos) return broken("the stream breaks off within a record");
    const auto line = stream.substr(begin, end - begin);
    if (number % 4096 == 0)
      progress.at("Read recording", static_cast<double>(begin) / static_cast<double>(stream.size()));
    begin = end + 1;
    if (line.starts_with(R"({"k":"free",)") && line.ends_with('}')) continue;  // every fourth; nothing asks for them
    std::optional<JsonTree> tree;
    try {
      tree.emplace(line);
    } catch (const Error& error) {
      return broken("it is not a JSON object");
    }
    if (!tree->root().isObject()) return broken("it is not a JSON object");
    try {
      reader.read(tree->root());
    } catch (const Error& error) {
      throw error.at(fmt::format("{}, line {}", streamName, number));
    }
  }
  if (!reader.ended() && recording.damage.empty())
    recording.damage = fmt::format("{} has no end: the program was stopped, or still records", streamName);
}

std::string whatItHolds(const StepRecording& recording) {
  std::string updates;
  for (const auto update : recording.updates) updates += (updates.empty() ? "" : ", ") + std::to_string(update);
  return updates;
}

}  // namespace

std::string_view name(Phase phase) { return phaseNames[phase]; }

std::optional<Phase> phaseNamed(std::string_view text) {
  for (int i = 0; i < phaseCount; ++i)
    if (phaseNames[static_cast<Phase>(i)] == text) return static_cast<Phase>(i);
  return std::nullopt;
}

std::vector<RecordedSection> sectionsOf(const StepRecording& recording, const std::vector<BoundSymbolId>& ops) {
  std::vector<RecordedSection> sections;
  std::int32_t step = -1, backward = -1;
  auto phase = Phase::other;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const auto& op = recording.op(ops[i]);
    const bool isWithin = op.phase == Phase::hook || op.phase == Phase::recompute || op.phase == Phase::accumulation;
    const auto now = isWithin && phase == Phase::backward ? phase : op.phase;
    if (!sections.empty() && op.step == step && now == phase && op.backward == backward) continue;
    step = op.step;
    phase = now;
    backward = op.backward;
    sections.push_back({i, fmt::format("step {}, {}", step, name(phase))});
    if (phase == Phase::backward && backward > 0) sections.back().title += fmt::format(" {}", backward);
  }
  return sections;
}

std::string recordedLine(const Document& document, BoundSymbolId op) {
  return recordedLine(document, document.boundSymbol(op).source);
}

std::string recordedLine(const Document& document, SourceStackId source) {
  const auto* frame = source ? shownFrame(document.source(source)) : nullptr;
  if (!frame) return {};
  return fmt::format("{}:{} in {}", fs::path(frame->file).filename().string(), frame->line, frame->function);
}

std::string writerText(const Document& document, const StepRecording& recording, BoundSymbolId op) {
  const auto line = recordedLine(document, op);
  const bool isOutside = document.symbol(op).name == "recorded.written.default";
  const auto since = recording.op(op).since;
  const auto before = since ? recordedLine(document, since) : std::string();
  auto text = isOutside ? std::string("code outside of PyTorch's ops") : document.symbol(op).name;
  if (line.empty()) return text;
  if (isOutside && !before.empty() && before != line) return text + ", between " + before + " and " + line;
  return text + (isOutside && !before.empty() ? ", at or before " : " at ") + line;
}

bool isRecording(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored) && fs::is_regular_file(fs::path(path) / streamName, ignored);
}

std::vector<std::string> ranksIn(const std::string& path) {
  std::map<std::int64_t, std::string> found;
  std::error_code error;
  for (auto entry = fs::directory_iterator(path, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const auto name = entry->path().filename().string();
    std::int64_t rank = 0;
    const auto* end = name.data() + name.size();
    if (!name.starts_with("rank") || name.size() == 4 || name.size() > 9) continue;
    if (std::from_chars(name.data() + 4, end, rank).ptr != end || !isRecording(entry->path().string())) continue;
    found.emplace(rank, entry->path().string());
  }
  std::vector<std::string> ranks;
  for (auto& [rank, folder] : found) ranks.push_back(std::move(folder));
  return ranks;
}

ModelFile readRecordingText(std::string_view stream, StepRecording recording, const SymbolLookup& lookup,
                            const Progress& progress) {
  ModelFile file;
  file.document = std::make_shared<Document>();
  file.path = recording.path;
  file.torchVersion = recording.settings.torch;
  recording::StreamReader reader(recording, *file.document, lookup);
  readRecords(stream, reader, recording, progress);
  file.computation = reader.computation(file);
  if (recording.forwardCount == 0 && recording.losses.empty()) recording.forwardCount = recording.ops.size();
  PassRecord read;
  read.pass = "Recorded";
  read.parameters = {{"updates", whatItHolds(recording)}, {"ops", std::to_string(recording.ops.size())}};
  file.computation.trace.history.push_back(std::move(read));
  if (!recording.damage.empty())
    file.problems.push_back({Problem::Severity::warning, "damaged or cut off: " + recording.damage, {}, -1});
  if (!recording.error.empty())
    file.problems.push_back({Problem::Severity::note, "the step ended with an exception: " + recording.error, {}, -1});
  for (const auto& note : recording.notes) file.problems.push_back({Problem::Severity::note, note, {}, -1});
  file.recording = std::make_shared<const StepRecording>(std::move(recording));
  return file;
}

ModelFile readRecording(const std::string& path, const SymbolLookup& lookup, const Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  const auto streamPath = (fs::path(path) / streamName).string();
  StepRecording recording;
  recording.path = path;
  return readingFile(path, [&] {
    const auto manifestPath = (fs::path(path) / manifestName).string();
    if (std::error_code ignored; fs::exists(manifestPath, ignored)) {
      const auto manifest = mapFile(manifestPath);
      const ReadingScope scope(manifest.size);
      try {
        readManifest(JsonTree(manifest.text()).root(), recording);
      } catch (const Error& e) {
        throw e.at(manifestName);
      }
    }
    readData(fs::path(path) / "data", recording);
    const auto stream = mapFile(streamPath);
    const ReadingScope scope(stream.size);
    auto file = readUnchanged(stream.data,
                              [&] { return readRecordingText(stream.text(), std::move(recording), lookup, progress); });
    file.path = path;
    file.identity = identityOf(stream);
    file.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return file;
  });
}

}  // namespace retrograd
