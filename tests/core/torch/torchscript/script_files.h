#pragma once
#include <filesystem>
#include <string>

#include "core/formats/model/model_file.h"
#include "core/formats/read/read_file.h"
#include "core/formats/safetensors/safetensors.h"
#include "core/formats/zip/archive.h"
#include "core/torch/torchscript/trace_torchscript.h"
#include "tests/core/formats/cases.h"
#include "tests/core/formats/zip/zip_writer.h"
#include "tests/support/source_path.h"

namespace retrograd::test {

/// A TorchScript file kept with the tests (tests/data/torchscript/make.py).
inline std::string scriptFile(const std::string& name) {
  return (std::filesystem::path(sourcePath("tests/data/torchscript")) / (name + ".pt")).string();
}

/// Inputs of the reference next to a file.
inline TraceInputs inputsOf(const std::string& name) {
  TraceInputs inputs;
  inputs.seed = 3;
  for (const auto& [key, tensor] :
       readSafetensors(scriptFile(name).substr(0, scriptFile(name).size() - 3) + ".safetensors").tensors)
    if (key.starts_with("in.")) inputs.tensors[key.substr(3)] = tensor;
  return inputs;
}

inline ModelFile traceFile(const std::string& name) {
  return traceTorchScript(openModelArchive(scriptFile(name)), inputsOf(name));
}

inline std::shared_ptr<const Archive> archiveOf(const std::string& bytes) {
  auto kept = std::make_shared<std::string>(bytes);
  return Archive::open(ByteRegion{reinterpret_cast<const std::byte*>(kept->data()), kept->size(), kept}, "changed.pt");
}

inline ZipContent contentOfArchive(const std::string& file) {
  const auto archive = openModelArchive(file);
  ZipContent content;
  for (const auto& entry : archive->entries())
    content.emplace_back("m/" + entry.name, std::string(archive->read(entry.name).text()));
  return content;
}

/// The file `name` with one text of a record replaced by another, checksums right.
inline std::string replaced(const std::string& name, const std::string& record, const std::string& from,
                            const std::string& to) {
  auto content = contentOfArchive(scriptFile(name));
  for (auto& [entry, text] : content)
    if (entry == "m/" + record)
      if (const auto at = text.find(from); at != std::string::npos) {
        text.replace(at, from.size(), to);
        return makeZip(content);
      }
  throw std::runtime_error(name + " has no '" + from + "' in " + record);
}

}  // namespace retrograd::test
