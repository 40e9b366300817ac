/**
 * Runs a server as a child process: newline-delimited JSON-RPC on its standard streams. The process leads a group of
 * its own, and all processes of the group end within `Limits.cleanUpTimeout` after the scope closes.
 */

import type { McpClientError } from "effect/ai/McpClientError"
import type * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as ChildProcess from "effect/process/ChildProcess"
import { type ChildProcessHandle, ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Bounds from "../../kit/bounds.ts"
import { visible } from "../../kit/text.ts"
import { Limits } from "../../Limits.ts"
import type { StdioServer } from "../McpConfig.ts"
import * as JsonRpc from "./jsonRpc.ts"
import { networkVariables } from "./serverEntry.ts"

/** Receives a function when a server starts, which returns its last error output as the end of a sentence, or "". */
export type OnErrorOutput = (last: () => string) => void

/** Starts a server until the scope closes. */
export const open = Effect.fnUntraced(function* (
  server: StdioServer,
  receivers: JsonRpc.Receivers,
  onErrorOutput: OnErrorOutput
): Effect.fn.Return<JsonRpc.Line, McpClientError, ChildProcessSpawner | Scope.Scope> {
  const limits = yield* Limits
  // Most servers exit by themselves when their input ends; the rest of the time is for the others.
  const grace = Duration.times(limits.cleanUpTimeout, 1 / 5)
  const spawner = yield* ChildProcessSpawner
  const process = yield* Effect.mapError(
    spawner.spawn(command(server, Duration.subtract(limits.cleanUpTimeout, grace))),
    (error) =>
      // The platform's message would show the whole command line.
      JsonRpc.lost(`'${server.written.command}' cannot be started (${error.reason._tag})`)
  )

  const outbox = yield* Queue.bounded<string, Cause.Done>(64)
  const line = JsonRpc.make({
    send: (text) =>
      Effect.flatMap(Queue.offer(outbox, `${text}\n`), (isTaken) =>
        isTaken ? Effect.void : Effect.fail(JsonRpc.notSent)
      ),
    receivers,
    limits,
    // Servers that print to their standard output by mistake are common, and harmless.
    hasLogs: true
  })
  // Messages in the outbox fail as not sent, before sent ones fail as lost.
  const close = (error: McpClientError) => Effect.andThen(Queue.shutdown(outbox), line.close(error))

  yield* Stream.fromQueue(outbox).pipe(
    Stream.encodeText,
    Stream.run(process.stdin),
    // Usually the process is about to exit, and its exit code is more informative.
    Effect.catch(() =>
      Effect.andThen(
        Effect.andThen(line.refuse, Queue.shutdown(outbox)),
        Effect.delay(close(JsonRpc.lost("the server closed its input")), grace)
      )
    ),
    Effect.forkScoped
  )
  const complaints = openComplaints()
  onErrorOutput(complaints.last)
  yield* follow(process, { ...line, close }, complaints, grace)
  yield* Effect.addFinalizer(() =>
    line
      .close(JsonRpc.lost("the connection was closed"))
      .pipe(
        Effect.andThen(Queue.end(outbox)),
        Effect.andThen(Effect.timeoutOption(Effect.ignore(process.exitCode), grace))
      )
  )
  const isRunning = Effect.orElseSucceed(process.isRunning, () => false)
  return { ...line, isOpen: Effect.flatMap(isRunning, (running) => (running ? line.isOpen : Effect.succeed(false))) }
})

const command = (server: StdioServer, forceKillAfter: Duration.Duration) => {
  const { env, platform } = globalThis.process
  const names = ["PATH", "HOME", "LANG", ...(server.inheritNetwork ? networkVariables : [])]
  const inherited = names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]]))
  return ChildProcess.make(server.command, [...server.args], {
    env: { ...Object.fromEntries(inherited), ...server.env },
    extendEnv: false,
    shell: false,
    detached: platform !== "win32",
    cwd: server.cwd,
    killSignal: "SIGTERM",
    forceKillAfter
  })
}

/** Reads the output of the process, and closes the line when the process ends. */
const follow = Effect.fnUntraced(function* (
  process: ChildProcessHandle,
  line: JsonRpc.Line,
  complaints: ReturnType<typeof openComplaints>,
  grace: Duration.Duration
) {
  const drained = yield* Deferred.make<void>()
  const complained = yield* process.stderr.pipe(
    Stream.decodeText(),
    Stream.runForEach((chunk) => Effect.sync(() => complaints.add(chunk))),
    Effect.ignore,
    Effect.forkScoped
  )
  yield* process.stdout.pipe(
    Stream.decodeText(),
    Stream.runForEach(receiver(line)),
    Effect.catch((error) =>
      line.close(error._tag === "McpClientError" ? error : JsonRpc.lost("the server's output cannot be read"))
    ),
    Effect.ensuring(Effect.andThen(line.refuse, Deferred.succeed(drained, undefined))),
    Effect.forkScoped
  )
  const exited = process.exitCode.pipe(
    Effect.map((code) => `the server exited with code ${code}`),
    Effect.orElseSucceed(() => "the server was killed")
  )
  const read = Effect.andThen(Fiber.await(complained), Deferred.await(drained))
  // Output before the exit is read before requests fail, unless a grandchild holds the pipe open.
  yield* Effect.raceFirst(Deferred.await(drained), Effect.asVoid(exited)).pipe(
    Effect.andThen(Effect.timeoutOption(exited, grace)),
    Effect.tap((exit) => (Option.isSome(exit) ? Effect.timeoutOption(read, grace) : Effect.void)),
    Effect.map(Option.getOrElse(() => "the server closed its output")),
    Effect.flatMap((description) => line.close(JsonRpc.lost(`${description}${complaints.last()}`))),
    Effect.forkScoped
  )
})

/** Passes on whole lines, and holds back the start of the next one. After invalid output no further request is sent. */
const receiver = ({ receive, refuse }: JsonRpc.Line) => {
  let held = ""
  return Effect.fnUntraced(function* (chunk: string) {
    held += chunk
    if (chunk.includes("\n")) {
      const lines = held.split("\n")
      held = lines.pop() ?? ""
      yield* JsonRpc.eachOf(lines, (line) => Effect.tapError(receive(line), () => refuse))
    }
    if (held.length > Bounds.frameLength) return yield* JsonRpc.frameTooLong
  })
}

/** Keeps the end of a server's error stream, which usually shows why it ended. */
const openComplaints = () => {
  let text = ""
  let isCut = false
  const add = (chunk: string): void => {
    isCut ||= text.length + chunk.length > 4096
    text = `${text}${chunk}`.slice(-4096)
  }
  const last = (): string => {
    // A word that is cut might be half of a secret, which would not be masked.
    const lines = (isCut ? text.replace(/^\S+/, "") : text).split("\n").filter((line) => line.trim() !== "")
    // The last line of a stack trace is the least informative.
    const line = lines.find((line) => /error|cannot|not found|no such/i.test(line)) ?? lines.at(-1)
    if (line === undefined) return ""
    const shown = visible(line.trim())
    return `; it wrote: ${shown.length > 300 ? `${shown.slice(0, 300).replace(/\S+$/, "")}…` : shown}`
  }
  return { add, last }
}
