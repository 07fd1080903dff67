// spec.source.function: the loader, a function's process and the client, as a pod has them.
#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <thread>

#include "tests/loader/run.h"

namespace headrace::testing {
namespace {

using ::testing::HasSubstr;

constexpr char kFunction[] = R"({"source": {"function": {"command": ["none"]}}})";

// One component "x" of int64: element e has rows(e) rows of the value 10 * epoch + e, until rows says -1.
class Function {
 public:
  std::function<int64_t(int64_t epoch, int64_t element)> rows = [](int64_t, int64_t) { return -1; };
  std::function<headrace_status(int64_t element)> before = [](int64_t) { return HEADRACE_OK; };
  int64_t width = 0;  // of a second dimension; 0: none
  std::function<int64_t(int64_t)> width_of = [this](int64_t) { return width; };
  std::vector<int64_t> declared;  // shape; empty: not declared
  std::atomic<int64_t> asked{0};
  headrace_input_context context{};

  // Serves on a thread of its own until the loader ends.
  void Serve(const std::string& directory) {
    threads_.emplace_back([this, directory] { ServeHere(directory); });
  }
  headrace_status ServeHere(const std::string& directory) {
    headrace_dataset_function function{};
    function.size = sizeof(function);
    function.user = this;
    function.start = Start;
    function.next = Next;
    headrace_connect_options options{};
    options.size = sizeof(options);
    options.directory = directory.c_str();
    options.timeout_ms = 60000;
    return headrace_serve(&options, &function);
  }
  ~Function() {
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  static headrace_status Start(void* user, const headrace_input_context* context, int64_t number,
                               headrace_epoch* epoch) {
    auto& self = *static_cast<Function*>(user);
    self.context = *context;
    self.epoch_ = number;
    self.element_ = 0;
    if (!self.declared.empty()) {
      self.spec_ = {sizeof(headrace_tensor_spec), "x", {"int64", 0, 64, 1}, static_cast<int32_t>(self.declared.size()),
                    self.declared.data(),         0};
      epoch->num_components = 1;
      epoch->element_spec = &self.spec_;
    }
    return HEADRACE_OK;
  }
  static headrace_status Next(void* user, void*, headrace_element* element) {
    auto& self = *static_cast<Function*>(user);
    ++self.asked;
    const int64_t e = self.element_++;
    if (const headrace_status status = self.before(e); status != HEADRACE_OK) return status;
    const int64_t rows = self.rows(self.epoch_, e);
    if (rows < 0) return HEADRACE_END;
    const int64_t width = self.width_of(e);
    self.shape_ = {rows, width};
    self.values_.assign(static_cast<size_t>(rows * std::max<int64_t>(width, 1)), 10 * self.epoch_ + e);
    self.tensor_ = {};
    self.tensor_.size = sizeof(headrace_tensor);
    self.tensor_.name = "x";
    self.tensor_.dtype.name = "int64";
    self.tensor_.data = self.values_.data();
    self.tensor_.ndim = width > 0 ? 2 : 1;
    self.tensor_.shape = self.shape_.data();
    element->num_tensors = 1;
    element->tensors = &self.tensor_;
    return HEADRACE_OK;
  }

  int64_t epoch_ = 0;
  int64_t element_ = 0;
  std::vector<int64_t> values_;
  std::vector<int64_t> shape_;
  headrace_tensor tensor_{};
  headrace_tensor_spec spec_{};
  std::vector<std::thread> threads_;
};

TEST(FunctionSource, ElementsAreTheReplicasBatchesInTurn) {
  Function function;
  LoaderRun run(kFunction, 1, 2);
  function.rows = [](int64_t, int64_t element) { return element < 3 ? element + 1 : -1; };
  function.Serve(run.directory(0));
  Reader reader(run.directory(0));
  ASSERT_EQ(reader.error(), "");
  for (const int64_t epoch : {0, 1}) {
    reader.Start();
    const int64_t first = 10 * epoch;
    EXPECT_EQ(reader.Rest(),
              (std::vector<Reader::Step>{{{first}, {first + 1, first + 1}}, {{first + 2, first + 2, first + 2}, {}}}))
        << reader.error();
  }
  EXPECT_EQ(function.context.num_replicas_in_sync, 2);
  EXPECT_EQ(function.context.replicas_per_worker, 2);
  EXPECT_STREQ(headrace_element_spec_string(reader.dataset()), "TensorSpec(shape=(None,), dtype=tf.int64, name=None)");
}

TEST(FunctionSource, NothingIsComputedBeforeItIsAskedFor) {
  Function function;
  LoaderRun run(kFunction, 1, 1);
  function.rows = [](int64_t, int64_t) { return 1; };
  function.Serve(run.directory(0));
  Reader reader(run.directory(0));
  ASSERT_EQ(reader.error(), "");
  EXPECT_EQ(function.asked, 1) << "the first element tells the types";
  reader.Start();
  for (int64_t step = 0; step < 20; ++step) {
    EXPECT_EQ(reader.Next(), (Reader::Step{{step}}));
    EXPECT_EQ(function.asked, step + 1);
  }
}

TEST(FunctionSource, PrefetchStepsPrefetch) {
  Function function;
  LoaderRun run(R"({"source": {"function": {"command": ["none"]}}, "delivery": {"prefetchSteps": 4}})", 1, 1);
  function.rows = [](int64_t, int64_t element) { return element < 50 ? 1 : -1; };
  function.Serve(run.directory(0));
  Reader reader(run.directory(0));
  ASSERT_EQ(reader.error(), "");
  while (function.asked < 4) usleep(1000);  // nobody has asked for a batch; a loader that does not prefetch hangs here
  reader.Start();
  EXPECT_EQ(reader.Rest().size(), 50u);
}

TEST(FunctionSource, EveryWorkerEndsWithTheLast) {
  Function functions[2];
  LoaderRun run(kFunction, 2, 1);
  for (int w = 0; w < 2; ++w) {
    functions[w].rows = [w](int64_t, int64_t element) { return element < (w == 0 ? 1 : 3) ? 2 : -1; };
    functions[w].Serve(run.directory(w));
  }
  std::vector<Reader::Step> steps[2];
  std::vector<std::thread> trainers;
  for (int w = 0; w < 2; ++w) {
    trainers.emplace_back([&, w] {
      Reader reader(run.directory(w));
      reader.Start();
      steps[w] = reader.Rest();
      EXPECT_EQ(reader.error(), "");
    });
  }
  for (std::thread& trainer : trainers) trainer.join();
  EXPECT_EQ(steps[0], (std::vector<Reader::Step>{{{0, 0}}, {{}}, {{}}}));
  EXPECT_EQ(steps[1], (std::vector<Reader::Step>{{{0, 0}}, {{1, 1}}, {{2, 2}}}));
}

TEST(FunctionSource, AnErrorReachesEveryReplicaAfterWhatCameBeforeIt) {
  Function function;
  LoaderRun run(kFunction, 1, 2);
  function.rows = [](int64_t, int64_t) { return 1; };
  function.before = [](int64_t element) {
    if (element < 4) return HEADRACE_OK;
    headrace_set_error("ValueError: no such thing (data.py:7)");
    return HEADRACE_INVALID_ARGUMENT;
  };
  function.Serve(run.directory(0));
  Reader reader(run.directory(0));
  reader.Start();
  EXPECT_EQ(reader.Rest(), (std::vector<Reader::Step>{{{0}, {1}}, {{2}, {3}}}));
  EXPECT_EQ(reader.error(),
            "spec.source.function: worker 0, epoch 0, element 4: ValueError: no such thing (data.py:7)");
}

TEST(FunctionSource, AnErrorAtTheFirstElementFailsTheConnection) {
  Function function;
  LoaderRun run(kFunction, 1, 1);
  function.before = [](int64_t) {
    headrace_set_error("no disk");
    return HEADRACE_UNAVAILABLE;
  };
  function.Serve(run.directory(0));
  Reader reader(run.directory(0));
  EXPECT_EQ(reader.error(), "spec.source.function: worker 0, epoch 0, element 0: no disk");
}

TEST(FunctionSource, ACallbackThatAnswersSomethingElseIsAnError) {
  Function function;
  LoaderRun run(kFunction, 1, 1);
  function.rows = [](int64_t, int64_t) { return 1; };
  function.before = [](int64_t element) { return element == 1 ? HEADRACE_TIMED_OUT : HEADRACE_OK; };
  function.Serve(run.directory(0));
  Reader reader(run.directory(0));
  reader.Start();
  EXPECT_EQ(reader.Rest().size(), 1u);
  EXPECT_THAT(reader.error(),
              HasSubstr("element 1: a callback returned TimedOut (2), which does not answer its question"));
}

TEST(FunctionSource, AnElementOfAnotherShapeIsRefused) {
  Function function;
  LoaderRun run(kFunction, 1, 1);
  function.rows = [](int64_t, int64_t) { return 1; };
  function.width_of = [](int64_t element) { return element == 1 ? 3 : 2; };
  function.Serve(run.directory(0));
  Reader reader(run.directory(0));
  reader.Start();
  EXPECT_EQ(reader.Rest().size(), 1u);
  EXPECT_THAT(reader.error(), HasSubstr("element 1: component \"x\" is int64 of shape (1, 3) and should be int64 of "
                                        "shape (None, 2): declare element_spec"));
}

TEST(FunctionSource, DeclaredDimensionsMayVary) {
  Function function;
  LoaderRun run(kFunction, 1, 1);
  function.rows = [](int64_t, int64_t element) { return element < 3 ? 1 : -1; };
  function.width_of = [](int64_t element) { return element + 1; };
  function.declared = {-1, -1};
  function.Serve(run.directory(0));
  Reader reader(run.directory(0));
  reader.Start();
  EXPECT_EQ(reader.Rest(), (std::vector<Reader::Step>{{{0}}, {{1, 1}}, {{2, 2, 2}}})) << reader.error();
}

TEST(FunctionSource, AnElementThatOutgrowsItsSlotNamesTheField) {
  Function function;
  LoaderRun run(R"({"source": {"function": {"command": ["none"], "maxElementBytes": 4096}}})", 1, 1);
  function.rows = [](int64_t, int64_t element) { return element == 0 ? 512 : 2000; };
  function.Serve(run.directory(0));
  Reader reader(run.directory(0));
  reader.Start();
  EXPECT_EQ(reader.Rest().size(), 1u);
  EXPECT_THAT(reader.error(), HasSubstr("an element of 16000 bytes does not fit"));
  EXPECT_THAT(reader.error(), HasSubstr("spec.source.function.maxElementBytes"));
}

TEST(FunctionSource, NoElementAndNoTypesIsAnError) {
  Function function;
  LoaderRun run(kFunction, 1, 1);
  function.Serve(run.directory(0));
  Reader reader(run.directory(0));
  EXPECT_THAT(reader.error(),
              HasSubstr("it yielded no element, so that nothing tells the types: declare element_spec"));
}

TEST(FunctionSource, NoElementOfADeclaredTypeIsAnEmptyEpoch) {
  Function function;
  LoaderRun run(kFunction, 1, 1);
  function.declared = {-1};
  function.Serve(run.directory(0));
  Reader reader(run.directory(0));
  reader.Start();
  EXPECT_TRUE(reader.Rest().empty());
  EXPECT_EQ(reader.error(), "");
}

TEST(FunctionSource, TheDeathOfItsProcessIsToldToTheTrainer) {
  LoaderRun run(kFunction, 1, 1);
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Function function;
    function.rows = [](int64_t, int64_t) { return 1; };
    function.before = [](int64_t element) {
      if (element == 3) raise(SIGKILL);
      return HEADRACE_OK;
    };
    function.ServeHere(run.directory(0));
    _exit(0);
  }
  Reader reader(run.directory(0));
  reader.Start();
  EXPECT_EQ(reader.Rest().size(), 3u);
  EXPECT_THAT(reader.error(), HasSubstr("element 3: its process ended without an error of its own"));
  waitpid(child, nullptr, 0);
}

TEST(FunctionSource, APositionIsReachedByAskingAndDropping) {
  Function function;
  LoaderRun run(kFunction, 1, 1);
  function.rows = [](int64_t, int64_t element) { return element < 5 ? 1 : -1; };
  function.Serve(run.directory(0));
  Reader reader(run.directory(0));
  const headrace_position position{sizeof(headrace_position), 2, 3, 0};
  reader.Start(&position);
  EXPECT_EQ(reader.Rest(), (std::vector<Reader::Step>{{{23}}, {{24}}})) << reader.error();
}

}  // namespace
}  // namespace headrace::testing
