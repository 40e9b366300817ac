import * as NodePath from "@effect/platform-node/NodePath"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Settings from "../../src/cli/settings.ts"

describe("the settings of a run", () => {
  it("are stored in its context as JSON, and read back", () => {
    const settings: Settings.Settings = { model: "ollama/x", system: undefined, skills: false, maxSteps: 3 }
    const context = Settings.contextOf(settings)
    assert.deepStrictEqual(JSON.parse(JSON.stringify(context)), context)
    assert.deepStrictEqual(Settings.ofRun({ context }), { model: "ollama/x", skills: false, maxSteps: 3 })
    assert.deepStrictEqual(Settings.without({ ...context, user: "Ada" }), { user: "Ada" })
  })

  it("are empty if a program started the run, or wrote something else there", () => {
    for (const context of [{}, { commandLine: 3 }, { commandLine: { maxSteps: "many" } }]) {
      assert.deepStrictEqual(Settings.ofRun({ context }), {})
    }
    assert.deepStrictEqual(Settings.ofRun(undefined), {})
  })

  it("are kept unless a flag replaces them; a new model and new skills replace the old, however they were named", () => {
    const stored: Settings.Settings = { script: "/a.json", system: "Sing.", skillsFrom: "/skills" }
    assert.deepStrictEqual(Settings.over(stored, {}), stored)
    assert.deepStrictEqual(Settings.over(stored, { model: "ollama/x", skills: false }), {
      system: "Sing.",
      model: "ollama/x",
      skills: false
    })
    assert.deepStrictEqual(Settings.over({ model: "m/x", skills: false }, { agent: "/b.yaml", skillsFrom: "/s" }), {
      agent: "/b.yaml",
      skillsFrom: "/s"
    })
  })

  it.effect("name files by absolute paths, and refuse flags that cannot be used together", () =>
    Effect.gen(function* () {
      const settings = yield* Settings.ofFlags({ agent: "a.yaml", mcp: "/m.yml", system: "Sing.", yes: undefined })
      assert.deepStrictEqual(settings, { agent: `${process.cwd()}/a.yaml`, mcp: "/m.yml", system: "Sing." })
      for (const flags of [
        { model: "a/b", script: "c" },
        { skills: false, skillsFrom: "d" }
      ]) {
        assert.match((yield* Effect.flip(Settings.ofFlags(flags))).message, /cannot be used together$/)
      }
    }).pipe(Effect.provide(NodePath.layer))
  )
})
