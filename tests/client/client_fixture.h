// A fake loader in a run directory of the test's own, and what a trainer does with it.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <stdexcept>
#include <vector>

#include "headrace/client.h"
#include "tests/fakes/fake_loader.h"

namespace headrace {

class ClientTest : public testing::Test {
 protected:
  ClientTest() {
    char name[] = "/dev/shm/headrace-client-XXXXXX";  // CUDA locks no file of a disk
    options_.directory = mkdtemp(name);
    setenv("HEADRACE_LOADER_TIMEOUT", "20", 1);
  }
  ~ClientTest() override {
    for (headrace_iterator* iterator : iterators_) headrace_iterator_free(iterator);
    for (headrace_dataset* dataset : datasets_) headrace_dataset_free(dataset);
    unsetenv("HEADRACE_LOADER_TIMEOUT");
    std::filesystem::remove_all(options_.directory);
  }

  std::unique_ptr<fakes::FakeLoader> StartLoader() {
    auto loader = fakes::FakeLoader::Start(options_);
    EXPECT_TRUE(loader.ok()) << loader.status().ToString();
    return loader.ok() ? std::move(*loader) : nullptr;
  }

  headrace_status Connect(int64_t timeout_ms = 10000) {
    headrace_connect_options options{};
    options.size = sizeof(options);
    options.directory = options_.directory.c_str();
    options.timeout_ms = timeout_ms;
    headrace_dataset* dataset = nullptr;
    headrace_status status = headrace_connect(&options, &dataset);
    if (status == HEADRACE_OK) datasets_.push_back(dataset);
    return status;
  }

  headrace_iterator* Iterate(int32_t replica) {
    headrace_iterator* iterator = nullptr;
    if (headrace_iterator_create(datasets_.back(), replica, &iterator) != HEADRACE_OK) {
      throw std::runtime_error(headrace_last_error());  // it ends the test, and only that one
    }
    iterators_.push_back(iterator);
    return iterator;
  }

  static int64_t FirstLabel(const headrace_batch* batch) {
    headrace_tensor label{};
    label.size = sizeof(label);
    EXPECT_EQ(headrace_batch_tensor(batch, 0, &label), HEADRACE_OK);
    return *static_cast<const int64_t*>(label.data);
  }

  // Reads steps [from, to) of one replica and frees them.
  void ReadSteps(headrace_iterator* iterator, int32_t replica, uint64_t epoch, uint64_t from, uint64_t to) {
    for (uint64_t step = from; step < to; ++step) {
      headrace_batch* batch = nullptr;
      ASSERT_EQ(headrace_next(iterator, 10000, &batch), HEADRACE_OK) << headrace_last_error();
      EXPECT_EQ(headrace_batch_step(batch), static_cast<int64_t>(step));
      EXPECT_EQ(FirstLabel(batch), fakes::FakeLoader::Label(options_, epoch, step, replica));
      headrace_batch_free(batch);
    }
  }

  fakes::FakeLoaderOptions options_;
  std::vector<headrace_dataset*> datasets_;
  std::vector<headrace_iterator*> iterators_;
};

}  // namespace headrace
