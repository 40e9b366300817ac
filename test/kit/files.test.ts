import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer, Option, Path, Redacted } from "effect"
import { FetchHttpClient } from "effect/http"
import { execFileSync } from "node:child_process"
import { Limits } from "kernai"
import { AgentFile, PolicyFile, SkillFileLoader } from "kernai/file"
import { McpHub, TokenStore, ToolPins } from "kernai/mcp"
import * as Script from "../../src/cli/chat/scriptedChat.ts"
import { examine } from "../../src/cli/mcp/serverDoctor.ts"
import { fileReader as mediaReader } from "../../src/store-kit/MediaScope.ts"
import * as Read from "../../src/kit/files.ts"
import { memoryScreen } from "../cli/support.ts"

/** A folder, and files in it. */
const place = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = yield* files.makeTempDirectoryScoped()
  const write = (name: string, text: string) =>
    Effect.as(files.writeFileString(path.join(folder, name), text), path.join(folder, name))
  return { files, folder, write }
})

const refusalOf = (effect: Effect.Effect<unknown, Read.Refusal>) =>
  Effect.map(Effect.flip(effect), (refusal) => (typeof refusal === "string" ? refusal : refusal.reason._tag))

/** A disk on which every file grows without end once it is open. */
const growing = (files: FileSystem.FileSystem) => {
  let read = 0
  const disk: FileSystem.FileSystem = {
    ...files,
    open: (path, options) =>
      Effect.map(files.open(path, options), (file) =>
        Object.create(file, {
          read: {
            value: (buffer: Uint8Array) =>
              Effect.sync(() => {
                read += buffer.length
                return buffer.length
              })
          }
        })
      )
  }
  return { disk, read: () => read }
}

describe("files", () => {
  it.effect("reads a regular file up to a limit, and says why it refuses another", () =>
    Effect.gen(function* () {
      const { files, folder, write } = yield* place
      const file = yield* write("a", "grün")
      assert.strictEqual(yield* Read.text(files, file, 5), "grün")
      assert.deepStrictEqual([...(yield* Read.bytes(files, file, 100))], [103, 114, 195, 188, 110])
      assert.strictEqual(yield* Read.text(files, yield* write("empty", ""), 0), "")
      assert.strictEqual(yield* refusalOf(Read.text(files, file, 4)), "larger than 4 bytes")
      assert.strictEqual(yield* refusalOf(Read.text(files, folder, 4)), "not a plain file")
      assert.strictEqual(yield* refusalOf(Read.text(files, "/dev/zero", 4)), "not a plain file")
      assert.strictEqual(yield* refusalOf(Read.text(files, `${folder}/none`, 4)), "NotFound")
      const long = "0123456789".repeat(20_000)
      assert.strictEqual(yield* Read.text(files, yield* write("long", long), 200_000), long)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("refuses a named pipe without waiting for a writer", () =>
    Effect.gen(function* () {
      const { files, folder } = yield* place
      execFileSync("mkfifo", [`${folder}/pipe`])
      assert.strictEqual(yield* refusalOf(Read.text(files, `${folder}/pipe`, 4)), "not a plain file")
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("reads no more of a file than its size when it was opened", () =>
    Effect.gen(function* () {
      const { files, write } = yield* place
      const { disk, read } = growing(files)
      assert.strictEqual(yield* refusalOf(Read.bytes(disk, yield* write("a", "abc"), 9)), "larger than 9 bytes")
      assert.isAtMost(read(), 10)
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

describe("A file that is read whole has a size limit:", () => {
  const spaces = " ".repeat(300_000)
  const readers: ReadonlyArray<
    readonly [
      name: string,
      file: string,
      text: string,
      read: (
        file: string,
        folder: string
      ) => Effect.Effect<unknown, { readonly message: string }, NodeServices.NodeServices>
    ]
  > = [
    ["an agent", "a.yaml", `name: a\nsystem_prompt: A\nmodel: m\n${spaces}`, AgentFile.load],
    ["a policy", "p.yaml", `default: allow\n${spaces}`, PolicyFile.load],
    [
      "a skill file",
      "s.mjs",
      `export const none = 1 //${spaces}`,
      (_, folder) => Effect.flatMap(SkillFileLoader.source(folder), ({ load }) => load)
    ],
    ["a config of MCP servers", "mcp.yaml", `servers: {}\n${spaces}`, (file) => McpHub.readConfig(file)],
    [
      "what kernai mcp doctor looks at",
      "mcp.yaml",
      `servers: {}\n${spaces}`,
      (file) => examine(file, false).pipe(Effect.provide([memoryScreen().layer, FetchHttpClient.layer]))
    ],
    [
      "pins of tools",
      "pins.json",
      `{"version":1,"servers":[]}${spaces}`,
      (file) => Effect.scoped(Layer.build(ToolPins.layerFile(file)))
    ],
    [
      "a picture, or a recording",
      "i.png",
      spaces,
      (_, folder) =>
        Effect.flatMap(mediaReader(folder), (read) => Effect.mapError(read("i.png"), (message) => ({ message })))
    ]
  ]
  for (const [name, file, text, read] of readers) {
    it.effect(name, () =>
      Effect.gen(function* () {
        const { folder, write } = yield* place
        const error = yield* Effect.flip(read(yield* write(file, text), folder))
        assert.match(error.message, /larger than|no tool pins that can be read/)
      }).pipe(
        Effect.provideService(Limits.Limits, { ...Limits.defaults, fetchedBytes: 290_000 }),
        Effect.provide(NodeServices.layer)
      )
    )
  }

  it.effect("the replies of a scripted model", () =>
    Effect.gen(function* () {
      const { folder, write } = yield* place
      const file = yield* write("script.json", JSON.stringify(["x".repeat(5 * 1024 * 1024)]))
      assert.include((yield* Effect.flip(Script.provider(file))).message, "larger than 4194304 bytes")
      assert.include((yield* Effect.flip(Script.provider(folder))).message, "not a plain file")
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("a stored sign-in, which counts as missing when it is too large", () =>
    Effect.gen(function* () {
      const { folder } = yield* place
      const files = yield* FileSystem.FileSystem
      const grant: TokenStore.Grant = {
        issuer: "https://a.test",
        tokenEndpoint: "https://a.test/token",
        resource: "https://m.test",
        clientId: "x".repeat(400),
        clientAuth: "none",
        accessToken: Redacted.make("t")
      }
      const kept = Effect.gen(function* () {
        const store = yield* TokenStore.TokenStore
        yield* store.save("https://m.test", grant)
        return Option.isSome(yield* store.load("https://m.test"))
      }).pipe(Effect.provide(TokenStore.layerFile(folder)))
      assert.isTrue(yield* kept)
      assert.lengthOf(yield* files.readDirectory(folder), 1)
      const small = { ...Limits.defaults, fetchedBytes: 300 }
      assert.isFalse(yield* Effect.provideService(kept, Limits.Limits, small))
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
