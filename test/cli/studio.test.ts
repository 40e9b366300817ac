import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect } from "effect"
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { program } from "../../src/cli/rootCommand.ts"
import { openerOf } from "../../src/cli/studio/browser.ts"
import { folder } from "../support/folder.ts"
import { until } from "../support/until.ts"
import { kernai, memoryScreen } from "./support.ts"

/** Starts `kernai studio` in this process, until the test ends. */
const studio = Effect.fnUntraced(function* (
  args: ReadonlyArray<string>,
  env: { readonly [name: string]: string } = {}
) {
  const screen = memoryScreen()
  yield* Effect.forkScoped(
    program(["studio", ...args]).pipe(
      Effect.provide(screen.layer),
      Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env }))
    )
  )
  yield* until(() => screen.out().includes("http") || screen.error() !== "")
  const url = screen.out().trim()
  return { screen, url, port: Number(URL.parse(url)?.port) }
})

describe("kernai studio", () => {
  it.live("listens on port 4700, or says that it is taken and takes the next free one", () =>
    Effect.gen(function* () {
      const [first, second] = [yield* studio([]), yield* studio([])]
      assert.isTrue(first.port >= 4700 && second.port > first.port && second.port <= 4720)
      assert.strictEqual(second.screen.progress(), `port 4700 is taken: this is port ${second.port}\n`)
      assert.strictEqual(yield* Effect.promise(async () => (await fetch(second.url)).status), 200)
      const asked = yield* kernai(["studio", "--port", String(first.port)])
      assert.deepStrictEqual([asked.code, asked.out], [2, ""])
      assert.include(asked.error, `cannot listen on port ${first.port} (EADDRINUSE)`)
    })
  )

  it.live("opens the page by a file that only its owner can read, since the address holds a token", () =>
    Effect.gen(function* () {
      const place = yield* folder
      const [browser, opened] = [join(place, "browser"), join(place, "opened")]
      writeFileSync(
        browser,
        `#!/bin/sh\n{ echo "$@"; ls -l "$1"; cat "$1"; } > ${opened}.part\nmv ${opened}.part ${opened}\n`
      )
      chmodSync(browser, 0o700)
      const { url } = yield* studio(["--open"], { BROWSER: browser })
      yield* until(() => existsSync(opened))
      const [args = "", mode = "", ...page] = readFileSync(opened, "utf8").split("\n")
      assert.match(args, /^\S+studio\.html$/)
      assert.match(mode, /^-rw-------/)
      assert.include(page.join("\n"), `content="0;url=${url}"`)
    })
  )

  it.live("continues without a browser", () =>
    Effect.gen(function* () {
      const { screen, url } = yield* studio(["--open"], { BROWSER: "/none" })
      yield* until(() => screen.progress().includes("no browser could be opened"))
      assert.strictEqual(yield* Effect.promise(async () => (await fetch(url)).status), 200)
    })
  )

  it.live("serves the chat for end users, which needs an agent", () =>
    Effect.gen(function* () {
      const script = join(yield* folder, "script.json")
      writeFileSync(script, JSON.stringify(["Welcome."]))
      const { url } = yield* studio(["--end-user", "--script", script])
      const page = yield* Effect.promise(async () => (await fetch(url)).text())
      assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/chat$/)
      assert.include(page, "data-guest=")
      const elsewhere = yield* Effect.promise(async () => (await fetch(new URL("/", url))).status)
      assert.strictEqual(elsewhere, 404)
      for (const args of [[], ["--script", script, "--read-only"]]) {
        const refused = yield* kernai(["studio", "--end-user", ...args])
        assert.strictEqual(refused.code, 2)
        assert.include(refused.error, "--end-user serves a chat")
      }
    })
  )

  it.live("offers the models of --play-model in the playground, once they can be asked", () =>
    Effect.gen(function* () {
      const { url } = yield* studio(["-m", "ollama/llama3.1", "--play-model", "ollama/qwen3"])
      const info = yield* Effect.promise(async () => {
        const body = JSON.stringify({ token: new URL(url).hash.slice("#token=".length) })
        const headers = { "content-type": "application/json" }
        const entered = await fetch(new URL("/session", url), { method: "POST", headers, body })
        const cookie = entered.headers.get("set-cookie")?.split(";")[0] ?? ""
        return (await fetch(new URL("/data/info", url), { headers: { cookie } })).json()
      })
      assert.deepInclude(info, { models: ["ollama/qwen3"] })
      const script = join(yield* folder, "script.json")
      writeFileSync(script, JSON.stringify(["Welcome."]))
      const refused = [
        yield* kernai(["studio", "--script", script, "--play-model", "ollama/qwen3"]),
        yield* kernai(["studio", "-m", "ollama/llama3.1", "--play-model", "openai/gpt-5"])
      ]
      assert.deepStrictEqual(
        refused.map(({ code }) => code),
        [2, 2]
      )
      assert.include(refused[0]?.error, "--play-model asks models")
      assert.include(refused[1]?.error, "OPENAI_API_KEY is not set")
    })
  )

  it("opens pages with the program of the platform", () => {
    assert.deepStrictEqual(
      (["darwin", "linux", "win32"] as const).map((platform) => openerOf(platform, "")[0]),
      ["open", "xdg-open", "rundll32"]
    )
  })
})
