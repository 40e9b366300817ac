import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Kernel } from "kernai"
import { Scenario } from "kernai/testing"
import { follow } from "../../src/cli/followRun.ts"
import { final } from "../support/blocks.ts"
import { kernel } from "../support/kernel.ts"
import { agent, plan } from "../support/workflow.ts"
import { memoryScreen } from "./support.ts"

describe("follow", () => {
  it.effect("tells people the id of a run that is kept, not those of its tasks, and none of a run that is not", () =>
    Effect.gen(function* () {
      const ids = Effect.fnUntraced(function* (kept: boolean) {
        const screen = memoryScreen()
        const provider = Scenario.scripted({ root: [plan(["a"]), final("ok")], tasks: { a: [final("A")] } })
        const events = Kernel.stream(agent(), "go", { provider, runId: kept ? "kept" : "gone" })
        yield* Effect.provide(follow(events, { form: "text", title: "a title", kept }), screen.layer)
        return screen.progress().match(/^run .*/gm) ?? []
      })
      assert.deepStrictEqual(yield* ids(true), ["run       kept"])
      assert.deepStrictEqual(yield* ids(false), [])
    }).pipe(Effect.provide(kernel()))
  )
})
