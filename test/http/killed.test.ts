/** A server that is killed in the middle of a reply, and started again. */
import { Chat } from "@ai-sdk/react"
import { assert, describe, it } from "@effect/vitest"
import { DefaultChatTransport } from "ai"
import { Effect, Fiber, Option, Schedule, Stream } from "effect"
import type { Scope } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { clientOf } from "../support/http.ts"
import { folder } from "../support/folder.ts"
import { until } from "../support/until.ts"

interface Served {
  readonly port: number
  readonly url: string
  /** Kills the process at once, and waits until it is gone. */
  readonly kill: Effect.Effect<void>
}

const gone = (child: ChildProcess): Effect.Effect<void> =>
  Effect.promise(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exit = once(child, "exit")
    child.kill("SIGKILL")
    await exit
  })

/** Starts the server, and waits until it listens. */
const started = (
  file: string,
  port: number,
  ...rest: ReadonlyArray<string>
): Effect.Effect<Served, never, Scope.Scope> =>
  Effect.gen(function* () {
    const args = ["--conditions=kernai-source", "test/support/httpServer.ts", file, String(port), ...rest]
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] })
    yield* Effect.addFinalizer(() => gone(child))
    const line = yield* Effect.promise(async () => String((await once(child.stdout, "data"))[0]))
    const own = Number(/listening on (\d+)/.exec(line)?.[1])
    return { port: own, url: `http://127.0.0.1:${own}`, kill: gone(child) }
  })

describe("a server killed in the middle of a reply", () => {
  it.live("is continued after its restart, for the typed client and for useChat", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "runs.db")
      const first = yield* started(file, 0)
      const client = yield* clientOf(first.url, { reconnect: Schedule.spaced("100 millis") })
      const transport = new DefaultChatTransport({ api: `${first.url}/api/chat` })
      const chat = new Chat({ id: "chat1", transport })
      const textOf = () => chat.lastMessage?.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("")
      const sending = chat.sendMessage({ text: "Speak." })
      yield* until(() => textOf() === "Hello, ")
      const [run] = (yield* client.list()).runs
      const runId = run?.runId ?? ""
      let heard = ""
      const following = yield* client.follow(runId, { until: "end" }).pipe(
        Stream.tap((event) =>
          Effect.sync(() => {
            if (event.type === "text_chunk") heard += event.text
            if (event.type === "model_restarted") heard = ""
          })
        ),
        Stream.runLast,
        Effect.forkChild
      )
      yield* until(() => heard === "Hello, ")

      yield* first.kill
      yield* Effect.promise(() => sending)
      assert.strictEqual(chat.status, "error")
      yield* started(file, first.port, "world.")

      const last = yield* Fiber.join(following)
      assert.deepInclude(Option.getOrUndefined(last), { type: "run_completed" })
      assert.strictEqual((yield* client.result(runId)).text, "Hello, world.")
      if (heard !== "") assert.strictEqual(heard, "Hello, world.")
      yield* Effect.promise(() => chat.resumeStream())
      assert.strictEqual(chat.status, "ready")
      assert.strictEqual(chat.messages.length, 2)
      assert.strictEqual(textOf(), "Hello, world.")
    }).pipe(Effect.scoped)
  )
})
