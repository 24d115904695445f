#include "core/formats/pt2/pt2_sample_write.h"

#include <unistd.h>

#include <filesystem>

#include "core/base/error.h"
#include "core/formats/zip/zip_writer.h"

namespace retrograd {
namespace {

/// Opcodes of a pickle of protocol 2.
class PickleText {
 public:
  PickleText() { code_ = "\x80\x02"; }

  void mark() { code_ += '('; }
  void tuple() { code_ += 't'; }
  void emptyDict() { code_ += '}'; }
  void boolean(bool b) { code_ += b ? '\x88' : '\x89'; }
  void persistent() { code_ += 'Q'; }
  void reduce() { code_ += 'R'; }
  void global(const std::string& module, const std::string& name) { code_ += "c" + module + "\n" + name + "\n"; }
  void text(const std::string& s) {
    code_ += 'X';
    number(s.size(), 4);
    code_ += s;
  }
  void whole(std::int64_t i) {
    code_ += "\x8a\x08";
    number(static_cast<std::uint64_t>(i), 8);
  }
  void wholes(const std::vector<std::int64_t>& all) {
    mark();
    for (auto i : all) whole(i);
    tuple();
  }
  std::string finish() { return code_ + '.'; }

 private:
  void number(std::uint64_t n, int width) {
    for (int i = 0; i < width; ++i) code_ += static_cast<char>(n >> (8 * i) & 0xff);
  }
  std::string code_;
};

std::string storageClass(DType dtype) {
  switch (dtype) {
    case DType::f64: return "DoubleStorage";
    case DType::f32: return "FloatStorage";
    case DType::f16: return "HalfStorage";
    case DType::bf16: return "BFloat16Storage";
    case DType::i64: return "LongStorage";
    case DType::i32: return "IntStorage";
    case DType::i16: return "ShortStorage";
    case DType::i8: return "CharStorage";
    case DType::u8: return "ByteStorage";
    case DType::b8: return "BoolStorage";
    case DType::c128: return "ComplexDoubleStorage";
    case DType::c64: return "ComplexFloatStorage";
    default:
      throw Error(ErrorCode::unsupportedOp,
                  "a sample of dtype " + std::string(torchName(dtype)) + " cannot be written to a .pt2 here");
  }
}

void addTensor(PickleText& pickle, const TensorData& tensor, std::size_t key, bool requiresGrad) {
  const auto& meta = tensor.meta;
  pickle.global("torch._utils", "_rebuild_tensor_v2");
  pickle.mark();
  pickle.mark();
  pickle.text("storage");
  pickle.global("torch", storageClass(meta.dtype));
  pickle.text(std::to_string(key));
  pickle.text("cpu");
  pickle.whole(static_cast<std::int64_t>(tensor.bytes) / itemSize(meta.dtype));
  pickle.tuple();
  pickle.persistent();
  pickle.whole(meta.offset);
  pickle.wholes(meta.sizes);
  pickle.wholes(meta.strides);
  pickle.boolean(requiresGrad);
  pickle.global("collections", "OrderedDict");
  pickle.mark();
  pickle.tuple();
  pickle.reduce();
  pickle.tuple();
  pickle.reduce();
}

/// A file that is removed again.
struct Beside {
  std::string path;
  ~Beside() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
};

}  // namespace

ByteRegion sampleArchive(const ModelFile& model, const std::string& path) {
  PickleText pickle;
  std::vector<TensorData> tensors;
  pickle.mark();
  pickle.mark();
  for (const auto& input : model.computation.inputs) {
    const auto it = model.sampleInputs.find(input.name);
    if (it == model.sampleInputs.end())
      throw Error(ErrorCode::unsupportedOp, "has no sample, which a .pt2 needs here", "input " + input.name);
    const auto& meta = it->second.meta;
    addTensor(pickle, it->second, tensors.size(), input.requiresGrad && isDifferentiable(meta.dtype));
    tensors.push_back(it->second);
  }
  pickle.tuple();
  pickle.emptyDict();
  pickle.tuple();
  const auto code = pickle.finish();
  const Beside file{path + "." + std::to_string(::getpid()) + ".samples"};
  ZipWriter zip(file.path);
  const auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text)); };
  zip.addStored("archive/data.pkl", bytes(code));
  zip.addStored("archive/byteorder", bytes("little"));
  for (std::size_t i = 0; i < tensors.size(); ++i)
    zip.addStored("archive/data/" + std::to_string(i), {tensors[i].data, tensors[i].bytes});
  zip.addStored("archive/version", bytes("3\n"));
  zip.commit();
  return mapFile(file.path);
}

}  // namespace retrograd
