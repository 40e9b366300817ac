/**
 * Stores the accepted definition of each tool as a hash, taken when the tool is first seen. A tool whose definition
 * changes later is hidden until a person approves it.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Path from "effect/Path"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import * as Read from "../kit/files.ts"
import { ConfigInvalid } from "../KernelError.ts"
import { Limits } from "../Limits.ts"
import { replaceFile } from "./internal/replaceFile.ts"

/**
 * The hashes of one server's tools by name.
 *
 * @category models
 * @since 0.1.0
 */
export type Pins = ReadonlyMap<string, string>

/**
 * Stores pins by the name of their server.
 *
 * @category services
 * @since 0.1.0
 */
export class ToolPins extends Context.Service<
  ToolPins,
  {
    readonly load: (server: string) => Effect.Effect<Pins>
    /**
     * Adds pins, or replaces those of the same tools. A failure to store them is logged, and the pins apply to this
     * process only.
     */
    readonly save: (server: string, pins: Pins) => Effect.Effect<void>
  }
>()("kernai/mcp/ToolPins") {}

/**
 * Keeps pins in memory, so that only changes during this process are noticed.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<ToolPins> = Layer.sync(ToolPins, () => {
  const servers = new Map<string, Pins>()
  return ToolPins.of({
    load: (server) => Effect.sync(() => servers.get(server) ?? new Map()),
    save: (server, pins) => Effect.sync(() => void servers.set(server, joined(servers.get(server), pins)))
  })
})

/**
 * Keeps pins in a JSON file of at most `Limits.fetchedBytes` bytes, which is replaced atomically. Fails with
 * `ConfigInvalid` if the file cannot be read, since the accepted definitions are then unknown.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerFile = (file: string): Layer.Layer<ToolPins, ConfigInvalid, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(ToolPins, fromFile(file))

const fromFile = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const lock = yield* Semaphore.make(1)
  const { fetchedBytes } = yield* Limits

  // Every server of a hub loads its pins, and the file rarely changes in between.
  let last: { readonly text: string; readonly servers: ReadonlyMap<string, Pins> } | undefined
  const read = Effect.gen(function* () {
    if (!(yield* fs.exists(file))) return new Map<string, Pins>()
    const text = yield* Read.text(fs, file, fetchedBytes)
    if (last?.text === text) return last.servers
    const { servers } = yield* decode(text)
    last = { text, servers: new Map(servers.map(({ server, tools }) => [server, new Map(tools)])) }
    return last.servers
  })
  const unreadable = new ConfigInvalid({ path: file, reason: `'${file}' holds no tool pins that can be read` })
  let known = yield* Effect.mapError(read, () => unreadable)
  const unwritten = new Map<string, Pins>()
  // Another process may have approved tools. A file that can no longer be read is ignored.
  const current = Effect.map(
    Effect.orElseSucceed(read, () => known),
    (servers) => (known = new Map([...servers, ...unwritten]))
  )
  const save = Effect.fnUntraced(
    function* (server: string, pins: Pins) {
      unwritten.set(server, joined((yield* current).get(server), pins))
      const servers = Array.from(yield* current, ([server, tools]) => ({ server, tools: [...tools] }))
      const text = yield* encode({ version: 1, servers })
      // A file that is too large to read would make the next start fail.
      if (new TextEncoder().encode(text).length >= fetchedBytes) return yield* Effect.fail(Read.tooLarge(fetchedBytes))
      yield* fs.makeDirectory(path.dirname(file), { recursive: true })
      yield* replaceFile(file, `${text}\n`)
      unwritten.clear()
    },
    lock.withPermits(1),
    Effect.provideService(FileSystem.FileSystem, fs),
    Effect.catch(() => Effect.logWarning(`the pins of MCP tools could not be kept: '${file}' cannot be written`))
  )
  return ToolPins.of({ load: (server) => Effect.map(current, (servers) => servers.get(server) ?? new Map()), save })
})

const joined = (known: Pins = new Map(), pins: Pins): Pins => new Map([...known, ...pins])

const Tools = Schema.Struct({
  server: Schema.String,
  tools: Schema.Array(Schema.Tuple([Schema.String, Schema.String]))
})
const Stored = Schema.fromJsonString(Schema.Struct({ version: Schema.Literal(1), servers: Schema.Array(Tools) }))
const decode = Schema.decodeUnknownEffect(Stored)
const encode = Schema.encodeEffect(Stored)
