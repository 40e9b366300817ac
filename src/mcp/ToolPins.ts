/**
 * Which definition of each tool was accepted (S-8).
 *
 * A tool is pinned by a hash when it is first seen. One that is defined another
 * way later is hidden until a person approves it, in this process and the next
 * ones; so is a new one of a server that had thousands. A file of pins is
 * replaced whole or not at all; one that cannot be read stops the start, because
 * nobody could tell what was accepted.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Path from "effect/Path"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import * as Read from "../internal/base/files.ts"
import { ConfigInvalid } from "../KernelError.ts"
import { Limits } from "../Limits.ts"
import { replaceFile } from "./internal/replaceFile.ts"

/**
 * The hashes of one server's tools, by the names they have there.
 *
 * @category models
 * @since 0.1.0
 */
export type Pins = ReadonlyMap<string, string>

/**
 * Keeps pins by the name of their server.
 *
 * @category services
 * @since 0.1.0
 */
export class ToolPins extends Context.Service<
  ToolPins,
  {
    readonly load: (server: string) => Effect.Effect<Pins>
    /**
     * Adds these pins to the server's, each in the place of one of the same tool; none is dropped. What cannot be
     * written is logged, and holds in this process.
     */
    readonly save: (server: string, pins: Pins) => Effect.Effect<void>
  }
>()("kernai/mcp/ToolPins") {}

/**
 * Keeps pins in this process: what changes while it runs is noticed.
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
 * Keeps pins in a JSON file, which is made when there is something to keep.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerFile = (file: string): Layer.Layer<ToolPins, ConfigInvalid, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(
    ToolPins,
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const random = yield* SecureRandom.SecureRandom
      const one = yield* Semaphore.make(1)
      const { fetchedBytes } = yield* Limits

      // Every server of a hub asks for its own, and mostly nothing changed since the last one did.
      let last: { readonly text: string; readonly servers: ReadonlyMap<string, Pins> } | undefined
      const read = Effect.gen(function* () {
        if (!(yield* fs.exists(file))) return new Map<string, Pins>()
        const text = yield* Read.text(fs, file, fetchedBytes)
        if (last?.text === text) return last.servers
        const { servers } = yield* decode(text)
        last = { text, servers: new Map(servers.map(({ server, tools }) => [server, new Map(tools)])) }
        return last.servers
      })
      let known = yield* Effect.mapError(
        read,
        () => new ConfigInvalid({ path: file, reason: `'${file}' holds no tool pins that can be read` })
      )
      // What could not be written: a change of it is to be noticed as long as this process lives.
      const unwritten = new Map<string, Pins>()
      // Somebody may have approved in another process; a file that broke meanwhile changes nothing.
      const current = Effect.map(
        Effect.orElseSucceed(read, () => known),
        (servers) => (known = new Map([...servers, ...unwritten]))
      )

      const save = Effect.fnUntraced(
        function* (server: string, pins: Pins) {
          unwritten.set(server, joined((yield* current).get(server), pins))
          const text = yield* encode({
            version: 1,
            servers: Array.from(yield* current, ([server, tools]) => ({ server, tools: [...tools] }))
          })
          // What is too large to be read again would stop the next start.
          if (new TextEncoder().encode(text).length >= fetchedBytes)
            return yield* Effect.fail(Read.tooLarge(fetchedBytes))
          yield* fs.makeDirectory(path.dirname(file), { recursive: true })
          yield* replaceFile(file, `${text}\n`)
          unwritten.clear()
        },
        one.withPermits(1),
        Effect.provideService(FileSystem.FileSystem, fs),
        Effect.provideService(SecureRandom.SecureRandom, random),
        Effect.catch(() => Effect.logWarning(`the pins of MCP tools could not be kept: '${file}' cannot be written`))
      )

      return ToolPins.of({
        load: (server) => Effect.map(current, (servers) => servers.get(server) ?? new Map()),
        save
      })
    })
  ).pipe(Layer.provide(SecureRandom.layerWebCrypto))

const joined = (known: Pins = new Map(), pins: Pins): Pins => new Map([...known, ...pins])

const Stored = Schema.fromJsonString(
  Schema.Struct({
    version: Schema.Literal(1),
    servers: Schema.Array(
      Schema.Struct({ server: Schema.String, tools: Schema.Array(Schema.Tuple([Schema.String, Schema.String])) })
    )
  })
)
const decode = Schema.decodeUnknownEffect(Stored)
const encode = Schema.encodeEffect(Stored)
