// SPDX-License-Identifier: BSD-3-Clause
// Programs started by posix_spawn().
#include "platform/child.h"

#include "platform/posix/descriptor.h"

#include <cerrno>
#include <csignal>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <utility>

extern char** environ;

namespace openreg::platform {

Result Child::start(
    const std::vector<std::string>& arguments,
    const Channel& channel,
    Child& child) {
  std::vector<std::string> words = arguments;
  words.push_back("--socket");
  words.push_back("3");
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, descriptor_of(channel), 3);
  // A separate session, so that signals from the terminal do not reach it.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  pid_t pid = 0;
  const int error = posix_spawnp(
      &pid, pointers[0], &actions, &attributes, pointers.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  child.process_ = pid;
  return Result(error);
}

std::string Child::wait() const {
  int status = 0;
  pid_t ended = 0;
  do {
    ended = waitpid(static_cast<pid_t>(process_), &status, 0);
  } while (ended < 0 && errno == EINTR);
  if (ended < 0) {
    return ", and the program has waited for it";
  }
  return WIFSIGNALED(status)
      ? " by " + signal_text(WTERMSIG(status))
      : " with status " + std::to_string(WEXITSTATUS(status));
}

std::string signal_text(int number) {
  // sigabbrev_np() needs glibc 2.32.
  static constexpr std::pair<int, const char*> kNames[] = {
      {SIGABRT, "SIGABRT"},    {SIGALRM, "SIGALRM"}, {SIGBUS, "SIGBUS"},
      {SIGFPE, "SIGFPE"},      {SIGHUP, "SIGHUP"},   {SIGILL, "SIGILL"},
      {SIGINT, "SIGINT"},      {SIGIO, "SIGIO"},     {SIGKILL, "SIGKILL"},
      {SIGPIPE, "SIGPIPE"},    {SIGPROF, "SIGPROF"}, {SIGQUIT, "SIGQUIT"},
      {SIGSEGV, "SIGSEGV"},    {SIGSTOP, "SIGSTOP"}, {SIGSYS, "SIGSYS"},
      {SIGTERM, "SIGTERM"},    {SIGTRAP, "SIGTRAP"}, {SIGTSTP, "SIGTSTP"},
      {SIGTTIN, "SIGTTIN"},    {SIGTTOU, "SIGTTOU"}, {SIGUSR1, "SIGUSR1"},
      {SIGUSR2, "SIGUSR2"},    {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"},
      {SIGVTALRM, "SIGVTALRM"}};
  std::string text = "signal " + std::to_string(number);
  for (const auto& [signal, name] : kNames) {
    if (signal == number) {
      text.append(" (").append(name).append(")");
    }
  }
  return text;
}

} // namespace openreg::platform
