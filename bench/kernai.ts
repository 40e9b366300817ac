/**
 * kernai as the benchmarks run it: a scripted model that calls a skill which does nothing, in every
 * step but the last. `pi.ts` sets the same task to pi-agent-core.
 */
import { Effect, Layer, Schema, Stream } from "effect"
import * as Agent from "../dist/Agent.js"
import * as Kernel from "../dist/Kernel.js"
import * as MediaStore from "../dist/MediaStore.js"
import * as ProtocolRegistry from "../dist/ProtocolRegistry.js"
import type * as Provider from "../dist/Provider.js"
import * as RunStore from "../dist/RunStore.js"
import * as Skill from "../dist/Skill.js"
import * as SkillRegistry from "../dist/SkillRegistry.js"
import * as StreamPart from "../dist/StreamPart.js"

export const noop = Skill.make("noop", {
  description: "Does nothing",
  input: Schema.Struct({ x: Schema.String }),
  effects: "read",
  execute: () => Effect.succeed("ok")
})

/** A reply that calls `noop`. */
export const act = [StreamPart.text('<block type="command" name="noop">{"x":"1"}</block>'), StreamPart.finish()]

/** A reply that ends the run. */
export const end = [StreamPart.text('<block type="final">done</block>'), StreamPart.finish()]

/** Returns a provider for one run of so many steps. Each reply starts after `wait` milliseconds. */
export const scripted = (steps: number, wait?: number): Provider.ProviderShape => {
  let call = 0
  const reply = () => Stream.fromArray(++call < steps ? act : end)
  const delayed = () => Stream.onStart(reply(), Effect.sleep(wait ?? 0))
  return { name: "mock", stream: wait === undefined ? reply : delayed }
}

export const agentOf = (steps: number) =>
  Agent.make({ instructions: "You test.", model: { id: "m", capabilities: ["text"] }, skills: [noop], maxSteps: steps })

export const kernelOn = <E>(store: Layer.Layer<RunStore.RunStore, E>, skills = SkillRegistry.layer(noop)) =>
  Kernel.layerNoProvider.pipe(Layer.provide([skills, ProtocolRegistry.layer(), MediaStore.layerMemory, store]))
