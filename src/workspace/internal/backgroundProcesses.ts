/**
 * Background processes of a workspace: at most n at once, read by offset, ended with the workspace.
 */

import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { quote } from "../../kit/text.ts"
import type { Backend } from "../WorkspaceBackend.ts"
import { WorkspaceError } from "../WorkspaceError.ts"
import * as Output from "./commandOutput.ts"
import type { ProcessOutput } from "./workspaceType.ts"

interface Running {
  readonly output: Output.Latest
  readonly scope: Scope.Closeable
  exitCode: number | undefined
}

/** The processes that a workspace has started, also the latest that have ended. */
export class BackgroundProcesses {
  readonly #spawn: NonNullable<Backend["spawn"]>
  readonly #limit: number
  readonly #scope: Scope.Scope
  readonly #all = new Map<string, Running>()
  #started = 0

  constructor(spawn: NonNullable<Backend["spawn"]>, limit: number, scope: Scope.Scope) {
    this.#spawn = spawn
    this.#limit = limit
    this.#scope = scope
  }

  start(command: string): Effect.Effect<string, WorkspaceError> {
    return Effect.uninterruptible(
      Effect.suspend(() => {
        if ([...this.#all.values()].filter(({ exitCode }) => exitCode === undefined).length >= this.#limit) {
          return Effect.fail(
            new WorkspaceError({
              reason: "busy",
              detail: `${this.#limit} processes run in the background already; stop one of them first`
            })
          )
        }
        return this.#begin(command)
      })
    )
  }

  output(id: string, offset: number): Effect.Effect<ProcessOutput, WorkspaceError> {
    return Effect.map(this.#find(id), ({ exitCode, output }) => {
      const { bytes, from } = output.after(offset)
      return { text: Output.textOf(bytes), from, next: output.end, ...(exitCode === undefined ? {} : { exitCode }) }
    })
  }

  stop(id: string): Effect.Effect<void, WorkspaceError> {
    return Effect.flatMap(this.#find(id), ({ scope }) => Scope.close(scope, Exit.void))
  }

  readonly #begin = Effect.fnUntraced(function* (this: BackgroundProcesses, command: string) {
    const scope = yield* Scope.fork(this.#scope)
    const running: Running = { output: new Output.Latest(Output.maxBytes), scope, exitCode: undefined }
    const id = `process-${++this.#started}`
    this.#forget()
    this.#all.set(id, running)
    const end = (code: number) =>
      Effect.sync(() => {
        running.exitCode ??= code
      })
    yield* Scope.addFinalizer(scope, end(stopped))
    const process = yield* this.#spawn(command).pipe(
      Scope.provide(scope),
      Effect.tapError(() =>
        Effect.andThen(
          Scope.close(scope, Exit.void),
          Effect.sync(() => this.#all.delete(id))
        )
      )
    )
    yield* Effect.forkIn(
      Effect.ignore(Stream.runForEach(process.output, (chunk) => Effect.sync(() => running.output.add(chunk)))),
      scope
    )
    yield* process.exitCode.pipe(
      Effect.orElseSucceed(() => stopped),
      Effect.flatMap(end),
      Effect.forkIn(scope)
    )
    return id
  })

  /** Forgets the oldest of many processes that have ended. */
  #forget(): void {
    const ended = [...this.#all].filter(([, { exitCode }]) => exitCode !== undefined)
    for (const [id] of ended.slice(0, Math.max(0, ended.length - maxEnded))) this.#all.delete(id)
  }

  #find(id: string): Effect.Effect<Running, WorkspaceError> {
    const running = this.#all.get(id)
    return running === undefined
      ? Effect.fail(
          new WorkspaceError({ reason: "not_found", detail: `there is no process ${quote(id.slice(0, 100))}` })
        )
      : Effect.succeed(running)
  }
}

/** Processes that have ended and whose output can still be read. */
const maxEnded = 32

/** The exit code of a process that was ended by SIGKILL. */
const stopped = 137
