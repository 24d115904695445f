#include "core/formats/repro/repro_inputs.h"

#include <filesystem>

#include "core/base/error.h"
#include "core/base/memory_account.h"
#include "core/base/tensor_meta.h"
#include "core/formats/files/mapping_watch.h"
#include "core/formats/pickle/pickle.h"
#include "core/formats/pickle/pickle_tensors.h"

namespace fs = std::filesystem;

namespace retrograd {
namespace {

using fx::Expression;
using Kind = Expression::Kind;

/// A storage of the script: where its bytes are, if anywhere.
struct ReproStorage {
  std::string hash;  ///< empty: none was saved
  std::int64_t bytes = 0;
  DType hint = DType::f32;
};

/// A whole number, also as a product of numbers and size symbols with values.
std::int64_t whole(const Expression& expression, const std::map<std::string, std::int64_t>& sizes) {
  if (expression.is(Kind::integer) || expression.is(Kind::boolean)) return expression.integer;
  if (expression.is(Kind::path))
    if (const auto it = sizes.find(expression.text); it != sizes.end()) return it->second;
  if (expression.is(Kind::unary) && expression.text == "-") return -whole(expression.items[0], sizes);
  if (expression.is(Kind::binary)) {
    const auto a = whole(expression.items[0], sizes), b = whole(expression.items[1], sizes);
    std::int64_t result = 0;
    const bool bad = expression.text == "*"    ? __builtin_mul_overflow(a, b, &result)
                     : expression.text == "+"  ? __builtin_add_overflow(a, b, &result)
                     : expression.text == "-"  ? __builtin_sub_overflow(a, b, &result)
                     : expression.text == "//" ? b <= 0 || a < 0 || ((result = a / b), false)
                                               : true;
    if (!bad) return result;
  }
  badInput("a whole number was expected, not " + fx::toText(expression, {}));
}

std::vector<std::int64_t> shape(const Expression& expression, const std::map<std::string, std::int64_t>& sizes) {
  if (!expression.is(Kind::tuple) && !expression.is(Kind::list))
    badInput("a shape was expected, not " + fx::toText(expression, {}));
  if (expression.items.size() > maxRank) badInput("a tensor of more than 64 dimensions");
  std::vector<std::int64_t> result;
  for (const auto& item : expression.items) {
    result.push_back(whole(item, sizes));
    if (result.back() < 0) badInput("a negative size or stride");
  }
  return result;
}

DType dtype(const Expression& expression) {
  const auto known = expression.is(Kind::path) && expression.text.starts_with("torch.")
                         ? dtypeFromTorchName(expression.text.substr(6))
                         : std::nullopt;
  if (!known) badInput("a dtype was expected, not " + fx::toText(expression, {}));
  return *known;
}

bool truth(const Expression* expression) {
  return expression && expression->is(Kind::boolean) && expression->integer != 0;
}

/// The positional argument `i` of a call, or the one of that name; null where there is none.
const Expression* argument(const Expression& call, std::size_t i, std::string_view name) {
  if (i + 1 < call.items.size() && !call.items[i + 1].is(Kind::keyword)) return &call.items[i + 1];
  return call.keyword(name);
}

class InputReader {
 public:
  InputReader(const fx::Repro& repro, const std::string& path) : repro_(repro), path_(path) { findFolders(); }

  std::vector<ReproInput> run() {
    for (const auto& statement : repro_.loadArgs) {
      try {
        read(statement);
      } catch (const Error& e) {
        throw e.at(path_ + ":" + std::to_string(statement.line));
      }
    }
    if (inputs_.size() != repro_.graph.inputs.size())
      throw Error(ErrorCode::badInput,
                  "load_args loads " + std::to_string(inputs_.size()) + " arguments, the graph takes " +
                      std::to_string(repro_.graph.inputs.size()),
                  path_);
    for (std::size_t i = 0; i < inputs_.size(); ++i) inputs_[i].name = repro_.graph.inputs[i].name;
    return std::move(inputs_);
  }

 private:
  /// The folder of the run_repro call under this machine's paths: each ending of it, below the script's folder.
  void findFolders() {
    const auto own = fs::absolute(path_).parent_path();
    folders_.push_back(own / "storages");
    for (const auto& run : repro_.runs) {
      const auto* given = run.keyword("save_dir");
      if (!given || !given->is(Kind::string)) continue;
      std::vector<fs::path> parts;
      for (const auto& part : fs::path(given->text))
        if (part != ".." && part != "/") parts.push_back(part);
      constexpr std::size_t most = 32;
      for (std::size_t skipped = 0; skipped < std::min(parts.size(), most); ++skipped) {
        auto folder = own;
        for (std::size_t i = skipped; i < parts.size(); ++i) folder /= parts[i];
        folders_.push_back(folder / "storages");
      }
    }
  }

