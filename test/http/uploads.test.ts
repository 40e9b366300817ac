/** Media that callers upload: how many bytes a server receives and keeps. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, Redacted } from "effect"
import { Agent, Kernel, MediaStore, ProtocolRegistry, RunStore, SkillRegistry } from "kernai"
import { Access, HttpKernel } from "kernai/http"
import { FileMediaStore } from "kernai/file"
import { NodeServices } from "@effect/platform-node"
import { MockProvider } from "kernai/testing"
import { final } from "../support/blocks.ts"
import { folder } from "../support/folder.ts"
import { until } from "../support/until.ts"

const agent = Agent.make({ name: "clerk", instructions: "", model: "scripted" })

/** A server on a media store, whose scopes that hold media of a run are counted. */
const serving = Effect.fnUntraced(function* (media: MediaStore.MediaStoreShape, limits: object = {}) {
  const held = { runs: 0 }
  const counted: MediaStore.MediaStoreShape = {
    ...media,
    run: (...of) =>
      Effect.andThen(
        Effect.acquireRelease(
          Effect.sync(() => held.runs++),
          () => Effect.sync(() => held.runs--)
        ),
        media.run(...of)
      )
  }
  const KernelLive = Kernel.layer.pipe(
    Layer.provide([
      MockProvider.layerOf(MockProvider.make().onCall(() => final("Read."))),
      SkillRegistry.layer(),
      ProtocolRegistry.layer()
    ]),
    Layer.provideMerge([RunStore.layerMemory, Layer.succeed(MediaStore.MediaStore, counted)])
  )
  const access = Access.bearer((token) => Effect.succeed(Option.some({ id: Redacted.value(token) })))
  const { dispose, handler } = HttpKernel.toWebHandler(
    Layer.provide(HttpKernel.layer({ agents: [agent], limits }), [KernelLive, access])
  )
  yield* Effect.addFinalizer(() => Effect.promise(dispose))
  const send = (caller: string, path: string, init: RequestInit = {}) =>
    Effect.promise(() =>
      handler(
        new Request(`http://localhost${path}`, {
          method: "POST",
          ...init,
          headers: { authorization: `Bearer ${caller}`, "content-type": "application/json", ...init.headers }
        })
      )
    )
  return { held, send }
})

const memory = Effect.flatMap(Layer.build(MediaStore.layerMemory), (built) =>
  Effect.provideContext(MediaStore.MediaStore, built)
)

const onDisk = Effect.flatMap(folder, (path) =>
  Effect.map(Layer.build(Layer.provide(FileMediaStore.layer(path), NodeServices.layer)), (built) =>
    Effect.provideContext(MediaStore.MediaStore, built)
  )
).pipe(Effect.flatten)

const pdf = { "content-type": "application/pdf" }

describe("an HTTP server", () => {
  it.live("keeps nothing for a run without uploads once it has ended", () =>
    Effect.gen(function* () {
      const { held, send } = yield* serving(yield* memory)
      yield* send("ada", "/runs", { body: JSON.stringify({ input: "Read.", runId: "r" }) })
      const events = yield* send("ada", "/runs/r/events", { method: "GET" })
      assert.include(yield* Effect.promise(() => events.text()), "run_completed")
      yield* until(() => held.runs === 0)
    }).pipe(Effect.scoped)
  )

  it.live("keeps an uploaded medium in the media store, and holds it only for a store in memory", () =>
    Effect.gen(function* () {
      for (const [store, holders] of [
        [yield* memory, 1],
        [yield* onDisk, 0]
      ] as const) {
        const { held, send } = yield* serving(store)
        const stored = yield* send("ada", "/runs/r/media", { headers: pdf, body: "%PDF-1.4 letter" })
        const { id } = JSON.parse(yield* Effect.promise(() => stored.text()))
        yield* until(() => held.runs === holders)
        const read = yield* Effect.scoped(Effect.flatMap(store.run("ada~r"), (media) => media.bytes(id)))
        assert.strictEqual(new TextDecoder().decode(read), "%PDF-1.4 letter")
      }
    }).pipe(Effect.scoped)
  )

  it.live("receives a bounded number of bytes at once, at most half of them from one caller, and others wait", () =>
    Effect.gen(function* () {
      const { send } = yield* serving(yield* memory, { receivedBytes: 100 })
      const read: Array<string> = []
      const ends: Array<() => void> = []
      /** Begins an upload whose body ends when the test says so. */
      const upload = (caller: string, bytes: number) =>
        Effect.forkChild(
          send(caller, "/runs/r/media", {
            headers: { ...pdf, "content-length": String(bytes) },
            body: new ReadableStream<Uint8Array>(
              {
                pull: (controller) =>
                  new Promise<void>((resolve) => {
                    read.push(caller)
                    ends.push(() => {
                      controller.enqueue(new Uint8Array(bytes).fill(ends.length))
                      controller.close()
                      resolve()
                    })
                  })
              },
              { highWaterMark: 0 }
            ),
            duplex: "half"
          } as RequestInit)
        )
      yield* upload("hog", 50)
      yield* until(() => read.length === 1)
      yield* upload("hog", 50)
      yield* Effect.sleep("20 millis")
      assert.deepStrictEqual(read, ["hog"])
      yield* upload("ada", 50)
      yield* until(() => read.length === 2)
      yield* upload("bo", 10)
      yield* Effect.sleep("20 millis")
      assert.deepStrictEqual(read, ["hog", "ada"])
      ends.shift()?.()
      yield* until(() => read.length === 3)
      ends.shift()?.()
      yield* until(() => read.length === 4)
      assert.deepStrictEqual(read, ["hog", "ada", "hog", "bo"])
      for (const end of ends) end()
    }).pipe(Effect.scoped)
  )
})
