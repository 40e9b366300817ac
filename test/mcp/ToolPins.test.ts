import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, FileSystem, Layer, PlatformError } from "effect"
import { Limits } from "kernai"
import { ToolPins } from "kernai/mcp"
import { folder } from "../support/folder.ts"

/** The pins of a file on a disk that takes nothing as long as `isFull` says so. */
const open = (file: string, isFull: () => boolean) => {
  const full = PlatformError.systemError({ _tag: "Unknown", module: "FileSystem", method: "writeFile" })
  const disk = Layer.effect(
    FileSystem.FileSystem,
    FileSystem.FileSystem.use((fs) =>
      Effect.succeed({
        ...fs,
        writeFileString: (...args: Parameters<typeof fs.writeFileString>) =>
          isFull() ? Effect.fail(full) : fs.writeFileString(...args)
      })
    )
  )
  return ToolPins.layerFile(file).pipe(
    Layer.provide(Layer.provideMerge(disk, NodeServices.layer)),
    Layer.build,
    Effect.map((context) => Context.get(context, ToolPins.ToolPins))
  )
}

describe("ToolPins.layerFile", () => {
  it.effect("keeps pins that it could not write in memory, and writes them with the next (S-8)", () =>
    Effect.gen(function* () {
      const file = `${yield* folder}/pins.json`
      let isFull = false
      const pins = yield* open(file, () => isFull)
      yield* pins.save("first", new Map([["add", "old"]]))
      isFull = true
      yield* pins.save("first", new Map([["add", "new"]]))
      yield* pins.save("second", new Map([["send", "seen"]]))
      assert.deepStrictEqual(yield* pins.load("first"), new Map([["add", "new"]]))
      assert.deepStrictEqual(yield* pins.load("second"), new Map([["send", "seen"]]))
      isFull = false
      yield* pins.save("third", new Map())
      const next = yield* open(file, () => false)
      assert.deepStrictEqual(yield* next.load("first"), new Map([["add", "new"]]))
      assert.deepStrictEqual(yield* next.load("second"), new Map([["send", "seen"]]))
    })
  )

  it.effect("drops no pin that another process wrote in the meantime (S-8)", () =>
    Effect.gen(function* () {
      const file = `${yield* folder}/pins.json`
      const [one, other] = [yield* open(file, () => false), yield* open(file, () => false)]
      yield* one.save("first", new Map([["add", "old"]]))
      yield* other.save("first", new Map([["send", "seen"]]))
      yield* one.save("first", new Map([["add", "new"]]))
      const next = yield* open(file, () => false)
      const all = new Map([
        ["add", "new"],
        ["send", "seen"]
      ])
      assert.deepStrictEqual(yield* next.load("first"), all)
      const memory = yield* Effect.provide(ToolPins.ToolPins, ToolPins.layerMemory)
      for (const pin of all) yield* memory.save("first", new Map([pin]))
      assert.deepStrictEqual(yield* memory.load("first"), all)
    })
  )

  it.effect("decodes the file once, until another process changes it", () =>
    Effect.gen(function* () {
      const file = `${yield* folder}/pins.json`
      const [one, other] = [yield* open(file, () => false), yield* open(file, () => false)]
      yield* one.save("first", new Map([["add", "old"]]))
      const pins = yield* one.load("first")
      assert.strictEqual(yield* one.load("first"), pins)
      yield* other.save("first", new Map([["add", "new"]]))
      assert.deepStrictEqual(yield* one.load("first"), new Map([["add", "new"]]))
    })
  )

  it.effect("writes no file that it could not read again", () =>
    Effect.gen(function* () {
      const file = `${yield* folder}/pins.json`
      yield* Effect.gen(function* () {
        const pins = yield* open(file, () => false)
        yield* pins.save("first", new Map([["add", "old"]]))
        yield* pins.save("second", new Map([["é".repeat(100), "seen"]]))
        assert.strictEqual((yield* pins.load("second")).size, 1)
        const next = yield* open(file, () => false)
        assert.deepStrictEqual([(yield* next.load("first")).size, (yield* next.load("second")).size], [1, 0])
      }).pipe(Effect.provideService(Limits.Limits, { ...Limits.defaults, fetchedBytes: 250 }))
    })
  )
})
