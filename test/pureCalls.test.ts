/** The marks by which bundlers drop values of the package that a program does not use. */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { root } from "./support/house.ts"

/** Marks a module as the build does, and bundles a program that uses only `used` of it. */
const bundled = (code: string): string => {
  const script = `
    import { build } from "esbuild"
    import { markCalls } from "./tools/dev/pure.mjs"
    const contents = markCalls(${JSON.stringify(code)}) + "console.log(used)"
    const { outputFiles } = await build({ stdin: { contents }, bundle: true, write: false, format: "esm" })
    process.stdout.write(outputFiles[0].text)`
  const { stderr, stdout } = spawnSync(process.execPath, ["--input-type=module", "--eval", script], {
    cwd: root,
    encoding: "utf8"
  })
  assert.strictEqual(stderr, "")
  return stdout
}

describe("the code of the package", () => {
  it("loses schemas and classes that a program does not use when it is bundled", () => {
    const text = bundled(`
      const spare = make({ name: optional(text()), other: new Map([[key(), 1]]) })
      class Spare extends service()("spare") {
        static layer = layerOf("spare")
      }
      const used = make(text())
    `)
    assert.include(text, "make(")
    for (const name of ["spare", "Spare", "optional", "key", "service", "layerOf"]) assert.notInclude(text, name)
  })

  it("keeps the calls that run later when it is bundled", () => {
    const text = bundled(`const used = () => { register("used") }\n`)
    assert.include(text, 'register("used")')
    assert.notInclude(text, "__PURE__")
  })
})
