#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "core/ranks/message.h"
#include "core/ranks/transport.h"

namespace retrograd {

/// A message being sent: how long it is, then the message, then the tensors that lie on the device of the link, if
/// there is one.
class Outgoing {
 public:
  /// Takes `tag` and the next one. Throws as Transport and encodeMessage().
  Outgoing(Transport& transport, DeviceLink* link, const TensorMap& tensors, int to, int tag);
  void wait();

 private:
  std::vector<std::unique_ptr<Transfer>> transfers_;
};

/// A message being received. Its length is asked for at once, the rest when it is opened.
class Incoming {
 public:
  Incoming(Transport& transport, DeviceLink* link, int from, int tag);
  /// Waits for the message, and asks for the tensors that it announces. Over a link all messages of a rank have to be
  /// opened in the order in which they were sent. Does nothing the second time. Throws as Transport and
  /// decodeMessage().
  void open();
  bool isOpen() const { return isOpen_; }
  /// Opens it, and waits for all tensors.
  TensorMap take();

 private:
  Transport& transport_;
  DeviceLink* link_;
  int from_, tag_;
  std::shared_ptr<Bytes> length_;
  std::unique_ptr<Transfer> first_;
  bool isOpen_ = false;
  TensorMap tensors_;
  std::vector<std::unique_ptr<Transfer>> transfers_;
};

}  // namespace retrograd
