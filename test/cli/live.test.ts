import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, FileSystem, Path } from "effect"
import * as Recordings from "../../src/cli/demo/recordings.ts"
import { live, type Options, resolve } from "../../src/cli/live.ts"
import { serve } from "../support/loopback.ts"
import { kernai, memoryScreen } from "./support.ts"

const options: Options = {
  form: "quiet",
  model: "anthropic/claude-sonnet-4-20250514",
  question: "How many?",
  instructions: "Be brief.",
  images: [],
  root: ".",
  maxSteps: 5,
  dialect: "blocks",
  skills: "general"
}

/** A vendor on the loopback that answers what was recorded. */
const vendor = Effect.gen(function* () {
  const { cassette } = yield* Recordings.open(Recordings.standard, ".")
  const server = yield* serve((_, response) => {
    const recorded = cassette.interactions[server.seen.length - 1]
    response.writeHead(200, { "content-type": "text/event-stream" })
    response.end(recorded?.response.body)
  })
  return { asked: server.seen, baseUrl: server.url() }
})

const settings = (env: { readonly [name: string]: string }) => ConfigProvider.layer(ConfigProvider.fromEnv({ env }))

const files = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const root = yield* fs.makeTempDirectoryScoped()
  const write = (name: string, text: string) => fs.writeFileString(path.join(root, name), text)
  return { root, write }
})

describe("live", () => {
  it.live("asks the model over the network with the key of the environment, and never shows the key", () =>
    Effect.gen(function* () {
      const { asked, baseUrl } = yield* vendor
      const screen = memoryScreen()
      const result = yield* Effect.provide(live({ ...options, form: "text" }), [
        screen.layer,
        settings({ ANTHROPIC_API_KEY: "sk-SECRET-0123456789", ANTHROPIC_BASE_URL: baseUrl })
      ])
      assert.strictEqual(result.turns, 2)
      assert.deepStrictEqual(
        asked.map(({ headers }) => headers["x-api-key"]),
        ["sk-SECRET-0123456789", "sk-SECRET-0123456789"]
      )
      assert.include(asked[0]?.body, "Be brief.")
      assert.include(asked[1]?.body, "Alice Martin")
      assert.include(screen.out(), "50% of active users")
      assert.notInclude(screen.out() + screen.progress(), "SECRET")
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("sends a picture that lies inside the folder, and opens none outside of it (S-4)", () =>
    Effect.gen(function* () {
      const { asked, baseUrl } = yield* vendor
      const { root, write } = yield* files
      yield* write("dot.png", "pixels")
      const env = settings({ ANTHROPIC_API_KEY: "k", ANTHROPIC_BASE_URL: baseUrl })
      const run = (...images: ReadonlyArray<string>) =>
        Effect.provide(live({ ...options, root, images }), [memoryScreen().layer, env])
      for (const path of ["../dot.png", "/etc/hostname.png", "a\u0000.png", "%2e%2e/dot.png", "file:///etc/x.png"]) {
        const error = yield* Effect.flip(run(path))
        assert.strictEqual(error.code, 2)
        assert.match(error.message, /cannot be sent: (its path is not allowed|there is no such file|it is outside)/)
      }
      assert.strictEqual((yield* Effect.flip(run("dot.txt"))).code, 2)
      assert.strictEqual(asked.length, 0)
      yield* run("dot.png")
      assert.include(asked[0]?.body, Buffer.from("pixels").toString("base64"))
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("says that a model is not known to see the pictures it is sent", () =>
    Effect.gen(function* () {
      const { root, write } = yield* files
      yield* write("dot.png", "pixels")
      const told = Effect.fnUntraced(function* (some: Partial<Options>) {
        const { asked, baseUrl } = yield* vendor
        const screen = memoryScreen()
        const env = settings({ ANTHROPIC_API_KEY: "k", ANTHROPIC_BASE_URL: baseUrl })
        yield* Effect.provide(live({ ...options, form: "text", root, ...some }), [screen.layer, env])
        const isSent = asked[0]?.body.includes(Buffer.from("pixels").toString("base64"))
        return { isSent, isNoted: screen.progress().includes(note) }
      })
      const note = "anthropic/rocket is not known to see: it is told that there is a picture, and no more\n"
      const rocket = { model: "anthropic/rocket" }
      const images = ["dot.png"]
      assert.deepStrictEqual(yield* told({ ...rocket, images }), { isSent: false, isNoted: true })
      assert.deepStrictEqual(yield* told(rocket), { isSent: false, isNoted: false })
      assert.deepStrictEqual(yield* told({ images }), { isSent: true, isNoted: false })
      const env = { ANTHROPIC_API_KEY: "k", ANTHROPIC_BASE_URL: (yield* vendor).baseUrl }
      const kept = ["--model", rocket.model, "--image", "dot.png", "--root", root, "--store", `sqlite:${root}/runs.db`]
      assert.include((yield* kernai(["run", "What is it?", ...kept], { env })).progress, note)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("guesses from its name what a model can do of which nothing is known (BP-182)", () =>
    Effect.gen(function* () {
      const { model } = yield* resolve("ollama/llava")
      assert.deepStrictEqual(model.capabilities, ["text", "vision"])
    }).pipe(Effect.provide(settings({})))
  )

  const unknown: ReadonlyArray<readonly [model: string, reason: string]> = [
    [
      "openai/gpt-4.1",
      "OPENAI_API_KEY is not set, openai/gpt-4.1 needs it; 'kernai run' shows a recorded conversation without any key"
    ],
    ["gemini/gemini-2.5-pro", "GEMINI_API_KEY is not set"],
    ["groq/llama-3.3-70b-versatile", "GROQ_API_KEY is not set"],
    ["gpt-4.1", "'gpt-4.1' is not a model: expected <provider>/<model>"],
    ["acme/rocket", "unknown provider 'acme'; known: "]
  ]
  it.live.each(unknown)("says in a line why %s cannot be asked", ([model, reason]) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(
        Effect.provide(live({ ...options, model }), [memoryScreen().layer, settings({}), NodeServices.layer])
      )
      assert.strictEqual(error.code, 2)
      assert.isTrue(error.message.startsWith(reason), error.message)
      assert.notInclude(error.message, "\n")
    })
  )

  it.live("offers the skill files of a folder, and says which of them is broken", () =>
    Effect.gen(function* () {
      const { baseUrl } = yield* vendor
      const { root, write } = yield* files
      yield* write("broken.mjs", "export default 1 +")
      const error = yield* Effect.flip(
        Effect.provide(live({ ...options, skills: { directory: root } }), [
          memoryScreen().layer,
          settings({ ANTHROPIC_API_KEY: "k", ANTHROPIC_BASE_URL: baseUrl })
        ])
      )
      assert.strictEqual(error.code, 2)
      assert.include(error.message, "broken.mjs")
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
