import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Kernel } from "kernai"
import { Workspace } from "kernai/workspace"
import { agent } from "../src/agent.ts"
import { live } from "../src/live.ts"

describe("the agent", () => {
  it.live("repairs the failing test", () =>
    Effect.gen(function* () {
      const workspace = yield* Workspace.Workspace
      assert.strictEqual((yield* workspace.run("bash test.sh")).exitCode, 1)
      yield* Kernel.run(agent, "The test fails.")
      assert.strictEqual((yield* workspace.run("bash test.sh")).exitCode, 0)
    }).pipe(Effect.provide(live))
  )
})
