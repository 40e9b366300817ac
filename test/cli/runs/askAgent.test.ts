import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Recordings from "../../../src/cli/demo/recordings.ts"
import { folder } from "../../support/folder.ts"
import { serve } from "../../support/loopback.ts"
import { kernai } from "../support.ts"

/** Serves the recorded replies of a vendor. */
const vendor = Effect.gen(function* () {
  const { cassette } = yield* Recordings.open(Recordings.standard, ".")
  const server = yield* serve((_, response) => {
    const recorded = cassette.interactions[server.seen.length - 1]
    response.writeHead(200, { "content-type": "text/event-stream" })
    response.end(recorded?.response.body)
  })
  return { asked: server.seen, env: { ANTHROPIC_API_KEY: "sk-SECRET-0123456789", ANTHROPIC_BASE_URL: server.url() } }
})

const pixels = Buffer.from("pixels").toString("base64")

/** A folder with a picture. */
const place = Effect.map(folder, (folder) => {
  writeFileSync(join(folder, "dot.png"), "pixels")
  writeFileSync(join(folder, "dot.txt"), "text")
  return folder
})

const model = "anthropic/claude-sonnet-4-20250514"

describe("a question to a model", () => {
  it.live("is sent with the key of the environment, which is never shown", () =>
    Effect.gen(function* () {
      const { asked, env } = yield* vendor
      const { code, out, progress } = yield* kernai(["run", "-m", model, "--system", "Be brief.", "How many?"], { env })
      assert.strictEqual(code, 0)
      const keys = asked.map(({ headers }) => headers["x-api-key"])
      assert.deepStrictEqual(keys, ["sk-SECRET-0123456789", "sk-SECRET-0123456789"])
      assert.include(asked[0]?.body, "Be brief.")
      assert.include(asked[1]?.body, "Alice Martin")
      assert.include(out, "50% of active users")
      assert.notInclude(out + progress, "SECRET")
    })
  )

  it.live("takes pictures from inside a folder, and opens no file outside of it (S-4)", () =>
    Effect.gen(function* () {
      const { asked, env } = yield* vendor
      const root = yield* place
      const ask = (image: string) => kernai(["run", "-m", model, "--root", root, "--image", image, "Hi?"], { env })
      for (const path of ["../dot.png", "/etc/hostname.png", "a\u0000.png", "%2e%2e/dot.png", "file:///etc/x.png"]) {
        const { code, error } = yield* ask(path)
        assert.strictEqual(code, 2)
        assert.match(error, /cannot be sent: (its path is not allowed|there is no such file|it is outside)/)
      }
      assert.strictEqual((yield* ask("dot.txt")).code, 2)
      assert.strictEqual(asked.length, 0)
      yield* ask("dot.png")
      assert.include(asked[0]?.body, pixels)
    })
  )

  it.live("warns about a model that is not known to see pictures", () =>
    Effect.gen(function* () {
      const root = yield* place
      const warning = "anthropic/rocket may not be able to see images: it only learns that there is one\n"
      const ask = Effect.fnUntraced(function* (model: string, ...more: ReadonlyArray<string>) {
        const { asked, env } = yield* vendor
        const { progress } = yield* kernai(["run", "-m", model, "--root", root, ...more, "Hi?"], { env })
        return { isSent: asked[0]?.body.includes(pixels), isWarned: progress.includes(warning) }
      })
      const image = ["--image", "dot.png"]
      const store = ["--create", "--store", `sqlite:${root}/runs.db`]
      assert.deepStrictEqual(yield* ask("anthropic/rocket", ...image), { isSent: false, isWarned: true })
      assert.deepStrictEqual(yield* ask("anthropic/rocket", ...image, ...store), { isSent: false, isWarned: true })
      assert.deepStrictEqual(yield* ask("anthropic/rocket"), { isSent: false, isWarned: false })
      assert.deepStrictEqual(yield* ask(model, ...image), { isSent: true, isWarned: false })
    })
  )

  it.live("may be recorded, with its instructions and its skills", () =>
    Effect.gen(function* () {
      const { asked, env } = yield* vendor
      const replay = ["--replay", "openai_scenario_weather", "--dialect", "tools"]
      const { code } = yield* kernai(["run", "-m", model, ...replay], { env })
      assert.strictEqual(code, 0)
      assert.include(asked[0]?.body, "in London")
      assert.include(asked[0]?.body, "Get the example weather of a city")
    })
  )

  it.live("offers the skill files of a folder, and names one that is broken", () =>
    Effect.gen(function* () {
      const { env } = yield* vendor
      const root = yield* folder
      writeFileSync(join(root, "broken.mjs"), "export default 1 +")
      const { code, error } = yield* kernai(["run", "-m", model, "--skills-from", root, "Hi?"], { env })
      assert.strictEqual(code, 2)
      assert.include(error, "broken.mjs")
    })
  )
})
