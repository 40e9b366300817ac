/**
 * Runs a command of the host with bash, in a process group of its own, and ends everything that it started.
 *
 * The script below watches its standard input, which this process keeps open: when it closes, because this process
 * ended or was killed, the script ends the group. Processes that left the group are found by a variable that all
 * descendants inherit, on systems with `/proc`.
 */

import * as Effect from "effect/Effect"
import type { PlatformError } from "effect/PlatformError"
import * as ChildProcess from "effect/process/ChildProcess"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { randomUUID } from "node:crypto"
import type { Process } from "../WorkspaceBackend.ts"
import { WorkspaceError } from "../WorkspaceError.ts"

/** How a command is started: the program that runs bash, its folder, and the whole environment. */
export interface Setting {
  readonly cwd: string
  readonly environment: { readonly [name: string]: string }
  /** Programs and options before `bash`, such as those of a sandbox. */
  readonly wrapper: ReadonlyArray<string>
  /** Processes that a command may have at once. */
  readonly maxProcesses: number
}

/** Starts a command until the scope closes. */
export const spawn = Effect.fnUntraced(function* (
  spawner: ChildProcessSpawner["Service"],
  { cwd, environment, maxProcesses, wrapper }: Setting,
  command: string
): Effect.fn.Return<Process, WorkspaceError, Scope.Scope> {
  const [program, ...args] = [...wrapper, "bash", "--norc", "-c", script, "kernai", command, String(maxProcesses)]
  const running = yield* Effect.mapError(
    spawner.spawn(
      ChildProcess.make(program ?? "bash", args, {
        cwd,
        env: { ...environment, KERNAI_COMMAND: randomUUID() },
        extendEnv: false,
        stderr: "ignore",
        detached: true,
        killSignal: "SIGTERM",
        forceKillAfter: "2 seconds"
      })
    ),
    (error) => failed(error, program ?? "bash")
  )
  return {
    output: Stream.mapError(running.stdout, (error) => failed(error, "the command")),
    // A program that is killed together with its script has no exit code.
    exitCode: Effect.orElseSucceed(running.exitCode, () => killed)
  }
})

const killed = 137

const failed = ({ reason }: PlatformError, program: string): WorkspaceError =>
  reason._tag === "NotFound"
    ? new WorkspaceError({ reason: "unavailable", detail: `commands are not available: '${program}' is not installed` })
    : new WorkspaceError({ reason: "io", detail: `${program} cannot be run: ${reason._tag}` })

/**
 * `$1` is the command, `$2` the number of processes it may have more than there were.
 *
 * `sweep` kills the processes that have the variable, except this script and its watcher. `watch` reads the lifeline,
 * which has no data: the time-outs of `read` are when it counts.
 */
const script = `
exec 3<&0 </dev/null 2>&1
self=$$
sweep() {
  local found pid round
  for round in 1 2 3 4 5 6 7 8 9 10; do
    found=0
    for file in $(grep -lsazF -- "KERNAI_COMMAND=$KERNAI_COMMAND" /proc/[0-9]*/environ 2>/dev/null); do
      pid=\${file#/proc/}; pid=\${pid%/environ}
      if [ "$pid" != "$self" ] && [ "$pid" != "$watcher" ] && [ "$pid" != "$BASHPID" ]; then
        kill -KILL "$pid" 2>/dev/null && found=1
      fi
    done
    [ $found = 0 ] && return
  done
}
leave() { { kill -KILL $watcher; wait; } 2>/dev/null; exit "$1"; }
finish() {
  sweep
  [ -d /proc/self ] && [ "$BASHPID" = "$self" ] && leave 143
  kill -KILL 0
}
watch() {
  trap '' TERM INT HUP
  exec >/dev/null 2>&1
  local tick=0.2 before
  [ "\${BASH_VERSINFO[0]}" -lt 4 ] && tick=1
  set -- "$1" /proc/[0-9]*
  before=$#
  while :; do
    read -r -t $tick _ <&3
    [ $? -gt 128 ] || finish
    set -- "$1" /proc/[0-9]*
    [ $(($# - before)) -gt "$1" ] && finish
  done
}
watcher=
watch "$2" &
watcher=$!
exec 3<&-
trap finish TERM INT HUP
bash --norc -c "$1" &
wait $!
code=$?
trap '' TERM INT HUP
sweep
leave $code
`
