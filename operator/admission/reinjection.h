// What another webhook may have done to a pod between two calls of ours: whether an injection is still whole, and how
// to take what is left of it out again.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace headrace::op {

// Sidecars that a loader may need before it can read (meshes, credentials, file systems). Their place stays before
// ours, and they read no batches.
bool IsEarlierSidecar(std::string_view container);

// Where our container goes among the init containers: first, but after known sidecars.
size_t LoaderPosition(const nlohmann::json& init_containers);

// Whether the pod (or template) says that it has been injected.
bool IsInjected(const nlohmann::json& pod);

// Whether it still has all of it: the loader as a native sidecar behind the sidecars that come first, its volumes and
// mounts, and a container that reads. REQUIRES: IsInjected(pod).
bool IsWhole(const nlohmann::json& pod);

// The index of a loader in a template that is not placed (World::placed): no loader runs with it.
inline constexpr char kPlaceToCome[] = "told-when-the-pod-is-made";
// Whether the loader knows its place, if there is a loader.
bool IsPlaced(const nlohmann::json& pod);

struct Stripped {
  nlohmann::json pod;    // without what Headrace adds, so that it can be injected anew
  nlohmann::json patch;  // the operations that get there
};
// Takes out what Headrace adds by its names, and nothing else. What it adds to fields of other's (a claim among a
// container's resources, the subdomain, the host name) stays: injecting finds it done.
Stripped StripInjection(const nlohmann::json& pod);

// A token of a JSON Pointer (RFC 6901).
std::string EscapePointer(std::string_view token);

}  // namespace headrace::op
