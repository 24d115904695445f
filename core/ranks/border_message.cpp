#include "core/ranks/border_message.h"

#include <fmt/format.h>

#include <cstring>

#include "core/base/error.h"

namespace retrograd {
namespace {

constexpr std::uint64_t mostBytes = std::uint64_t{1} << 40;

}  // namespace

Outgoing::Outgoing(Transport& transport, DeviceLink* link, const TensorMap& tensors, int to, int tag) {
  Message message;
  for (const auto& [name, tensor] : tensors) {
    if (link && tensor.memory == link->device()) message.announced.emplace(name, tensor.meta);
    else message.tensors.emplace(name, tensor);
  }
  auto bytes = std::make_shared<Bytes>(encodeMessage(message));
  auto length = std::make_shared<Bytes>(sizeof(std::uint64_t));
  const std::uint64_t count = bytes->size();
  std::memcpy(length->data(), &count, sizeof count);
  transfers_.push_back(transport.send(std::move(length), to, tag));
  transfers_.push_back(transport.send(std::move(bytes), to, tag + 1));
  for (const auto& [name, meta] : message.announced) transfers_.push_back(link->send(tensors.at(name), to));
}

void Outgoing::wait() {
  for (auto& transfer : transfers_) transfer->wait();
}

Incoming::Incoming(Transport& transport, DeviceLink* link, int from, int tag)
    : transport_(transport),
      link_(link),
      from_(from),
      tag_(tag),
      length_(std::make_shared<Bytes>(sizeof(std::uint64_t))),
      first_(transport.receive(length_, from, tag)) {}

void Incoming::open() {
  if (isOpen_) return;
  isOpen_ = true;
  first_->wait();
  std::uint64_t count = 0;
  std::memcpy(&count, length_->data(), sizeof count);
  if (count > mostBytes)
    throw Error(ErrorCode::badInput, fmt::format("rank {} announces a message of {} bytes", from_, count));
  auto bytes = std::make_shared<Bytes>(count);
  transport_.receive(bytes, from_, tag_ + 1)->wait();
  auto message = decodeMessage(bytes);
  tensors_ = std::move(message.tensors);
  if (!message.announced.empty() && !link_)
    throw Error(ErrorCode::badInput,
                fmt::format("rank {} sends tensors past its messages, and there is no link", from_));
  for (const auto& [name, meta] : message.announced) {
    const auto& tensor = tensors_[name] = link_->allocate(meta);
    transfers_.push_back(link_->receive(tensor, from_));
  }
}

TensorMap Incoming::take() {
  open();
  for (auto& transfer : transfers_) transfer->wait();
  return std::move(tensors_);
}

}  // namespace retrograd
