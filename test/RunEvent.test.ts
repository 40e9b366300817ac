import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema, Stream } from "effect"
import {
  Agent,
  Content,
  Kernel,
  Media,
  MediaStore,
  Message,
  Protocol,
  ProtocolRegistry,
  Recorder,
  RunEvent,
  RunStore,
  Skill,
  SkillRegistry
} from "kernai"
import { MockProvider } from "kernai/testing"
import { command, final } from "./support/blocks.ts"

const picture = Media.fromBytes(new Uint8Array(50_000), "image/png")
const draw = Skill.make("draw", {
  description: "Draws",
  input: Schema.Struct({}),
  execute: () => Effect.succeed(Skill.result("a dot", { media: picture }))
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
                  id: yield* Media.id(picture),
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

  it.effect("refers to the media of results and messages by their ids, as do recordings", () =>
    Effect.gen(function* () {
      const image = Media.fromBytes(new Uint8Array([1, 2, 3]), "image/png")
      const see = Skill.make("see", { description: "", input: Schema.Struct({}), execute: () => Effect.succeed(image) })
      const show = Protocol.make("show", { handle: () => Effect.succeed(image) })
      const say = Protocol.make("say", {
        handle: () => Effect.succeed(Message.user([Content.text("first"), Content.text("second")]))
      })
      const recorded: Array<Recorder.Entry> = []
      const reply = `${command("see", {})}<block type="show">x</block><block type="say">x</block>`
      const told = yield* Stream.runCollect(
        Kernel.stream(Agent.make({ instructions: "", model: "m", skills: [see], protocols: ["show", "say"] }), "Go.")
      ).pipe(
        Effect.provide(
          Kernel.layer.pipe(
            Layer.provide([
              SkillRegistry.layer(see),
              ProtocolRegistry.layer(show, say),
              MediaStore.layerMemory,
              RunStore.layerMemory,
              MockProvider.layer(reply, final("done")),
              Recorder.layer(Recorder.entries((entry) => void recorded.push(entry), { phases: true }))
            ])
          )
        )
      )
      const id = yield* Media.id(image)
      const ref = { type: "image", fileId: id, mediaType: "image/png" }
      const json = (type: RunEvent.Type) => told.filter((event) => event.type === type).map(RunEvent.toJson)
      const entries = (type: string) => recorded.filter(({ event }) => event === type).map(({ data }) => data)
      const written = [{ type: "image", file_id: id, media_type: "image/png" }]

      assert.deepInclude(json("skill_result")[0], { media: [ref] })
      const medium = { id, kind: "image", mimeType: "image/png", metadata: {} }
      const source = { _tag: "Bytes", bytes: "[3 bytes]" }
      assert.deepInclude(json("skill_result")[0], { output: { ...medium, source } })
      assert.deepInclude(entries("skill_result")[0], { result: { ...medium, source } })
      assert.include(JSON.stringify(json("tool_call_completed")[0]), id)
      assert.deepInclude(entries("tool_call_completed")[0], { media: written })
      assert.deepInclude(json("protocol_result")[0], { media: [ref] })
      assert.deepInclude(entries("protocol_result")[0], { media: written })

      const message = {
        role: "user",
        content: [
          { type: "text", text: "first" },
          { type: "text", text: "second" }
        ]
      }
      assert.deepInclude(json("protocol_result")[1], { result: "first", message })
      assert.deepInclude(entries("protocol_result")[1], { result: "first", message })
    })
  )
})
