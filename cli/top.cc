#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/scrape.h"
#include "cli/top_print.h"
#include "common/spec/names.h"

namespace headrace::cli {
namespace {

constexpr Flag kFlags[] = {
    {"dir", "DIR", "read the loaders of this run directory (HEADRACE_DIR) on this machine", 'd'},
    {"once", "", "print the table of one second and end"},
};

constexpr std::string_view kHelp =
    R"(Shows, once a second, what loaders do and who waits for whom: for each worker and replica the
records and megabytes (10^6 bytes) a second, the batches that lie in the ring and its slots, how
much of its time the trainer waits for a batch, and how busy the loader's stages are. A stage is
`read` (one thread that reads, shuffles and batches) or `decode` (threads that write batches into
the rings, as many as the loader has CPUs while a trainer waits). The sentence below each worker
says which of storage, read, decode and trainer is the limit.

LOADER is HOST, HOST:PORT (default port 9464) or the URL of a loader's /metrics; several are a run.
Without any, the loader of $HEADRACE_DIR is shown, or the newest `headrace run` of this machine.

On a cluster, from where pods can be reached:
  headrace top $(kubectl get pods -l headrace.dev/input=clicks -o jsonpath='{.items[*].status.podIP}')
and from elsewhere, one worker:
  kubectl port-forward POD 9464 &
  headrace top localhost

Other examples:
  headrace top                              what `headrace run` is doing in another terminal
  headrace top --once localhost | tail -1   who waits for whom, for a script
)";

constexpr int kIntervalMs = 1000;
// To the first line, and from there on what is left of the screen is cleared: no flicker.
constexpr char kHome[] = "\x1b[H";
constexpr char kClearBelow[] = "\x1b[J";
constexpr char kClearLine[] = "\x1b[K";
// A screen of its own, without a cursor; and back.
constexpr char kEnter[] = "\x1b[?1049h\x1b[?25l";
constexpr char kLeave[] = "\x1b[?25h\x1b[?1049l";

Result<std::vector<MetricsAddress>> FindLoaders(const CommandLine& line) {
  const std::optional<std::string> directory = line.Text("dir");
  if (directory && !line.positional().empty()) {
    return InvalidArgument("--dir " + *directory + " and addresses: give one or the other");
  }
  if (directory) return LoadersOf(*directory);
  std::vector<MetricsAddress> loaders;
  for (const std::string& text : line.positional()) {
    ASSIGN_OR_RETURN(MetricsAddress address, ParseMetricsAddress(text));
    loaders.push_back(std::move(address));
  }
  if (!loaders.empty()) return loaders;
  if (const char* own = std::getenv(names::kEnvDir)) return LoadersOf(own);
  const std::vector<std::string> runs = LocalRuns();
  if (runs.empty()) {
    return NotFound(
        "no loader is named, and no `headrace run` is under way on this machine; give the address of a pod or "
        "--dir; `headrace top --help` shows how on a cluster");
  }
  return LoadersOf(runs[0]);
}

// For kIntervalMs, or until an interrupt.
void Pause() {
  const timespec interval{kIntervalMs / 1000, kIntervalMs % 1000 * 1000000L};
  nanosleep(&interval, nullptr);
}

std::vector<LoaderView> Views(const std::vector<MetricsAddress>& loaders, const std::vector<Scrape>& before,
                              const std::vector<Scrape>& after) {
  std::vector<LoaderView> views;
  for (size_t i = 0; i < loaders.size(); ++i) {
    LoaderView& view = views.emplace_back();
    view.name = loaders[i].name;
    view.status = after[i].status;
    if (view.status.ok() && !before[i].status.ok()) view.status = Unavailable("it has just come");
    if (!view.status.ok()) continue;
    const double seconds = std::chrono::duration<double>(after[i].time - before[i].time).count();
    view.rates = RatesBetween(before[i].sample, after[i].sample, seconds);
  }
  return views;
}

std::string Title(const std::vector<Scrape>& scrapes) {
  for (const Scrape& scrape : scrapes) {
    if (!scrape.status.ok()) continue;
    char epoch[64];
    std::snprintf(epoch, sizeof epoch, ", epoch %.0f", scrape.sample.epoch);
    std::string title = scrape.sample.input + epoch;
    for (char& c : title) c = c < ' ' || c > '~' ? '?' : c;
    return title + "\n";
  }
  return "\n";
}

// The text over what the screen showed before.
std::string OverScreen(const std::string& text) {
  std::string out = kHome;
  for (const char c : text) out += c == '\n' ? std::string(kClearLine) + "\n" : std::string(1, c);
  return out + kClearBelow;
}

Status Watch(const CommandLine& line) {
  ASSIGN_OR_RETURN(const std::vector<MetricsAddress> loaders, FindLoaders(line));
  std::vector<Scrape> before = ScrapeAll(loaders);
  // With none that can be asked there is nothing to be watched; one that goes later may come back.
  bool any = false;
  for (const Scrape& scrape : before) any = any || scrape.status.ok();
  if (!any) return before[0].status;
  CatchInterrupts();
  const bool once = line.Has("once");
  const bool screen = !once && isatty(STDOUT_FILENO) != 0;
  if (screen) std::fputs(kEnter, stdout);
  while (Interrupted() == 0 && std::ferror(stdout) == 0) {
    Pause();
    if (Interrupted() != 0) break;
    std::vector<Scrape> after = ScrapeAll(loaders);
    const std::string text = Title(after) + PrintTop(Views(loaders, before, after));
    std::fputs(screen ? OverScreen(text).c_str() : text.c_str(), stdout);
    std::fflush(stdout);
    if (once) break;
    before = std::move(after);
  }
  if (screen) std::fputs(kLeave, stdout);
  return {};
}

int Top(const CommandLine& line) {
  const Status status = Watch(line);
  return status.ok() ? 0 : Fail(status);
}

}  // namespace

const Command kTopCommand = {"top",
                             "watch running loaders: how fast they are, and who waits for whom",
                             "[LOADER... | --dir DIR] [--once]",
                             kHelp,
                             kFlags,
                             Top};

}  // namespace headrace::cli
