#include "core/formats/files/byte_stream.h"

#include <fcntl.h>
#include <lzma.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/formats/files/reading_limit.h"

namespace retrograd {
namespace {

class PlainStream final : public ByteStream {
 public:
  explicit PlainStream(const std::string& path) : path_(path) {
    requireReadable(path);
    file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file_ < 0) badInput(std::string("cannot be opened: ") + std::strerror(errno), path);
    struct stat status{};
    if (::fstat(file_, &status) != 0 || !S_ISREG(status.st_mode)) {
      ::close(file_);
      badInput("is not a regular file", path);
    }
    size_ = static_cast<std::uint64_t>(status.st_size);
  }
  ~PlainStream() override { ::close(file_); }
  PlainStream(const PlainStream&) = delete;
  PlainStream& operator=(const PlainStream&) = delete;

  std::size_t read(char* to, std::size_t most) override {
    for (;;) {
      const auto count = ::read(file_, to, most);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) throw Error(ErrorCode::io, std::string("cannot be read: ") + std::strerror(errno), path_);
      at_ += static_cast<std::uint64_t>(count);
      return static_cast<std::size_t>(count);
    }
  }
  double fraction() const override { return size_ == 0 ? 1 : static_cast<double>(at_) / static_cast<double>(size_); }
  /// The first bytes, which are read again afterwards.
  std::string peek(std::size_t count) {
    std::string start(count, '\0');
    start.resize(read(start.data(), count));
    ::lseek(file_, 0, SEEK_SET);
    at_ = 0;
    return start;
  }

 private:
  std::string path_;
  int file_ = -1;
  std::uint64_t size_ = 0, at_ = 0;
};

constexpr std::size_t inputBytes = std::size_t{1} << 16;

class XzStream final : public ByteStream {
 public:
  explicit XzStream(std::unique_ptr<PlainStream> file) : file_(std::move(file)), input_(inputBytes) {
    constexpr std::uint64_t dictionary = std::uint64_t{128} << 20;  // more than `xz -9` takes
    if (lzma_stream_decoder(&state_, dictionary, LZMA_CONCATENATED) != LZMA_OK) throw std::bad_alloc();
  }
  ~XzStream() override { lzma_end(&state_); }
  XzStream(const XzStream&) = delete;
  XzStream& operator=(const XzStream&) = delete;

  std::size_t read(char* to, std::size_t most) override {
    state_.next_out = reinterpret_cast<std::uint8_t*>(to);
    state_.avail_out = most;
    while (!ended_ && state_.avail_out == most) {
      if (state_.avail_in == 0 && !inputEnded_) {
        state_.next_in = reinterpret_cast<const std::uint8_t*>(input_.data());
        state_.avail_in = file_->read(input_.data(), input_.size());
        inputEnded_ = state_.avail_in == 0;
      }
      const auto result = lzma_code(&state_, inputEnded_ ? LZMA_FINISH : LZMA_RUN);
      if (result == LZMA_STREAM_END) ended_ = true;
      else if (result == LZMA_MEM_ERROR) throw std::bad_alloc();
      else if (result != LZMA_OK) badInput("xz: the file is damaged or cut off");
    }
    return most - state_.avail_out;
  }
  double fraction() const override { return file_->fraction(); }

 private:
  std::unique_ptr<PlainStream> file_;
  std::vector<char> input_;
  lzma_stream state_ = LZMA_STREAM_INIT;
  bool inputEnded_ = false, ended_ = false;
};

class GzipStream final : public ByteStream {
 public:
  explicit GzipStream(std::unique_ptr<PlainStream> file) : file_(std::move(file)), input_(inputBytes) {
    if (inflateInit2(&state_, 15 + 16) != Z_OK) throw std::bad_alloc();  // the largest window, gzip's header
  }
  ~GzipStream() override { inflateEnd(&state_); }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  std::size_t read(char* to, std::size_t most) override {
    state_.next_out = reinterpret_cast<Bytef*>(to);
    state_.avail_out = static_cast<uInt>(std::min<std::size_t>(most, std::size_t{1} << 30));
    const auto wanted = state_.avail_out;
    while (state_.avail_out == wanted) {
      if (state_.avail_in == 0) {
        state_.next_in = reinterpret_cast<Bytef*>(input_.data());
        state_.avail_in = static_cast<uInt>(file_->read(input_.data(), input_.size()));
        if (state_.avail_in == 0) {
          if (!memberEnded_) badInput("gzip: the file is cut off");
          return 0;
        }
      }
      if (memberEnded_ && inflateReset(&state_) != Z_OK) badInput("gzip: the file is damaged");
      memberEnded_ = false;
      const auto result = inflate(&state_, Z_NO_FLUSH);
      if (result == Z_STREAM_END) memberEnded_ = true;
      else if (result == Z_MEM_ERROR) throw std::bad_alloc();
      else if (result != Z_OK) badInput("gzip: the file is damaged");
    }
    return wanted - state_.avail_out;
  }
  double fraction() const override { return file_->fraction(); }

 private:
  std::unique_ptr<PlainStream> file_;
  std::vector<char> input_;
  z_stream state_{};
  bool memberEnded_ = false;
};

}  // namespace

std::unique_ptr<ByteStream> openByteStream(const std::string& path) {
  using namespace std::string_view_literals;
  auto file = std::make_unique<PlainStream>(path);
  const auto start = file->peek(6);
  if (start.starts_with("\xfd"
                        "7zXZ\0"sv))
    return std::make_unique<XzStream>(std::move(file));
  if (start.starts_with("\x1f\x8b"sv)) return std::make_unique<GzipStream>(std::move(file));
  return file;
}

}  // namespace retrograd
