import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { start } from "./support.ts"

/** The folder is inside the project, so that the module finds Effect. */
const scratch = fileURLToPath(new URL("./.dev", import.meta.url))

const folder = Effect.acquireRelease(
  Effect.sync(() => {
    const place = `${scratch}-${process.pid}`
    mkdirSync(place, { recursive: true })
    return place
  }),
  (place) => Effect.sync(() => rmSync(place, { recursive: true, force: true }))
)

const agents = (name: string) => `
import { Effect } from "effect"
import { Program } from "kernai"
import { greeting } from "./words.ts"
export const echo = Program.make("${name}", { run: (text: string) => Effect.succeed(greeting + " " + text) })
`

const started = (url: string, init: RequestInit) =>
  Effect.promise(async (): Promise<{ readonly runId: string }> => JSON.parse(await (await fetch(url, init)).text()))

/** Enters the studio with the token in its address, and returns a function that asks an agent. */
const enter = Effect.fnUntraced(function* (address: string) {
  const { hash, origin } = new URL(address)
  const body = JSON.stringify({ token: hash.slice("#token=".length) })
  const headers = { "content-type": "application/json", "x-kernai-studio": "1" }
  const session = yield* Effect.promise(() => fetch(`${origin}/session`, { method: "POST", body, headers }))
  const cookie = session.headers.get("set-cookie")?.split(";")[0] ?? ""
  return Effect.fnUntraced(function* (agent: string) {
    const asked = { agent, input: "Ada" }
    const { runId } = yield* started(`${origin}/api/runs`, {
      method: "POST",
      body: JSON.stringify(asked),
      headers: { ...headers, cookie }
    })
    const events = yield* Effect.promise(async () =>
      (await fetch(`${origin}/api/runs/${runId}/events`, { headers: { cookie } })).text()
    )
    return events
  })
})

describe("kernai dev", () => {
  it.live(
    "serves the agents of a module, reloads them when one of its files changes, and keeps them when it has a mistake",
    () =>
      Effect.gen(function* () {
        const place = yield* folder
        const write = (name: string, text: string) => writeFileSync(join(place, name), text)
        write("agents.ts", agents("echo"))
        write("words.ts", `export const greeting: string = "Hello"\n`)
        const dev = yield* start(["dev", "--create", "--store", "runs.db"], { cwd: place })
        yield* dev.until("serving echo")
        const address = /http\S+/.exec(dev.shown())?.[0] ?? ""
        const ask = yield* enter(address)
        assert.include(yield* ask("echo"), "Hello Ada")

        write("words.ts", `export const greeting: string = "Good day"\n`)
        yield* dev.until("reloaded echo")
        // The page keeps its address and its session.
        assert.include(yield* ask("echo"), "Good day Ada")

        write("words.ts", "export const greeting: string =\n")
        yield* dev.until("agents.ts cannot be loaded")
        assert.include(yield* ask("echo"), "Good day Ada")

        write("agents.ts", agents("clerk"))
        write("words.ts", `export const greeting: string = "Welcome"\n`)
        yield* dev.until("reloaded clerk")
        assert.include(yield* ask("clerk"), "Welcome Ada")
        assert.lengthOf(dev.shown().match(/http:/g) ?? [], 1)
        dev.kill("SIGTERM")
        yield* dev.ended
      }),
    300_000
  )

  it.live("names the module that it looks for when there is none", () =>
    Effect.gen(function* () {
      const place = yield* folder
      const dev = yield* start(["dev"], { cwd: place })
      const { code, error, out } = yield* dev.ended
      assert.deepStrictEqual([code, out], [2, ""])
      assert.include(error, "there is no agents.ts here: name the module")
    })
  )
})
