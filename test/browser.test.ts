/**
 * What runs in a browser: bundles of the heart and of doors, without modules of Node.
 */
import { assert, describe, it } from "@effect/vitest"
import { build } from "esbuild"
import { Effect, Layer, Redacted, Schema } from "effect"
import { Skill, SkillRegistry } from "kernai"
import { McpServe } from "kernai/mcp"
import { runInThisContext } from "node:vm"

const shout = Skill.make("shout", {
  description: "Says it louder",
  input: Schema.Struct({ text: Schema.String }),
  execute: ({ text }) => Effect.succeed(text.toUpperCase())
})

/** Bundles a module for a browser, as applications do, which fails for an import of Node. Returns its exports. */
const bundled = async (contents: string): Promise<{ readonly [name: string]: unknown }> => {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: import.meta.dirname },
    bundle: true,
    platform: "browser",
    format: "iife",
    globalName: "bundled",
    conditions: ["kernai-source"],
    logLevel: "silent",
    write: false
  })
  return runInThisContext(`(() => { ${outputFiles[0]?.text}; return bundled })()`)
}

describe("a bundle for a browser", () => {
  it.live(
    "takes the connections to MCP servers, which call tools over HTTP there",
    () =>
      Effect.gen(function* () {
        const { token, url } = yield* McpServe.McpServe
        const { call } = yield* Effect.promise(() =>
          bundled(`
            import { Effect, Layer } from "effect"
            import { FetchHttpClient } from "effect/http"
            import { ChildProcessSpawner } from "effect/process"
            import { McpConfig, McpConnection } from "kernai/mcp"
            const platform = Layer.merge(FetchHttpClient.layer, Layer.mock(ChildProcessSpawner.ChildProcessSpawner, {}))
            export const call = (url, token) =>
              McpConfig.fromValue({ servers: { it: { url, headers: { Authorization: "Bearer " + token } } } }).pipe(
                Effect.flatMap(({ servers }) => McpConnection.make(servers.get("it"))),
                Effect.flatMap(({ callTool }) => callTool("shout", { text: "hello" })),
                Effect.map(({ content }) => content[0].text),
                Effect.scoped,
                Effect.provide(platform),
                Effect.runPromise
              )
          `)
        )
        assert(typeof call === "function" && token !== undefined)
        const text: unknown = yield* Effect.promise(() => call(url, Redacted.value(token)))
        assert.strictEqual(text, "HELLO")
      }).pipe(Effect.provide(McpServe.layerHttp().pipe(Layer.provide(SkillRegistry.layer(shout))))),
    { timeout: 60_000 }
  )

  it("takes the tools for tests, whose suites run there", { timeout: 60_000 }, async () => {
    const { failed } = await bundled(`
      import { Context, Effect, Exit, Layer } from "effect"
      import { MediaStore } from "kernai"
      import { MediaStoreSuite } from "kernai/testing"
      const open = Effect.map(Layer.build(MediaStore.layerMemory), Context.get(MediaStore.MediaStore))
      const checks = MediaStoreSuite.checks(open, { durable: false })
      export const failed = Effect.runPromise(
        Effect.map(
          Effect.forEach(checks, ({ name, run }) => Effect.map(Effect.exit(run), (exit) => ({ name, exit }))),
          (ends) => ends.filter(({ exit }) => Exit.isFailure(exit)).map(({ name }) => name)
        )
      )
    `)
    assert.deepStrictEqual(await failed, [])
  })
})
