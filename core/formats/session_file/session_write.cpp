#include <filesystem>

#include "core/base/error.h"
#include "core/base/user_choice.h"
#include "core/formats/files/mapping_watch.h"
#include "core/formats/kinds/session_records.h"
#include "core/formats/session_file/session_codec.h"
#include "core/formats/zip/zip_writer.h"

namespace fs = std::filesystem;

namespace retrograd {
namespace session {
namespace {

Out numbersOut(const std::map<std::string, Argument>& numbers) {
  Out list = Out::array();
  for (const auto& [name, number] : numbers) list.push_back(Out::array({textOut(name), argumentOut(number)}));
  return list;
}

const SessionFile& firstOf(const SessionFile& session) {
  return session.differentiated ? firstOf(*session.differentiated) : session;
}

class SessionWriter {
 public:
  SessionWriter(const std::string& path, const SessionFile& session, const std::string& openedFrom)
      : path_(path), openedFrom_(openedFrom), session_(session), first_(firstOf(session)) {}

  void run() {
    checkMarks();
    if (isSameFile(path_, first_.model.path))
      badUse("is the model file, which a session does not replace: name another file to write", path_);
    if (!session_.model.embedded) checkModelFile();
    checkReadable(session_);
    // All of the text comes first: what cannot be written as JSON leaves no half of a file.
    std::vector<Record> records{{sessionRecord, Out{{"format", SessionFile::format}}.dump()}};
    addLevel(session_, "", records);
    for (const auto& [name, text] : session_.marks) records.push_back({markRecord(name), text});
    ZipWriter zip(path_, isSameFile(path_, openedFrom_) ? AtomicFile::Over::ownInput : AtomicFile::Over::otherFiles);
    zip.addStored(typeRecord, std::as_bytes(std::span(mediaType)), 1);  // no padding: its bytes lie at a fixed place
    for (const auto& record : records) zip.addDeflated(record.name, record.content);
    for (std::size_t i = 0; i < tensors_.records().size(); ++i) {
      zip.addStored(tensorRecord(i), tensors_.records()[i]);
      requireUnchanged(tensors_.records()[i].data());  // not half of one file and half of another
    }
    zip.commit();
  }

 private:
  static bool isSameFile(const std::string& a, const std::string& b) {
    std::error_code ignored;
    return !a.empty() && !b.empty() && fs::equivalent(a, b, ignored);
  }

  void checkMarks() const {
    for (const auto& [name, text] : session_.marks) {
      const auto place = "marks '" + name + "'";
      if (!isMarkName(name)) badUse("a name of letters, digits, '-' and '_' is needed", place);
      try {
        const JsonTree tree(text);
      } catch (const Error& e) {
        badUse(e.message(), place);
      }
    }
  }

  /// The file must refer to what was read.
  void checkModelFile() const {
    const auto& model = first_.model;
    const std::string remedy = "; save with its weights embedded (" + nameOf(UserChoice::embeddedWeights) + ")";
    std::error_code ignored;
    if (!fs::exists(model.path, ignored)) badUse("the model file is gone" + remedy, model.path);
    if (identityOf(mapFile(model.path)) != model.identity)
      badUse("the model file was changed since it was read" + remedy, model.path);
  }

  /// A file that reading would refuse must not take the place of one that opens.
  void checkReadable(const SessionFile& level) const {
    try {
      checkDocument(*level.model.document);
      checkTraces(level);
      checkWeights(level.model);
    } catch (const Error& e) {
      throw Error(ErrorCode::internal, "cannot be saved, because reading would refuse it: " + std::string(e.what()),
                  path_);
    }
    if (level.differentiated) checkReadable(*level.differentiated);
  }

  void addLevel(const SessionFile& level, const std::string& folder, std::vector<Record>& records) {
    const auto add = [&](const char* name, const Out& content) { records.push_back({folder + name, content.dump()}); };
    add(modelRecord, modelOut(level.model));
    for (auto& record : documentRecords(*level.model.document, folder)) records.push_back(std::move(record));
    add(computationRecord, computationOut(level.model.computation));
    add(tracesRecord, tracesOut(level));
    add(analysisRecord, analysisOut(level));
    if (!level.values.empty() || !level.valueNumbers.empty()) add(valuesRecord, valuesOut(level));
    if (level.differentiated) addLevel(*level.differentiated, folder + differentiatedFolder, records);
  }

