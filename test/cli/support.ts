/**
 * The command line in this process, on a screen that records what is written, and in a process of its own.
 */
import { ConfigProvider, Deferred, Effect, Layer, type Scope } from "effect"
import { spawn } from "node:child_process"
import { closeSync, openSync } from "node:fs"
import { fileURLToPath } from "node:url"
import type { ChatFlags } from "../../src/cli/commands/chatFlags.ts"
import { codeOf } from "../../src/cli/exit.ts"
import { program } from "../../src/cli/rootCommand.ts"
import { Screen } from "../../src/cli/screen.ts"
import { serve } from "../support/loopback.ts"

export interface Written {
  readonly out: () => string
  readonly progress: () => string
  readonly error: () => string
  readonly layer: Layer.Layer<Screen>
}

export const memoryScreen = (colors = false, columns = 100, isTerminal = false): Written => {
  const written = { out: "", progress: "", error: "" }
  const to = (where: keyof typeof written) => (text: string) => {
    written[where] += text
  }
  return {
    out: () => written.out,
    progress: () => written.progress,
    error: () => written.error,
    layer: Layer.succeed(Screen, {
      out: to("out"),
      progress: to("progress"),
      error: to("error"),
      columns,
      colors,
      answers: { columns, colors, isTerminal }
    })
  }
}

/** The flags of a chat that has none. */
export const chatFlags: ChatFlags = {
  agent: undefined,
  model: undefined,
  script: undefined,
  mcp: undefined,
  session: "default",
  store: ".kernai/chat.db",
  create: true,
  system: undefined,
  skillsFrom: undefined,
  skills: undefined,
  code: undefined,
  workspace: undefined,
  sandbox: undefined,
  plan: undefined,
  yes: undefined,
  maxSteps: undefined,
  dialect: undefined,
  history: false,
  color: undefined
}

export interface Ended {
  /** The exit code, or the signal that ended it. */
  readonly code: number | NodeJS.Signals | null
  readonly out: string
  readonly error: string
}

/**
 * Calls `kernai` in this process: a start of its own takes far longer than most commands.
 *
 * `env` is the whole environment.
 */
export const kernai = (
  args: ReadonlyArray<string>,
  options: {
    readonly env?: { readonly [name: string]: string }
    readonly colors?: boolean
    readonly columns?: number
    readonly isTerminal?: boolean
  } = {}
): Effect.Effect<Ended & { readonly progress: string }> =>
  Effect.suspend(() => {
    const screen = memoryScreen(options.colors, options.columns, options.isTerminal)
    return program(args).pipe(
      Effect.provide(screen.layer),
      Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env: options.env ?? {} })),
      Effect.exit,
      Effect.map((exit) => ({
        code: codeOf(exit),
        out: screen.out(),
        progress: screen.progress(),
        error: screen.error()
      }))
    )
  })

/** Serves a model of Ollama, which replies to each request. */
export const ollama = (says: (body: string) => string) =>
  Effect.map(
    serve(({ body }, response) => {
      response.end(`${JSON.stringify({ message: { role: "assistant", content: says(body) }, done: true })}\n`)
    }),
    (server) => ({ asked: server.seen, env: { OLLAMA_BASE_URL: server.url() } })
  )

const bin = fileURLToPath(new URL("../../bin/kernai.mjs", import.meta.url))

/** The folder of a process, and its environment besides `PATH` and `HOME`. */
export interface Place {
  readonly cwd?: string
  readonly env?: { readonly [name: string]: string }
  /** A file for its output, instead of a pipe. */
  readonly output?: string
}

/** A process, while it runs and after. */
export interface Started {
  /** Returns the output and the errors so far. */
  readonly shown: () => string
  /** Waits for a text in the output; the process must not end without it. */
  readonly until: (text: string) => Effect.Effect<void>
  readonly type: (text: string) => void
  /** Ends its input. */
  readonly end: () => void
  readonly kill: (signal: NodeJS.Signals) => void
  readonly ended: Effect.Effect<Ended>
}

/** Starts `kernai` in a process of its own, which is killed when the test ends. */
export const start = (
  args: ReadonlyArray<string>,
  { cwd, env = {}, output }: Place = {}
): Effect.Effect<Started, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const file = output === undefined ? undefined : openSync(output, "w")
        const child = spawn(process.execPath, [bin, ...args], {
          cwd,
          env: { PATH: process.env["PATH"] ?? "", HOME: process.env["HOME"] ?? "", ...env },
          stdio: ["pipe", file ?? "pipe", "pipe"]
        })
        if (file !== undefined) closeSync(file)
        return child
      }),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    ),
    (child): Started => {
      const written = { out: "", error: "", shown: "" }
      const ended = Deferred.makeUnsafe<Ended>()
      const watchers = new Set<() => void>()
      const listen = (pipe: NodeJS.ReadableStream | null, where: "out" | "error") =>
        pipe?.setEncoding("utf8").on("data", (text: string) => {
          written[where] += text
          written.shown += text
          for (const watch of watchers) watch()
        })
      listen(child.stdout, "out")
      listen(child.stderr, "error")
      // A process that ends while it is written to breaks the pipe.
      child.stdin?.on("error", () => {})
      child.on("close", (code, signal) =>
        Deferred.doneUnsafe(ended, Effect.succeed({ code: signal ?? code, out: written.out, error: written.error }))
      )
      const appears = (text: string) =>
        Effect.callback<void>((resume) => {
          const watch = () => {
            if (written.shown.includes(text)) resume(Effect.void)
          }
          watchers.add(watch)
          watch()
          return Effect.sync(() => watchers.delete(watch))
        })
      const lacks = (text: string) =>
        Effect.flatMap(Deferred.await(ended), () => Effect.die(`it ended without '${text}': ${written.shown}`))
      return {
        shown: () => written.shown,
        until: (text) => Effect.raceFirst(appears(text), lacks(text)),
        type: (text) => void child.stdin?.write(text),
        end: () => void child.stdin?.end(),
        kill: (signal) => void child.kill(signal),
        ended: Deferred.await(ended)
      }
    }
  )

/** Calls `kernai` in a process of its own, without input, and waits for its end. */
export const call = (args: ReadonlyArray<string>, place?: Place): Effect.Effect<Ended> =>
  Effect.scoped(
    Effect.flatMap(start(args, place), (process) => {
      process.end()
      return process.ended
    })
  )
