#pragma once
#include <cstddef>
#include <memory>
#include <string>

namespace retrograd {

/// The bytes of a file in order, for what is too large to keep: a reader takes them piece by piece.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  /// Writes the next bytes, up to `most`, to `to` and returns how many; 0 at the end. Throws Error(badInput),
  /// Error(io).
  virtual std::size_t read(char* to, std::size_t most) = 0;
  /// How much of the file was read, from 0 to 1.
  virtual double fraction() const = 0;
};

/// Opens a regular file. One that is compressed with gzip or xz, which its first bytes say, is read as what it holds.
/// Throws Error(badInput) for what cannot be opened.
std::unique_ptr<ByteStream> openByteStream(const std::string& path);

}  // namespace retrograd
