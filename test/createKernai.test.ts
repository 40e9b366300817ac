/**
 * `npm create kernai`: the folder it creates, and its errors. accept/toolbox.ts checks that a created project runs.
 */
import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { folder } from "./support/folder.ts"

const script = join(import.meta.dirname, "../create-kernai/create.mjs")

const run = (target: string) =>
  spawnSync(process.execPath, [script, target, "--yes", "--no-install"], { encoding: "utf8" })

const create = (target: string) => {
  const { status, stderr } = run(target)
  return { status, stderr }
}

const expected = [
  ...["agents", "chat", "code", "hello", "mcp", "multimodal", "question", "web"].map((template) => `${template}: auto`),
  "workflow: blocks",
  "coding: tools"
]

describe("create-kernai", () => {
  it.effect("reports in one line that the target is a file, or is inside one", () =>
    Effect.gen(function* () {
      const place = yield* folder
      const file = join(place, "notes")
      writeFileSync(file, "mine")
      assert.deepStrictEqual(create(file), { status: 2, stderr: `${file} is a file\n` })
      const inside = create(join(file, "agent"))
      assert.strictEqual(inside.status, 2)
      assert.match(inside.stderr, /^.*agent cannot be made: ENOTDIR.*\n$/)
      assert.strictEqual(readFileSync(file, "utf8"), "mine")
      assert.deepStrictEqual(readdirSync(place), ["notes"])
    })
  )

  it.effect("prints the next commands, with `npm install` when it did not install", () =>
    Effect.gen(function* () {
      const target = join(yield* folder, "agent")
      assert.include(run(target).stdout, `is ready:\n\n  cd ${target}\n  npm install\n  npm start\n  npm test\n`)
    })
  )

  it.effect("creates nothing and prints nothing when the question is cancelled", () =>
    Effect.gen(function* () {
      const place = yield* folder
      const terminal = ["--import", "data:text/javascript,process.stdin.isTTY=true"]
      const { status, stderr } = spawnSync(process.execPath, [...terminal, script, join(place, "agent")], {
        encoding: "utf8",
        input: ""
      })
      assert.deepStrictEqual([status, stderr], [130, ""])
      assert.deepStrictEqual(readdirSync(place), [])
    })
  )

  it("lets agents speak as the model that they name does best, but for plans and for repairs of code", () => {
    const templates = join(import.meta.dirname, "../create-kernai/templates")
    const chosen = readdirSync(templates, { recursive: true, encoding: "utf8" })
      .filter((file) => /^[a-z]+\/src\/\w+\.ts$/.test(file))
      .flatMap((file) => {
        const [template] = file.split("/")
        const agents = readFileSync(join(templates, file), "utf8").split("Agent.make({").slice(1)
        return agents.map((agent) => `${template}: ${/\bdialect: "(\w+)"/.exec(agent)?.[1]}`)
      })
    assert.deepStrictEqual(new Set(chosen), new Set(expected))
  })

  it.effect("gives a package a different name from its dependencies", () =>
    Effect.gen(function* () {
      const place = yield* folder
      for (const [name, expected] of [
        ["kernai", "my-kernai"],
        ["Effect", "my-effect"],
        ["agent", "agent"]
      ] as const) {
        const target = join(place, name)
        mkdirSync(target)
        assert.deepStrictEqual(create(target), { status: 0, stderr: "" })
        const manifest: unknown = JSON.parse(readFileSync(join(target, "package.json"), "utf8"))
        assert.propertyVal(manifest, "name", expected)
      }
    })
  )
})
