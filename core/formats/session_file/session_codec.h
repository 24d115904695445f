#pragma once
// What the records of a session file share; only session_*.cpp include this.
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/enum_array.h"
#include "core/formats/json/json_tree.h"
#include "core/formats/session_file/session_file.h"
#include "core/formats/zip/archive.h"

namespace retrograd::session {

using Out = nlohmann::ordered_json;

/// How many entries each table has; ids are checked against them.
struct Counts {
  std::size_t strings = 0, metas = 0, symbols = 0, patterns = 0, sources = 0, subgraphs = 0, storages = 0, values = 0,
              ops = 0;
};

// Each read function throws Error(badInput) saying what it found.

/// Paths and texts of others need not be UTF-8: {"hex": ...} then.
Out textOut(std::string_view text);
std::string readText(const Json& json);
Out textsOut(const std::vector<std::string>& texts);
std::vector<std::string> readTexts(const Json& json);

Out metaOut(const TensorMeta& meta);
TensorMeta readMeta(const Json& json);

/// null, true, 3, 0.5 as themselves, the rest as {"kind": ...}.
Out argumentOut(const Argument& argument);
Argument readArgument(const Json& json, std::size_t subgraphs);

Out problemsOut(const std::vector<Problem>& problems);
std::vector<Problem> readProblems(const Json& json, std::size_t ops);

/// The enumerator of a name; `what` it is for the error.
template <class Enum, std::size_t Count>
Enum named(const EnumArray<Enum, std::string_view, Count>& names, std::string_view name, const char* what) {
  const auto it = std::find(names.begin(), names.end(), name);
  if (it == names.end()) badInput("unknown " + std::string(what) + " '" + std::string(name) + "'");
  return static_cast<Enum>(it - names.begin());
}

std::int64_t readInteger(const Json& json, std::int64_t low, std::int64_t high);

/// -1 is "none".
template <class IdType>
IdType readId(const Json& json, std::size_t count) {
  return IdType(readInteger(json, -1, static_cast<std::int64_t>(count) - 1));
}
template <class IdType>
std::vector<IdType> readIds(const Json& json, std::size_t count) {
  std::vector<IdType> ids;
  ids.reserve(json.items().size());
  for (const auto& item : json.items()) ids.push_back(readId<IdType>(item, count));
  return ids;
}

template <class IdType>
Out idsOut(const std::vector<IdType>& ids) {
  Out list = Out::array();
  for (auto id : ids) list.push_back(id.index);
  return list;
}

/// Entries of a record's list, each read by `read`; what one throws gets its place among them.
template <class Read>
void forEachRow(const Json& list, Read&& read) {
  const auto items = list.items();
  for (std::size_t i = 0; i < items.size(); ++i) {
    try {
      read(items[i]);
    } catch (const Error& e) {
      throw e.at("entry " + std::to_string(i));
    }
  }
}

/// The cells of one row of a table, in order.
class Row {
 public:
  Row(const Json& json, std::size_t cells);
  const Json& next() { return cells_[at_++]; }
  std::int64_t integer(std::int64_t low = std::numeric_limits<std::int64_t>::min(),
                       std::int64_t high = std::numeric_limits<std::int64_t>::max()) {
    return readInteger(next(), low, high);
  }
  bool flag() { return integer(0, 1) != 0; }
  template <class IdType>
  IdType id(std::size_t count) {
    return readId<IdType>(next(), count);
  }
  template <class IdType>
  std::vector<IdType> ids(std::size_t count) {
    return readIds<IdType>(next(), count);
  }

 private:
  std::span<const Json> cells_;
  std::size_t at_ = 0;
};

/// JSON text of nested lists of integers, written as they come: a table's DOM would take ten times the memory.
class RowText {
 public:
  RowText& open();
  RowText& close();
  RowText& number(std::int64_t n);
  template <class Tag>
  RowText& id(Id<Tag> id) {
    return number(id.index);
  }
  template <class IdType>
  RowText& ids(std::span<const IdType> all) {
    open();
    for (auto one : all) id(one);
    return close();
  }
  std::string take() { return std::move(text_); }

 private:
  void separate();
  std::string text_;
};

/// Numbers the memory under tensors; what shares memory shares a record.
class TensorRecords {
 public:
  /// [record, meta]
  Out add(const TensorData& tensor);
  /// What lies in the model file: [null, meta].
  static Out reference(const TensorData& tensor);
  std::span<const std::span<const std::byte>> records() const { return records_; }

 private:
  std::vector<std::span<const std::byte>> records_;
  std::map<std::pair<const std::byte*, std::size_t>, std::size_t> index_;
};
std::string tensorRecord(std::size_t number);

/// Tensors over the records of an archive.
class TensorReader {
 public:
  explicit TensorReader(std::shared_ptr<const Archive> archive) : archive_(std::move(archive)) {}
  /// Of a reference only the meta, with no data.
  TensorData read(const Json& json, bool mayRefer = false);

 private:
  const ByteRegion& region(std::size_t number);
  std::shared_ptr<const Archive> archive_;
  std::unordered_map<std::size_t, ByteRegion> regions_;
};

// The records of the document's tables (session_tables_write.cpp, session_tables_read.cpp).
struct Record {
  std::string name, content;
};
/// `folder` comes before the names: empty or ending in a slash.
std::vector<Record> documentRecords(const Document& document, const std::string& folder);
/// The tables with every id in range. Throws as readSessionFile.
std::shared_ptr<Document> readDocument(const Archive& archive, const std::string& folder, const SymbolLookup& lookup,
                                       const Progress& progress);
Counts countsOf(const Document& document);

// Computation and traces (session_traces.cpp).
Out computationOut(const Computation& computation);
void readComputation(const Json& json, const Counts& counts, Computation& computation);
Out traceOut(const Trace& trace);
Trace readTrace(const Json& json, const Counts& counts);

/// What must hold between tables, traces and tensors beyond ids in range (session_checks.cpp): bodies and parents nest
/// without circles; calls have as many arguments as the schema, and no fewer effects; traces pass the verifier, and
/// agree with one another and with the tensors. Throws Error(badInput).
void checkDocument(const Document& document);
void checkTraces(const SessionFile& session);
/// Weights and constants are there, with the dtype and shape of the computation's inputs.
void checkWeights(const ModelFile& model);

/// Reads one JSON record with `read`; what that throws gets the record's name.
template <class Read>
void readRecord(const Archive& archive, const std::string& name, Read&& read) {
  const auto content = archive.read(name);
  try {
    const JsonTree tree(content.text());
    read(tree.root());
  } catch (const Error& e) {
    throw e.code() == ErrorCode::cancelled ? e : e.at(name);
  }
}

}  // namespace retrograd::session