  Out tensorsOut(const TensorMap& tensors) {
    Out list = Out::array();
    for (const auto& [name, tensor] : tensors) list.push_back(Out::array({textOut(name), tensors_.add(tensor)}));
    return list;
  }
  Out tensorsOut(const std::map<ValueId, TensorData>& tensors) {
    Out list = Out::array();
    for (const auto& [id, tensor] : tensors) list.push_back(Out::array({id.index, tensors_.add(tensor)}));
    return list;
  }
  /// Tensors of the model: a reference for each that lies in the model file, as all do but what differentiating again
  /// added.
  Out tensorsOut(const ModelFile& model, TensorMap ModelFile::* map) {
    const auto& ofFile = first_.model.*map;
    Out list = Out::array();
    for (const auto& [name, tensor] : model.*map) {
      const auto it = ofFile.find(name);
      const bool refer = !session_.model.embedded && it != ofFile.end() && it->second.data == tensor.data &&
                         it->second.meta == tensor.meta;
      list.push_back(Out::array({textOut(name), refer ? TensorRecords::reference(tensor) : tensors_.add(tensor)}));
    }
    return list;
  }

  Out modelOut(const ModelFile& model) {
    std::error_code ignored;  // without a working folder both stay empty
    const auto absolute = fs::absolute(model.path, ignored).lexically_normal();
    const auto relative = absolute.lexically_relative(fs::absolute(path_, ignored).lexically_normal().parent_path());
    return {{"path", textOut(absolute.string())},
            {"relative", textOut(relative.string())},
            {"size", model.identity.size},
            {"checksum", model.identity.checksum},
            {"torch", textOut(model.torchVersion)},
            {"embedded", session_.model.embedded},
            {"weights", tensorsOut(model, &ModelFile::weights)},
            {"constants", tensorsOut(model, &ModelFile::constants)},
            {"samples", tensorsOut(model, &ModelFile::sampleInputs)},
            {"sample_numbers", numbersOut(model.sampleNumbers)},
            {"guards", textsOut(model.guards)},
            {"problems", problemsOut(model.problems)}};
  }

  static Out tracesOut(const SessionFile& level) {
    return {{"computation", traceOut(level.model.computation.trace)},
            {"joint", traceOut(level.joint)},
            {"forward", traceOut(level.forward)},
            {"backward", traceOut(level.backward)}};
  }

  Out analysisOut(const SessionFile& level) {
    Out mutated = Out::array(), gradients = Out::array(), seconds = Out::object();
    for (const auto& [value, gradient] : level.gradients) gradients.push_back({value.index, gradient.index});
    for (const auto& [input, value] : level.mutated) mutated.push_back({input, value.index});
    for (const auto& [pass, time] : level.seconds) seconds[pass] = time;
    return {{"seed", std::to_string(level.seed)},
            {"min_cut", level.minCut},
            {"budget", level.budget ? Out(*level.budget) : Out()},
            {"recompute", textsOut(level.recompute)},
            {"regions", level.regions},
            {"grad_inputs", level.gradInputs ? textsOut(*level.gradInputs) : Out()},
            {"precision", level.precision ? Out(torchName(*level.precision)) : Out()},
            {"inputs", tensorsOut(level.inputs)},
            {"numbers", numbersOut(level.numbers)},
            {"cotangents", tensorsOut(level.cotangents)},
            {"input_source", textsOut(level.inputSource)},
            {"constants", tensorsOut(level.constants)},
            {"mutated", std::move(mutated)},
            {"gradients", std::move(gradients)},
            {"data_dependent", textsOut(level.dataDependent)},
            {"problems", problemsOut(level.problems)},
            {"seconds", std::move(seconds)}};
  }

  Out valuesOut(const SessionFile& level) {
    Out numbers = Out::array();
    for (const auto& [id, number] : level.valueNumbers) numbers.push_back(Out::array({id.index, argumentOut(number)}));
    return {{"tensors", tensorsOut(level.values)}, {"numbers", std::move(numbers)}};
  }

  const std::string& path_;
  const std::string& openedFrom_;
  const SessionFile& session_;
  const SessionFile& first_;  // what was derived from the model file itself
  TensorRecords tensors_;
};

}  // namespace
}  // namespace session

void writeSessionFile(const std::string& path, const SessionFile& session, const std::string& openedFrom) {
  session::SessionWriter(path, session, openedFrom).run();
}

}  // namespace retrograd
