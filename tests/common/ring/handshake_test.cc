#include "common/ring/handshake.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace headrace::ring {
namespace {

using testing::HasSubstr;

HandshakeReply Sample() {
  HandshakeReply reply;
  reply.plan_hash = "0123456789abcdef";
  reply.input = "ml/clicks";
  reply.topology = {.num_workers = 2, .worker_index = 1, .replicas_per_worker = 4};
  reply.global_batch_size = 1024;
  reply.effective_policy = "Data";
  reply.warnings = {"Auto became Data"};
  reply.element_spec = {{"x", DType::kFloat32, {kUnknownDim, 8}}, {"label", DType::kInt64, {kUnknownDim}}};
  reply.cardinality = kInfiniteCardinality;
  reply.memory = MemoryKind::kPinned;
  reply.memory_reason = "the loader fills rings on 2 GPUs";
  reply.device_rings = {{"GPU-a", 3}, {"GPU-b", 1}};
  reply.device_only = "host memory has no images";
  reply.on_demand = true;
  return reply;
}

TEST(Handshake, ReplyComesBackAsItWas) {
  auto decoded = DecodeReply(EncodeReply(Sample()));
  ASSERT_TRUE(decoded.ok()) << decoded.status().ToString();
  EXPECT_EQ(decoded->plan_hash, "0123456789abcdef");
  EXPECT_EQ(decoded->input, "ml/clicks");
  EXPECT_EQ(decoded->topology.num_workers, 2);
  EXPECT_EQ(decoded->topology.worker_index, 1);
  EXPECT_EQ(decoded->topology.replicas_per_worker, 4);
  EXPECT_EQ(decoded->global_batch_size, 1024);
  EXPECT_EQ(decoded->effective_policy, "Data");
  EXPECT_EQ(decoded->warnings, std::vector<std::string>{"Auto became Data"});
  EXPECT_EQ(decoded->element_spec, Sample().element_spec);
  EXPECT_EQ(decoded->cardinality, kInfiniteCardinality);
  EXPECT_EQ(decoded->memory, MemoryKind::kPinned);
  EXPECT_EQ(decoded->memory_reason, "the loader fills rings on 2 GPUs");
  ASSERT_EQ(decoded->device_rings.size(), 2U);
  EXPECT_EQ(decoded->device_rings[1].gpu, "GPU-b");
  EXPECT_EQ(decoded->device_rings[0].generation, 3U);
  EXPECT_EQ(decoded->device_only, "host memory has no images");
  EXPECT_TRUE(decoded->on_demand);
}

TEST(Handshake, LoaderOfBeforeDeliversToHostMemory) {
  std::string text = EncodeReply(Sample());
  for (const std::string field :
       {R"("memory":"Pinned",)", R"("onDemand":true,)", R"("memoryReason":"the loader fills rings on 2 GPUs",)",
        R"("deviceRings":[{"generation":3,"gpu":"GPU-a"},{"generation":1,"gpu":"GPU-b"}],)"}) {
    ASSERT_NE(text.find(field), std::string::npos) << text;
    text.erase(text.find(field), field.size());
  }
  auto decoded = DecodeReply(text);
  ASSERT_TRUE(decoded.ok()) << decoded.status().ToString();
  EXPECT_EQ(decoded->memory, MemoryKind::kHost);
  EXPECT_TRUE(decoded->device_rings.empty());
  EXPECT_FALSE(decoded->on_demand);
}

TEST(Handshake, ErrorsKeepTheirCode) {
  const Status error = NotFound("spec.source.files.paths[0]: '/data/\xff*' matches no file");
  Status decoded = DecodeReply(EncodeError(error)).status();
  EXPECT_EQ(decoded.code(), Code::kNotFound);
  EXPECT_THAT(decoded.message(), HasSubstr("matches no file"));
}

TEST(Handshake, RequestsNameTheReplicaOrNone) {
  EXPECT_TRUE(DecodeRequest(EncodeRequest({0, "Device", true}))->device);
  const auto attaching = DecodeRequest(EncodeRequest({3, "Pinned: GPU 3"}));
  ASSERT_TRUE(attaching.ok()) << attaching.status().ToString();
  EXPECT_EQ(attaching->replica, 3);
  EXPECT_EQ(attaching->memory, "Pinned: GPU 3");
  EXPECT_FALSE(attaching->device);
  EXPECT_EQ(DecodeRequest(EncodeRequest({}))->replica, -1);
  EXPECT_EQ(DecodeRequest(EncodeRequest({0, std::string(1000, 'x')}))->memory.size(), 400U);
}

TEST(Handshake, RefusesOtherText) {
  for (const char* text :
       {"", "{", "[]", "{}", R"({"version":2})", R"({"version":1,"replica":"x"})", R"({"version":1,"replica":-2})",
        R"({"version":1,"replica":99999999999})", R"({"version":1,"replica":1,"memory":7})"}) {
    EXPECT_EQ(DecodeRequest(text).status().code(), Code::kInternal) << text;
  }
  EXPECT_EQ(DecodeReply(R"({"version":1,"deviceRings":7})").status().code(), Code::kInternal);
  EXPECT_THAT(DecodeRequest(R"({"version":2})").status().message(), HasSubstr("version is 2, want 1"));
  EXPECT_THAT(DecodeReply(R"({"version":1})").status().message(), HasSubstr("plan"));
  EXPECT_EQ(DecodeReply(R"({"version":1,"error":7})").status().code(), Code::kInternal);
}

TEST(Handshake, CarriesADescriptor) {
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
  int file = memfd_create("ring", 0);
  ASSERT_EQ(write(file, "bytes", 5), 5);
  ASSERT_TRUE(SendMessage(sockets[0], "with", file).ok());
  ASSERT_TRUE(SendMessage(sockets[0], "without", -1).ok());
  int received = -1;
  auto text = ReceiveMessage(sockets[1], 1000, &received);
  ASSERT_TRUE(text.ok()) << text.status().ToString();
  EXPECT_EQ(*text, "with");
  char bytes[5] = {};
  EXPECT_EQ(pread(received, bytes, 5, 0), 5);
  EXPECT_EQ(std::string(bytes, 5), "bytes");
  EXPECT_NE(fcntl(received, F_GETFD) & FD_CLOEXEC, 0) << "leaks into the trainer's children";
  close(received);
  text = ReceiveMessage(sockets[1], 1000, &received);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(received, -1);
  EXPECT_EQ(ReceiveMessage(sockets[1], 0, &received).status().code(), Code::kUnavailable);
  close(sockets[0]);
  Status hung_up = ReceiveMessage(sockets[1], 1000, &received).status();
  EXPECT_EQ(hung_up.code(), Code::kUnavailable);
  EXPECT_THAT(hung_up.message(), HasSubstr("hung up"));
  EXPECT_EQ(SendMessage(sockets[1], "x", -1).code(), Code::kUnavailable) << "and no SIGPIPE";
  close(sockets[1]);
  close(file);
}

TEST(Handshake, CarriesSeveralDescriptorsInTheirOrder) {
  const auto open_files = [] {
    const std::filesystem::directory_iterator files("/proc/self/fd");
    return std::distance(begin(files), end(files));
  };
  const auto before = open_files();
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
  int files[3];
  for (int i = 0; i < 3; ++i) {
    files[i] = memfd_create("file", 0);
    ASSERT_EQ(ftruncate(files[i], 100 + i), 0);
  }
  const auto size = [](int fd) {
    struct stat file {};
    return fstat(fd, &file) == 0 ? file.st_size : -1;
  };
  ASSERT_TRUE(SendDescriptors(sockets[0], "three", files).ok());
  ASSERT_TRUE(SendMessage(sockets[0], "one", files[2]).ok());
  ASSERT_TRUE(SendDescriptors(sockets[0], "three for one", files).ok());
  int received[kMaxDescriptors];
  ASSERT_TRUE(ReceiveDescriptors(sockets[1], 1000, received).ok());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(size(received[i]), 100 + i);
    close(received[i]);
  }
  ASSERT_TRUE(ReceiveDescriptors(sockets[1], 1000, received).ok());
  EXPECT_EQ(size(received[0]), 102);
  EXPECT_EQ(received[1], -1);
  close(received[0]);
  int only = -1;
  ASSERT_TRUE(ReceiveMessage(sockets[1], 1000, &only).ok());
  EXPECT_EQ(size(only), 100);
  for (const int fd : {only, files[0], files[1], files[2], sockets[0], sockets[1]}) close(fd);
  EXPECT_EQ(open_files(), before) << "those that nobody asked for are closed";
}

TEST(Handshake, LongMessageIsRefusedBeforeItIsSent) {
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
  EXPECT_EQ(SendMessage(sockets[0], std::string(1 << 20, 'x'), -1).code(), Code::kInternal);
  close(sockets[0]);
  close(sockets[1]);
}

}  // namespace
}  // namespace headrace::ring
