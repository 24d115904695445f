#include "core/formats/kinds/file_kind.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/formats/kinds/session_records.h"
#include "core/formats/torchscript/torchscript_archive.h"

namespace retrograd {
namespace {

constexpr std::string_view howTo =
    "Write a file that can be opened with:\n"
    "    torch.export.save(torch.export.export(model, args), \"model.pt2\")\n"
    "in PyTorch 2.9 or later; see `retrograd help saving`.";

std::string make(std::string_view what) { return std::string(what) + " " + std::string(howTo); }

std::uint64_t littleEndian64(const ByteRegion& bytes) {
  std::uint64_t n = 0;
  for (std::size_t i = 0; i < 8; ++i) n |= std::uint64_t{static_cast<std::uint8_t>(bytes.data[i])} << (8 * i);
  return n;
}

bool isSafetensors(const ByteRegion& bytes) {
  return bytes.size > 9 && bytes.data[8] == std::byte{'{'} && littleEndian64(bytes) <= bytes.size - 8;
}

/// A pickle of protocol 2 to 5 begins with PROTO and its number.
bool isPickle(const ByteRegion& bytes) {
  return bytes.size > 2 && bytes.data[0] == std::byte{0x80} && bytes.data[1] >= std::byte{2} &&
         bytes.data[1] <= std::byte{5};
}

/// ModelProto begins with field 1 (ir_version, a small number); field 2 (producer_name, a text) or 7 (graph) follows.
bool isOnnx(const ByteRegion& bytes) {
  return bytes.size > 4 && bytes.data[0] == std::byte{0x08} && bytes.data[1] >= std::byte{1} &&
         bytes.data[1] < std::byte{0x40} &&
         (bytes.data[2] == std::byte{0x12} || bytes.data[2] == std::byte{0x3a} || bytes.data[2] == std::byte{0x42});
}

bool isText(const ByteRegion& bytes) {
  const auto sample = bytes.text().substr(0, 4096);
  return std::none_of(sample.begin(), sample.end(), [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return u == 0x7f || (u < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f');
  });
}

bool anyRecord(const Archive& archive, auto&& predicate) {
  return std::any_of(archive.entries().begin(), archive.entries().end(),
                     [&](const ZipEntry& e) { return predicate(std::string_view(e.name)); });
}

}  // namespace

bool looksLikeTraces(const ByteRegion& bytes) {
  if (!isText(bytes)) return false;
  const auto text = bytes.text();
  for (std::string_view name : {"computation(", "joint(", "forward(", "backward("})
    if (const auto line = "def " + std::string(name);
        text.starts_with(line) || text.find("\n" + line) != std::string_view::npos)
      return true;
  return false;
}

std::string describeForeignFile(const ByteRegion& bytes) {
  const auto text = bytes.text();
  if (isSafetensors(bytes)) return make("This is a safetensors file: tensors only, without a computation.");
  if (text.starts_with("\x7f"
                       "ELF"))
    return make("This is a program or shared library, not a model.");
  if (text.starts_with("\x89HDF\r\n\x1a\n"))
    return make("This is an HDF5 file (Keras, perhaps), not a PyTorch program.");
  if (text.starts_with("\x1f\x8b") || text.starts_with("\xfd"
                                                       "7zXZ"))
    return make("This is a packed file: `retrograd memory` reads a snapshot of CUDA's memory; unpack a model first.");
  if (isPickle(bytes))
    return make(
        "This is a Python pickle: `retrograd memory` reads it if it is a snapshot of CUDA's memory. Of torch.save it "
        "holds no graph, and is never executed here.");
  if (isOnnx(bytes)) return make("This looks like an ONNX model; an exported PyTorch program is needed.");
  if (text.starts_with("PK"))
    return make("This begins like a zip archive but is cut off or damaged; copy or download it again.");
  if (isText(bytes))
    return make(
        "This is a text file without 'def computation(...):', neither a printed trace (docs/text-form.md describes "
        "one) nor an exported PyTorch "
        "program.");
  return make("Unrecognized file format.");
}

std::string describeForeignArchive(const Archive& archive) {
  const auto has = [&](std::string_view name) { return archive.has(name); };
  if (has(session::sessionRecord) && has(session::tracesRecord))
    return "This is a session of Retrograd, not a model file; it opens like one where a model is asked for.";
  if (has("serialized_exported_program.json"))
    return "This is a torch.export archive in the older layout of PyTorch 2.1 to 2.7. Convert it in the PyTorch that "
           "wrote it:\n"
           "    program = torch.export.load(\"old.pt2\")\n"
           "    # then, in PyTorch 2.9 or later, export the model again; the older layout is not read by newer "
           "versions:\n"
           "    torch.export.save(torch.export.export(program.module(), args), \"model.pt2\")\n"
           "where args are the example inputs; program.module() can be pickled over if the two steps need two "
           "environments. "
           "See `retrograd help saving`.";
  if (anyRecord(archive, [](std::string_view n) { return n.starts_with("data/aotinductor"); }))
    return make("This is an AOTInductor package: compiled code without the graph it came from.");
  if (isTorchScript(archive))
    return make("This is a TorchScript archive, which must be run to be traced; an exported program is needed here.");
  if (has("data.pkl"))
    return make(
        "This is a file of torch.save: a state dict (weights only) or a pickled object, without a graph. Load it into "
        "the model in Python "
        "and export that.");
  if (has("saved_model.pb") || has("config.json"))
    return make("This is a zip archive of another program's model (Keras, perhaps), not a PyTorch program.");
  return make("This is a zip archive without models/*.json: no exported PyTorch program is inside.");
}

bool looksLikeSessionFile(const ByteRegion& bytes) {
  if (!looksLikeZip(bytes.span())) return false;
  constexpr std::size_t nameAt = 30;  // in a local header
  if (bytes.text().size() > nameAt &&
      bytes.text().substr(nameAt, 64).starts_with(std::string(session::typeRecord) + std::string(session::mediaType)))
    return true;
  // Packed again by another program, in an order of its own.
  try {
    const auto entries = readZipDirectory(bytes.span());
    const auto has = [&](std::string_view name) {
      return std::any_of(entries.begin(), entries.end(), [&](const ZipEntry& entry) { return entry.name == name; });
    };
    return has(session::sessionRecord) && has(session::tracesRecord);
  } catch (const Error&) {
    return false;
  }
}

bool isSessionFile(const std::string& path) { return looksLikeSessionFile(mapFile(path)); }

}  // namespace retrograd
