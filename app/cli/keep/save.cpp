#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "app/cli/parsing/command.h"
#include "app/cli/parsing/options.h"
#include "app/cli/parsing/output.h"
#include "core/notes/note_file.h"
#include "core/torch/reading/formats.h"
#include "core/torch/reading/session_file.h"
#include "core/trace/print/json.h"

namespace fs = std::filesystem;

namespace retrograd::cli {
namespace {

struct SaveArguments {
  std::string file, out, format = "text";
  SaveSessionOptions save;
  InputOptions input;
};

/// A session is saved in its own place, a model's next to the model.
std::string placeFor(const SaveArguments& arguments) {
  if (!arguments.out.empty()) return arguments.out;
  fs::path model = arguments.file;
  if (!fs::is_directory(model))
    return isOf(Format::session, arguments.file) ? arguments.file : model.replace_extension(".retrograd").string();
  // "run.1/" is saved as "run.1.retrograd": a folder's name has no extension.
  model = model.lexically_normal();
  if (!model.has_filename()) model = model.parent_path();
  if (model.filename() == "." || model.filename() == "..") model = fs::canonical(model);
  return model.string() + ".retrograd";
}

void print(const Analysis& analysis, const SaveArguments& arguments, const std::string& out) {
  const auto size = fs::file_size(out);
  const auto ops = [](const Trace& trace) { return trace.ops.size(); };
  if (arguments.format == "json") {
    const nlohmann::ordered_json json{{"file", out},
                                      {"bytes", size},
                                      {"model", analysis.file.path},
                                      {"embedded", embedsWeights(analysis, arguments.save)},
                                      {"values", arguments.save.values || !analysis.values.empty()},
                                      {"ops",
                                       {{"computation", ops(analysis.computation().trace)},
                                        {"joint", ops(analysis.joint)},
                                        {"forward", ops(analysis.forward)},
                                        {"backward", ops(analysis.backward)}}}};
    fmt::print("{}\n", dumpJson(json, 1));
    return;
  }
  fmt::print("{}: {} bytes, computation {} ops, forward {}, backward {}; {}\n", out, size,
             ops(analysis.computation().trace), ops(analysis.forward), ops(analysis.backward),
             embedsWeights(analysis, arguments.save) ? "weights inside" : "weights in " + analysis.file.path);
}

/// What the session takes along for the window: the notes as they are now, next to the model or the session.
std::map<std::string, std::string> marksWithNotes(const Analysis& analysis, const std::string& file) {
  try {
    return marksWith(analysis, NoteFile(file).read(analysis));
  } catch (const Error& error) {
    fmt::print(stderr, "retrograd: {}; saved without these notes\n", error.what());
    return analysis.marks;
  }
}

int save(const SaveArguments& arguments, const Progress& progress) {
  const auto analysis = open(arguments.file, arguments.input, progress);
  const bool broken = reportProblems(analysis->problems);
  const auto out = placeFor(arguments);
  auto options = arguments.save;
  options.threads = arguments.input.threads;
  options.marks = marksWithNotes(*analysis, arguments.file);
  saveSession(*analysis, out, options, progress);
  print(*analysis, arguments, out);
  return broken ? badInputOrUse : allWell;
}

Run setUpSave(Parser parser) {
  auto arguments = std::make_shared<SaveArguments>();
  parser.add("file", arguments->file, "a model (.pt2, TorchScript, printed traces) or a .retrograd session").required();
  addOutput(parser, "-o,--output", arguments->out,
            "the session file to write (default: the model's name with .retrograd; for a session, the session itself)",
            /*ownSession=*/true);
  addOldOutput(parser, "--out", arguments->out);
  parser.flag("--embed", arguments->save.embed, "store the weights too, so that the model file is not needed again");
  parser.flag("--values", arguments->save.values, "run forward and backward, and store every value");
  addFormat(parser, arguments->format);
  arguments->input.addTo(parser);
  return [arguments](const Progress& progress) { return save(*arguments, progress); };
}

const Registration registrationSave("save", "save a model with its traces, inputs and notes as a session file",
                                    setUpSave);

}  // namespace
}  // namespace retrograd::cli
