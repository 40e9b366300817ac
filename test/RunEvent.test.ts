import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema, Stream } from "effect"
import { Agent, Kernel, Media, RunEvent, Skill, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"
import { command, final } from "./support/blocks.ts"

const draw = Skill.make("draw", {
  description: "Draws",
  input: Schema.Struct({}),
  execute: () => Effect.succeed(Skill.result("a dot", { media: Media.fromBytes(new Uint8Array(50_000), "image/png") }))
})
const agent = Agent.make({ instructions: "", model: "m", skills: [draw] })

const events = Stream.runCollect(Kernel.stream(agent, "Draw a dot.", { runId: "r" })).pipe(
  Effect.provide(
    Kernel.layerMemory.pipe(
      Layer.provide([SkillRegistry.layer(draw), MockProvider.layer(command("draw", {}), final("done"))])
    )
  )
)

describe("RunEvent.toJson", () => {
  it.effect("encodes a whole event, with byte counts in place of the bytes a skill returned", () =>
    Effect.gen(function* () {
      for (const event of yield* events) {
        const json = RunEvent.toJson(event)
        if (event.type === "skill_result") {
          assert.deepInclude(json, {
            type: "skill_result",
            runId: "r",
            skill: "draw",
            output: {
              "~kernai/SkillResult": true,
              text: "a dot",
              metadata: {},
              media: [
                {
                  kind: "image",
                  mimeType: "image/png",
                  source: { _tag: "Bytes", bytes: "[50000 bytes]" },
                  metadata: {}
                }
              ]
            }
          })
        } else assert.deepStrictEqual(json, JSON.parse(JSON.stringify(event)))
      }
    })
  )
})
