#include "core/serve/messages.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/base/error.h"

namespace retrograd {
namespace {

using Json = nlohmann::ordered_json;

constexpr int deepest = 64;

bool nestsTooDeep(const std::string& text) {
  int depth = 0;
  bool isText = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (isText && c == '\\') ++i;
    else if (c == '"') isText = !isText;
    else if (!isText && (c == '[' || c == '{') && ++depth > deepest) return true;
    else if (!isText && (c == ']' || c == '}')) --depth;
  }
  return false;
}

}  // namespace

bool MessageReader::fill() {
  constexpr int milliseconds = 300;
  for (pollfd waited{descriptor_, POLLIN, 0}; ::poll(&waited, 1, milliseconds) == 0;) progress_.check();
  std::array<char, 65536> bytes;
  ssize_t count = 0;
  do count = ::read(descriptor_, bytes.data(), bytes.size());
  while (count < 0 && errno == EINTR);
  if (count < 0) throw Error(ErrorCode::io, std::strerror(errno), "standard input");
  pending_.append(bytes.data(), static_cast<std::size_t>(count));
  return count > 0;
}

std::optional<std::string> MessageReader::next() {
  for (std::size_t looked = 0;;) {
    const auto end = pending_.find('\n', looked);
    if (end <= mostMessageBytes) {
      auto line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      if (!line.empty() && line.back() == '\r') line.pop_back();
      return line;
    }
    looked = pending_.size();
    if (looked > mostMessageBytes) badInput("a message is larger than 4 MiB", "standard input");
    if (fill()) continue;
    if (!pending_.empty()) badInput("ends in the middle of a message", "standard input");
    return std::nullopt;
  }
}

MessageWriter::MessageWriter() : descriptor_(::dup(STDOUT_FILENO)) {
  if (descriptor_ < 0) throw Error(ErrorCode::io, std::strerror(errno), "standard output");
  std::fflush(stdout);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
}

MessageWriter::~MessageWriter() {
  std::fflush(stdout);
  ::dup2(descriptor_, STDOUT_FILENO);
  ::close(descriptor_);
}

void MessageWriter::write(const Json& message) {
  const auto line = message.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  for (std::size_t at = 0; at < line.size();) {
    const auto count = ::write(descriptor_, line.data() + at, line.size() - at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw Error(ErrorCode::io, std::strerror(errno), "standard output");
    at += static_cast<std::size_t>(count);
  }
}

Json parseMessage(const std::string& line) {
  if (nestsTooDeep(line)) badInput("is nested too deep");
  auto json = Json::parse(line, nullptr, false);
  if (json.is_discarded()) badInput("is not JSON");
  return json;
}

}  // namespace retrograd
