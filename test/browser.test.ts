/**
 * What runs in a browser: bundles of the heart and of doors, without modules of Node.
 */
import { assert, describe, it } from "@effect/vitest"
import { build } from "esbuild"
import { runInThisContext } from "node:vm"

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
