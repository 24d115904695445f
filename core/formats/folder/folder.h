#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace retrograd {

/// Python code that PyTorch ran in a recorded backward and that no exported graph holds.
struct CustomBackward {
  bool isHook = false;  ///< of a tensor or module, on a gradient; else the backward of an autograd.Function
  std::string name;     ///< of the Function or of the hook: "MyGelu", "M.forward.<locals>.<lambda>"
  std::string file;     ///< where the Function's backward is, or where the hook was set
  std::int64_t line = 0;
};

/// One graph of a recorded folder: a model file, with the values it ran on where they were kept.
struct FolderGraph {
  std::string name;
  std::string model;   ///< path of the .pt2 file
  std::string values;  ///< path of a reference file (in.*, cot.*, out.*, grad.*, generator.cpu); empty: none
  std::int64_t ops = 0;
  std::string mode, compile, location;    ///< "train", "0/1", "model.py:12 in forward"; empty: unknown
  std::string device;                     ///< that the step ran on and drew on, "cuda"; empty: the CPU
  std::vector<std::string> notFinite;     ///< values with a NaN or Inf in PyTorch's own run ("out.0", "grad.p.w")
  std::vector<std::string> cannotReplay;  ///< what of it was not kept, for people
  std::vector<CustomBackward> customBackward;
};

/// A folder that the Python package writes (docs/folders.md): what retrograd.json in it says.
struct RecordedFolder {
  std::string path;
  std::string kind;  ///< "capture", "compile", "catch"
  std::string torchVersion;
  std::int64_t rank = 0, ranks = 1;
  std::optional<std::int64_t> step;  ///< of the training loop, from 0
  std::string failure;               ///< "the loss is nan"; empty: none
  std::vector<FolderGraph> graphs;
  std::string numbers;    ///< path of the numbers that DebugMode recorded in the step; empty: none
  std::string openGraph;  ///< the name of the graph to open first
  bool atRoot = false;    ///< to be opened at the op that made the first NaN or Inf
  std::vector<std::string> cannotReplay;
};

/// A graph of a folder as something to open.
struct FolderChoice {
  FolderGraph graph;
  bool atRoot = false;
  std::string failure;
  std::vector<std::string> cannotReplay;  ///< of the graph and of the folder
};

/// True for a folder with a retrograd.json, and for a graph's own folder inside one.
bool isRecordedFolder(const std::string& path);

/// Reads retrograd.json. Paths in it have to stay inside the folder. Throws Error(badInput or io) that names the
/// file.
RecordedFolder readRecordedFolder(const std::string& path);
/// The same from its text; `path` is the folder.
RecordedFolder readRecordedFolder(std::string_view text, const std::string& path);

/// The graph that `path` means: that of a graph's own folder (FOLDER/graph002), else the one that the folder names to
/// be opened first. Nothing where `path` is not such a folder. Throws as readRecordedFolder, and Error(badInput) where
/// there is no graph.
std::optional<FolderChoice> chooseGraph(const std::string& path);

/// Recorded folders directly below `path`, such as those of `retrograd.catch` (step00000007, rank1-step00000007), in
/// order of their names.
std::vector<std::string> recordedFoldersIn(const std::string& path);

}  // namespace retrograd
