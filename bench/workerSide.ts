/**
 * A worker as a process of its own, and what both sides of the benchmark of workers share.
 *
 * Its one argument names a store. It prints `ready` when it works, and ends with its input.
 */
import { Effect, Layer, Logger, Redacted, Stream } from "effect"
import { layer as layerFiles } from "@effect/platform-node/NodeFileSystem"
import * as Agent from "../dist/Agent.js"
import * as FileRunStore from "../dist/file/FileRunStore.js"
import * as Kernel from "../dist/Kernel.js"
import * as MediaStore from "../dist/MediaStore.js"
import * as ProtocolRegistry from "../dist/ProtocolRegistry.js"
import * as Provider from "../dist/Provider.js"
import * as RunStore from "../dist/RunStore.js"
import * as RunWorker from "../dist/RunWorker.js"
import * as SkillRegistry from "../dist/SkillRegistry.js"
import * as PgRunStore from "../dist/sql/PgRunStore.js"
import * as SqlRunStore from "../dist/sql/SqlRunStore.js"
import * as StreamPart from "../dist/StreamPart.js"

export const agent = Agent.make({ name: "clerk", instructions: "", model: "scripted" })

/** An agent that no worker here has. */
export const foreign = Agent.make({ name: "nobody", instructions: "", model: "scripted" })

export const stores = ["memory", "file", "sqlite", "postgres"] as const

/** A store, and where it is. */
export interface Place {
  readonly kind: (typeof stores)[number]
  readonly at: string
}

export const storeAt = ({ at, kind }: Place) => {
  const pollInterval = "20 millis"
  switch (kind) {
    case "memory":
      return RunStore.layerMemory
    case "file":
      return Layer.provide(FileRunStore.layer(at, { pollInterval }), layerFiles)
    case "sqlite":
      return SqlRunStore.layerSqlite({ filename: at, pollInterval })
    case "postgres":
      return PgRunStore.layer({ url: Redacted.make(at) })
  }
}

/** A model that answers after so many milliseconds. */
const provider = (wait: number): Provider.ProviderShape => ({
  name: "scripted",
  stream: () =>
    Stream.onStart(
      Stream.fromArray([StreamPart.text("done"), StreamPart.finish()]),
      wait > 0 ? Effect.sleep(wait) : Effect.void
    )
})

/** A kernel on a store that is there. */
export const kernelOn = (wait: number) =>
  Kernel.layer.pipe(
    Layer.provide([
      SkillRegistry.layer(),
      ProtocolRegistry.layer(),
      MediaStore.layerMemory,
      Layer.succeed(Provider.Provider, provider(wait))
    ])
  )

export const quiet = Logger.layer([])

export const working = (concurrency: number) =>
  RunWorker.run({ agents: [agent], concurrency, onRun: () => Effect.void })

if (import.meta.filename === process.argv[1]) {
  const { concurrency, place, wait }: { concurrency: number; place: Place; wait: number } = JSON.parse(
    process.argv[2] ?? "{}"
  )
  const main = Effect.gen(function* () {
    yield* Effect.forkChild(working(concurrency))
    yield* Effect.sleep(500)
    yield* Effect.sync(() => process.stdout.write("ready\n"))
    yield* Effect.never
  })
  const fiber = Effect.runFork(Effect.provide(main, [Layer.provideMerge(kernelOn(wait), storeAt(place)), quiet]))
  process.stdin.on("close", () => process.exit(0)).resume()
  fiber.addObserver(() => process.exit(1))
}