  void read(const fx::Statement& statement) {
    const auto& call = statement.expression;
    if (statement.target == "load_args._version") {
      if (whole(call, {}) != 0) badInput("load_args has version " + fx::toText(call, {}) + "; version 0 is known here");
    } else if (call.isCallOf("reader.storage")) {
      storages_[statement.target] = storage(call);
    } else if (call.isCallOf("reader.tensor")) {
      addTensor(call);
    } else if (call.isCallOf("reader.symint")) {
      const auto* value = argument(call, 0, "val");
      if (!value) badInput("a size without a value");
      ReproInput input;
      input.number = Argument::ofInt(whole(*value, repro_.sizes));
      inputs_.push_back(std::move(input));
    } else {
      badInput("load_args does what is not known here: " + fx::toText(call, {}));
    }
  }
  ReproStorage storage(const Expression& call) const {
    ReproStorage result;
    const auto *hash = argument(call, 0, "storage_hash"), *bytes = argument(call, 1, "nbytes"),
               *hint = call.keyword("dtype_hint");
    if (hash && hash->is(Kind::string)) result.hash = hash->text;
    if (result.hash.find_first_not_of("0123456789abcdef") != std::string::npos)
      badInput("'" + result.hash + "' is not a name of a storage");
    if (!bytes) badInput("a storage without a size");
    result.bytes = whole(*bytes, repro_.sizes);
    if (hint && !hint->is(Kind::none)) result.hint = dtype(*hint);
    return result;
  }
  void addTensor(const Expression& call) {
    const auto* buffer = argument(call, 0, "storage");
    const auto it = buffer && buffer->is(Kind::path) ? storages_.find(buffer->text) : storages_.end();
    if (it == storages_.end()) badInput("a tensor of no storage");
    const auto* sizes = argument(call, 1, "shape");
    if (!sizes) badInput("a tensor without a shape");
    ReproInput input;
    auto& meta = input.meta;
    meta.sizes = shape(*sizes, repro_.sizes);
    const auto* strides = argument(call, 2, "stride");
    meta.strides = strides && !strides->is(Kind::none) ? shape(*strides, repro_.sizes) : contiguousStrides(meta.sizes);
    if (meta.strides.size() != meta.sizes.size()) badInput("a tensor with more sizes than strides, or fewer");
    if (const auto* type = call.keyword("dtype"); type && !type->is(Kind::none)) meta.dtype = dtype(*type);
    if (const auto* offset = call.keyword("storage_offset"); offset && !offset->is(Kind::none))
      meta.offset = whole(*offset, repro_.sizes);
    if (meta.offset < 0) badInput("a negative offset");
    meta.conjugate = truth(call.keyword("is_conj"));
    meta.negative = truth(call.keyword("is_neg"));
    checkExtent(meta);
    input.requiresGrad = truth(call.keyword("requires_grad"));
    load(it->second, input);
    inputs_.push_back(std::move(input));
  }

  void load(const ReproStorage& storage, ReproInput& input) {
    if (storage.hash.empty()) {
      input.source = "the script holds no data";
      return;
    }
    for (const auto& folder : folders_) {
      const auto file = folder / storage.hash;
      if (std::error_code ignored; !fs::is_regular_file(file, ignored)) continue;
      auto& bytes = loaded_[storage.hash];
      if (!bytes.data) bytes = read(file.string());
      checkReach(input.meta, bytes.bytes);
      input.data = bytes;
      input.data.meta = input.meta;
      input.source = "storages/" + storage.hash.substr(0, 8);
      return;
    }
    input.source = "storages/" + storage.hash.substr(0, 8) + " is not there";
  }
  static TensorData read(const std::string& file) {
    const auto bytes = mapFile(file);
    const ReadingScope scope(bytes.size);
    return readUnchanged(bytes.data, [&] {
      const auto archive = Archive::open(bytes, file);
      try {
        const auto pickle = readPickle(archive);
        const auto& root = pickle.at(pickle.root);
        if (root.kind != PickleValue::Kind::storage) badInput("is not a storage that torch.save wrote");
        return root.tensor;
      } catch (const Error& e) {
        throw e.at(file);
      }
    });
  }

  const fx::Repro& repro_;
  const std::string& path_;
  std::vector<fs::path> folders_;
  std::map<std::string, ReproStorage> storages_;  // by variable
  std::map<std::string, TensorData> loaded_;      // by hash
  std::vector<ReproInput> inputs_;
};

}  // namespace

std::vector<ReproInput> readReproInputs(const fx::Repro& repro, const std::string& path) {
  return InputReader(repro, path).run();
}

std::string reproScript(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return path;
  for (const char* name : {"repro.py", "fx_graph_runnable.py", "minifier_launcher.py"})
    if (const auto script = fs::path(path) / name; fs::is_regular_file(script, ignored)) return script.string();
  return path;
}

bool isReproFolder(const std::string& path) { return reproScript(path) != path; }

}  // namespace retrograd
