/** The progress that a server reports of the call of a skill. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Redacted, Stream } from "effect"
import { Agent, Content, Kernel, MediaStore, RunStore, SkillRegistry } from "kernai"
import { McpServe } from "kernai/mcp"
import { MockProvider } from "kernai/testing"
import { fileURLToPath } from "node:url"
import * as Support from "../support/mcp/connect.ts"
import * as Hub from "../support/mcp/hub.ts"
import { command, final } from "../support/blocks.ts"
import { of } from "../support/kernel.ts"
import { skills } from "../support/mcp/offered.ts"
import { isLong, quickly } from "../support/longRun.ts"

const script = fileURLToPath(new URL("../support/mcp/offered.ts", import.meta.url))

const agent = Agent.make({ instructions: "", model: "mock", skills: "all" })

/** The progress of the skill of a server, as a run emits it. */
const reported = Effect.fnUntraced(function* (settings: { readonly [key: string]: unknown }) {
  const mock = MockProvider.make(
    command("mcp_s__reporting", { report: { progress: 2, total: 4, message: "two of four" } }),
    final("done")
  )
  const kernel = Kernel.layer.pipe(
    Layer.provideMerge(Hub.hub({ s: settings })),
    Layer.provide([MockProvider.layerOf(mock), MediaStore.layerMemory, RunStore.layerMemory])
  )
  const events = yield* Effect.provide(Stream.runCollect(Kernel.stream(agent, "go")), kernel)
  assert.deepStrictEqual(
    of([...events], "skill_result").map(({ output }) => output),
    [[Content.text("reported")]]
  )
  return of([...events], "skill_progress").map(({ progress, skill }) => [skill, progress])
})

layer(Support.platform, { excludeTestServices: true, timeout: "60 seconds" })("The progress of an MCP tool", (it) => {
  for (const protocolVersion of quickly(["2025-11-25", "2026-07-28"], (version) => version === "2026-07-28")) {
    const expected = [["mcp_s__reporting", { progress: 2, total: 4, message: "two of four" }]]

    // A process for each: `npm test` hears of it over HTTP.
    if (isLong) {
      it.effect(`arrives as events of the run over standard streams, in revision ${protocolVersion}`, () =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* reported({ ...Support.node(script), protocolVersion }), expected)
        })
      )
    }

    it.effect(`arrives as events of the run over HTTP, in revision ${protocolVersion}`, () =>
      Effect.gen(function* () {
        const { token, url } = yield* McpServe.http()
        const headers = { authorization: `Bearer ${Redacted.value(token!)}` }
        assert.deepStrictEqual(yield* reported({ url, headers, protocolVersion }), expected)
      }).pipe(Effect.provide(SkillRegistry.layer(...skills)))
    )
  }
})
