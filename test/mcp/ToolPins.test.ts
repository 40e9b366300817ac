import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, FileSystem, Layer, PlatformError } from "effect"
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
  it.effect("holds what it could not write as long as its process lives, and writes it with the next (S-8)", () =>
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
})
