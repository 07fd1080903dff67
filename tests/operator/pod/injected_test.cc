#include "operator/pod/injected.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace headrace::op {
namespace {

using nlohmann::json;

// A pod of an Indexed Job as the API server has it, with what others put into it.
json Pod() {
  return json::parse(R"({
    "apiVersion": "v1", "kind": "Pod",
    "metadata": {
      "name": "train-1-x", "namespace": "ml", "uid": "u1", "resourceVersion": "7", "generateName": "train-1-",
      "creationTimestamp": "2026-02-03T04:05:06Z",
      "labels": {"headrace.dev/input": "clicks", "batch.kubernetes.io/job-completion-index": "1", "app": "x"},
      "annotations": {"headrace.dev/injected-plan": "h", "kubectl/last-applied": "long"},
      "ownerReferences": [{"uid": "other", "kind": "Node"},
                          {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "job-1", "controller": true}]
    },
    "spec": {
      "nodeName": "n", "containers": [{"name": "trainer"}],
      "initContainers": [
        {"name": "istio-proxy", "env": [{"name": "HEADRACE_RUN_ID", "value": "not ours"}]},
        {"name": "headrace-loader", "image": "i", "env": [
          {"name": "HEADRACE_DIR", "value": "/run/headrace"},
          {"name": "HEADRACE_WORKER_INDEX",
           "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['batch.kubernetes.io/job-completion-index']"}}},
          {"name": "HEADRACE_NUM_WORKERS", "value": "2"},
          {"name": "HEADRACE_RUN_ID", "value": "set-1/workers/0"},
          {"name": "AWS_SECRET_ACCESS_KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}]
    },
    "status": {
      "phase": "Running", "podIP": "10.0.0.1",
      "conditions": [{"type": "Ready", "status": "False"},
                     {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node",
                      "lastTransitionTime": "2026-02-03T04:05:06Z"}],
      "initContainerStatuses": [
        {"name": "istio-proxy", "ready": true},
        {"name": "headrace-loader", "ready": false, "image": "i", "imageID": "sha256:..", "restartCount": 1,
         "state": {"running": {"startedAt": "2026-02-03T04:05:06Z"}},
         "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "message": "NotFound: a", "containerID": "c"}}}]
    }})");
}

TEST(Injected, VariablesAreWhatTheKubeletWillMakeOfThem) {
  EXPECT_EQ(LoaderVariable(Pod(), "HEADRACE_NUM_WORKERS"), "2");
  EXPECT_EQ(LoaderVariable(Pod(), "HEADRACE_WORKER_INDEX"), "1");
  EXPECT_EQ(LoaderVariable(Pod(), "AWS_SECRET_ACCESS_KEY"), "") << "no Secret is read";
  EXPECT_EQ(LoaderVariable(Pod(), "HEADRACE_NOTHING"), "");
  json alone = Pod();
  alone["spec"]["initContainers"][1]["env"][3] =
      json::parse(R"({"name": "HEADRACE_RUN_ID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}})");
  EXPECT_EQ(LoaderVariable(alone, "HEADRACE_RUN_ID"), "u1");
}

TEST(Injected, WhoItIs) {
  json pod = Pod();
  EXPECT_EQ(RunIdOf(pod), "set-1/workers/0");
  EXPECT_EQ(WorkerOf(pod), "1");
  EXPECT_EQ(RunOwnerOf(pod), "Job/train");
  pod["metadata"]["annotations"]["headrace.dev/run-owner"] = "JobSet/train/workers";
  EXPECT_EQ(RunOwnerOf(pod), "JobSet/train/workers");
  pod["spec"]["initContainers"].clear();
  EXPECT_EQ(RunIdOf(pod), "job-1");
  EXPECT_EQ(WorkerOf(pod), "pod/train-1-x");
  pod["metadata"].erase("ownerReferences");
  pod["metadata"].erase("annotations");
  EXPECT_EQ(RunIdOf(pod), "u1");
  EXPECT_EQ(RunOwnerOf(pod), "Pod/train-1-x");
}

TEST(SlimPod, KeepsWhatIsRead) {
  json pod = Pod();
  SlimPod(pod);
  const json expected = json::parse(R"({
    "apiVersion": "v1", "kind": "Pod",
    "metadata": {
      "name": "train-1-x", "namespace": "ml", "uid": "u1", "resourceVersion": "7",
      "creationTimestamp": "2026-02-03T04:05:06Z",
      "labels": {"headrace.dev/input": "clicks"},
      "annotations": {"headrace.dev/injected-plan": "h"},
      "ownerReferences": [{"kind": "Job", "name": "train", "uid": "job-1", "controller": true}]
    },
    "spec": {"initContainers": [{"name": "headrace-loader", "env": [
      {"name": "HEADRACE_WORKER_INDEX", "value": "1"},
      {"name": "HEADRACE_NUM_WORKERS", "value": "2"},
      {"name": "HEADRACE_RUN_ID", "value": "set-1/workers/0"}]}]},
    "status": {
      "phase": "Running",
      "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node"}],
      "initContainerStatuses": [
        {"name": "headrace-loader", "ready": false, "state": {"running": {}},
         "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "message": "NotFound: a"}}}]
    }})");
  EXPECT_EQ(pod, expected);
  EXPECT_EQ(WorkerOf(pod), "1") << "the label is gone, what it said is not";
  SlimPod(pod);
  EXPECT_EQ(pod, expected) << "twice is once";
}

TEST(SlimPod, KeepsWhetherThePodAsksForGpus) {
  for (const auto& [resources, asks] :
       std::initializer_list<std::pair<const char*, bool>>{{R"({"limits": {"nvidia.com/gpu": 8, "cpu": 4}})", true},
                                                           {R"({"limits": {"nvidia.com/mig-1g.10gb": "1"}})", true},
                                                           {R"({"claims": [{"name": "gpus"}]})", true},
                                                           {R"({"limits": {"cpu": 4}})", false},
                                                           {R"({"limits": 7, "claims": 7})", false}}) {
    json pod = Pod();
    pod["spec"]["containers"] = {{{"name", "log"}}, {{"name", "train"}, {"resources", json::parse(resources)}}};
    EXPECT_EQ(AsksForGpus(pod), asks) << resources;
    SlimPod(pod);
    EXPECT_EQ(AsksForGpus(pod), asks) << resources;
  }
}

TEST(SlimPod, OddPodsPass) {
  for (json odd : {json::object(), json{{"metadata", 1}, {"spec", "x"}, {"status", json::array()}},
                   json{{"metadata", {{"labels", 1}, {"ownerReferences", {1, "x"}}}}},
                   json{{"spec", {{"initContainers", "x"}}}}, json{{"spec", {{"initContainers", {1}}}}},
                   json{{"status", {{"initContainerStatuses", {{{"name", "headrace-loader"}, {"state", 1}}}}}}}}) {
    SlimPod(odd);
    EXPECT_EQ(LoaderVariable(odd, "HEADRACE_RUN_ID"), "");
  }
}

}  // namespace
}  // namespace headrace::op
