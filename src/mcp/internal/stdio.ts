/**
 * A server as a child process: newline-delimited JSON-RPC on its standard streams.
 *
 * The process leads a group of its own. When the scope closes, its input is
 * closed, then the group is asked to end, then killed: after
 * `Limits.cleanUpTimeout` neither it nor a grandchild is left (R-15). It sees the
 * variables it was given, and PATH, HOME and LANG (S-1).
 */

import type { McpClientError } from "effect/ai/McpClientError"
import type * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as ChildProcess from "effect/process/ChildProcess"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Queue from "effect/Queue"
import type * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Bounds from "../../internal/base/bounds.ts"
import { visible } from "../../internal/base/text.ts"
import { Limits } from "../../Limits.ts"
import type { StdioServer } from "../McpConfig.ts"
import * as Exchange from "./jsonRpc.ts"

/** Starts a server for the time of the scope. */
export const open = Effect.fnUntraced(function* (
  server: StdioServer,
  listener: Exchange.Listener
): Effect.fn.Return<Exchange.Exchange, McpClientError, ChildProcessSpawner | Scope.Scope> {
  const limits = yield* Limits
  // Most servers end by themselves when their input does; the rest of the time is for those that do not.
  const grace = Duration.times(limits.cleanUpTimeout, 1 / 5)
  const spawner = yield* ChildProcessSpawner
  const process = yield* spawner.spawn(command(server, Duration.subtract(limits.cleanUpTimeout, grace))).pipe(
    // The platform's message shows the command line; its kind says enough.
    Effect.mapError((error) =>
      Exchange.lost(`'${(server.written ?? server).command}' cannot be started (${error.reason._tag})`)
    )
  )

  const outbox = yield* Queue.bounded<string, Cause.Done>(64)
  const line = Exchange.make({
    send: (text) =>
      Effect.flatMap(Queue.offer(outbox, `${text}\n`), (isTaken) =>
        isTaken ? Effect.void : Effect.fail(Exchange.notSent)
      ),
    listener,
    limits,
    // Servers that print to their standard output by mistake are common, and harmless.
    hasLogs: true
  })
  // Nobody takes in what waits for its turn: it is told so before what was sent is told anything.
  const giveUp = Queue.shutdown(outbox)
  const close = (error: McpClientError) => Effect.andThen(giveUp, line.close(error))
  const drained = yield* Deferred.make<void>()

  yield* Stream.fromQueue(outbox).pipe(
    Stream.encodeText,
    Stream.run(process.stdin),
    // Most often it is about to end, and the end says more.
    Effect.catch(() =>
      Effect.all([line.refuse, giveUp, Effect.delay(close(Exchange.lost("the server closed its input")), grace)], {
        discard: true
      })
    ),
    Effect.forkScoped
  )
  const complaints = new Complaints()
  const complained = yield* process.stderr.pipe(
    Stream.decodeText(),
    Stream.runForEach((chunk) => Effect.sync(() => complaints.hear(chunk))),
    Effect.ignore,
    Effect.forkScoped
  )
  const splitter = new Splitter(Bounds.frameLength)
  yield* process.stdout.pipe(
    Stream.decodeText(),
    Stream.runForEach((chunk) => receive(line, splitter, chunk)),
    Effect.catch((error) =>
      close(error._tag === "McpClientError" ? error : Exchange.lost("the server's output cannot be read"))
    ),
    Effect.ensuring(Effect.andThen(line.refuse, Deferred.succeed(drained, undefined))),
    Effect.forkScoped
  )
  const exited = process.exitCode.pipe(
    Effect.map((code) => `the server exited with code ${code}`),
    Effect.orElseSucceed(() => "the server was killed")
  )
  const told = Effect.andThen(Fiber.await(complained), Deferred.await(drained))
  // What was written just before the exit is read before requests fail, unless a grandchild holds the pipe.
  yield* Effect.raceFirst(Deferred.await(drained), Effect.asVoid(exited)).pipe(
    Effect.andThen(Effect.timeoutOption(exited, grace)),
    Effect.tap((exit) => (Option.isSome(exit) ? Effect.timeoutOption(told, grace) : Effect.void)),
    Effect.map(Option.getOrElse(() => "the server closed its output")),
    Effect.flatMap((description) => close(Exchange.lost(`${description}${complaints.last}`))),
    Effect.forkScoped
  )

  yield* Effect.addFinalizer(() =>
    line
      .close(Exchange.lost("the connection was closed"))
      .pipe(Effect.andThen(Queue.end(outbox)), Effect.andThen(Effect.timeoutOption(exited, grace)))
  )
  const isRunning = Effect.orElseSucceed(process.isRunning, () => false)
  return { ...line, isOpen: Effect.flatMap(isRunning, (running) => (running ? line.isOpen : Effect.succeed(false))) }
})

const inherited = ["PATH", "HOME", "LANG"] as const

const command = (server: StdioServer, forceKillAfter: Duration.Duration) => {
  const env: Record<string, string | Redacted.Redacted<string>> = {}
  for (const name of inherited) {
    const value = globalThis.process.env[name]
    if (value !== undefined) env[name] = value
  }
  for (const [name, value] of server.env) env[name] = value
  return ChildProcess.make(server.command, [...server.args], {
    env,
    extendEnv: false,
    shell: false,
    detached: globalThis.process.platform !== "win32",
    cwd: server.cwd,
    killSignal: "SIGTERM",
    forceKillAfter
  })
}

const receive = Effect.fnUntraced(function* (line: Exchange.Exchange, splitter: Splitter, chunk: string) {
  for (const text of splitter.push(chunk)) yield* line.receive(text)
  if (splitter.isOverfull) return yield* Exchange.tooLarge(splitter.limit)
})

/** What a server wrote to its error stream at last: why it ended, most likely. */
class Complaints {
  private heard = ""
  private isCut = false

  hear(chunk: string): void {
    const heard = `${this.heard}${chunk}`
    this.isCut ||= heard.length > 4096
    this.heard = heard.slice(-4096)
  }

  get last(): string {
    // No word is told in part: nobody would know half a secret for one.
    const heard = this.isCut ? this.heard.replace(/^\S+/, "") : this.heard
    const lines = heard.split("\n").filter((line) => line.trim() !== "")
    // A stack trace ends with what says least.
    const line = lines.find((line) => /error|cannot|not found|no such/i.test(line)) ?? lines.at(-1)
    if (line === undefined) return ""
    const told = visible(line.trim())
    return `; it wrote: ${told.length > 300 ? `${told.slice(0, 300).replace(/\S+$/, "")}…` : told}`
  }
}

/** Cuts text into lines, holding back the last one. */
class Splitter {
  readonly limit: number
  private held: Array<string> = []
  private size = 0

  constructor(limit: number) {
    this.limit = limit
  }

  get isOverfull(): boolean {
    return this.size > this.limit
  }

  push(chunk: string): ReadonlyArray<string> {
    const lines: Array<string> = []
    let start = 0
    for (let end = chunk.indexOf("\n"); end !== -1; end = chunk.indexOf("\n", start)) {
      this.held.push(chunk.slice(start, end))
      lines.push(this.held.join(""))
      this.held = []
      this.size = 0
      start = end + 1
    }
    if (start < chunk.length) {
      this.held.push(chunk.slice(start))
      this.size += chunk.length - start
    }
    return lines
  }
}
